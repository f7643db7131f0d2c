"""torch.finfo and torch.iinfo: the limits of dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import default_dtype, dtype, to_numpy


class finfo:
    """Limits of a floating-point dtype (the default one if none is given).

    TypeError for an integer dtype.
    """

    def __init__(self, type: dtype | None = None) -> None:
        found = default_dtype() if type is None else to_numpy(type)
        if found.kind not in "fc":
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo "
                f"to handle '{type!r}'"
            )
        limits = np.finfo(found)
        self.dtype = limits.dtype.name
        self.bits = int(limits.bits)
        self.eps = float(limits.eps)
        self.max = float(limits.max)
        self.min = float(limits.min)
        self.tiny = self.smallest_normal = float(limits.tiny)
        self.resolution = float(limits.resolution)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, "
            f"tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype. TypeError for others."""

    def __init__(self, type: Any) -> None:
        found = to_numpy(type)
        if found.kind not in "iu":
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                f"'{type!r}'"
            )
        limits = np.iinfo(found)
        self.dtype = found.name
        self.bits, self.max, self.min = limits.bits, int(limits.max), int(limits.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
