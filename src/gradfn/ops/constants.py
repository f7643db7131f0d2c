"""0-d arrays for the numbers in kernels; NumPy takes twice as long for Python's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.admit import NUMBERS, number


def scalar(value: Any, dtype: Any) -> Any:
    """A read-only 0-d array for a number beside an array of `dtype`."""
    try:
        return NUMBERS[type(value)][value, dtype]._array
    except KeyError:
        return number(value, dtype)._array


def at_least(a: Any, bound: Any) -> Any:
    """np.maximum(a, bound), whose loop for a 0-d bound is three times slower."""
    if a.size < 512 or a.dtype.kind not in "f":
        return np.maximum(a, scalar(bound, a.dtype))
    return np.maximum(a, np.full(a.shape[-1:], bound, a.dtype))


def at_most(a: Any, bound: Any) -> Any:
    """np.minimum(a, bound), likewise."""
    if a.size < 512 or a.dtype.kind not in "f":
        return np.minimum(a, scalar(bound, a.dtype))
    return np.minimum(a, np.full(a.shape[-1:], bound, a.dtype))
