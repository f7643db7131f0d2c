"""Margins of one value around a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.fill import number_array
from gradfn.ops.rule import op


def _pairs(pad: Any, ndim: int) -> list[tuple[int, int]]:
    """(before, after) for each dim, the first dim first. RuntimeErrors."""
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the "
            f"input. Pad length is {len(pad)} while the input has {ndim} dimensions."
        )
    given = [(int(pad[i]), int(pad[i + 1])) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (ndim - len(given)) + given[::-1]


def _constant_pad(a: Any, pad: Any, value: Any = 0) -> Any:
    pairs = _pairs(pad, a.ndim)
    shape = tuple(n + b + e for n, (b, e) in zip(a.shape, pairs, strict=True))
    if min(shape, default=0) < 0:
        raise RuntimeError(
            f"The input size {list(a.shape)}, plus negative padding {list(pad)} resulted in "
            "a negative output size, which is invalid. Check the padding of your input."
        )
    if shape == a.shape and not any(b for b, _ in pairs):
        return a.copy()
    out = np.full(shape, number_array(value, a.dtype))
    inner = tuple(slice(max(b, 0), n - max(e, 0)) for n, (b, e) in zip(shape, pairs))
    kept = tuple(slice(max(-b, 0), n - max(-e, 0)) for n, (b, e) in zip(a.shape, pairs))
    out[inner] = a[kept]
    return out


# Negative margins cut off, so the derivative is the same op.
op(
    "constant_pad_nd(self, pad, value=0)",
    _constant_pad,
    method=False,
    self=lambda g, xp, pad: xp.constant_pad_nd(g, [-n for n in pad]),
)
