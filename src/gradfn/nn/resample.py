"""Averages and interpolation: a sparse matrix along each of the last dims.

Note [Resampling]
    Average pooling and every kind of interpolation are, dim by dim, products with a matrix
    that has few elements in each row. A Matrix holds them as taps (Note [Taps]) with
    weights; its transpose is another Matrix, made once. So one row does all of them, and
    its gradient is the row itself with the transposed matrices.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from gradfn.nn.taps import Tap, Windows, at_places, is_whole, tap
from gradfn.ops.rule import op

Array = Any


class Matrix:
    """A matrix of `count` rows and `size` columns as taps with weights."""

    def __init__(self, count: int, size: int, taps: list[Tap], weights: list[Array]):
        self.count, self.size = count, size
        self.taps, self.weights = taps, weights
        # One weight for all is multiplied in at the end.
        given = [w for w in weights if w.size]
        first = given[0].flat[0] if given else 1.0
        self.common = first if all((w == first).all() for w in given) else None
        self._cast: dict[Any, list[Array]] = {}

    @cached_property
    def transposed(self) -> Matrix:
        """Rows and columns exchanged."""
        rows = [np.arange(self.count)[t.to] for t in self.taps]
        columns = [np.arange(self.size)[t.at] for t in self.taps]
        none = [np.arange(0)]
        made = from_elements(
            self.size,
            self.count,
            np.concatenate(columns or none),
            np.concatenate(rows or none),
            np.concatenate(self.weights or [np.zeros(0)]),
        )
        made.__dict__["transposed"] = self
        return made

    def cast(self, dtype: Any) -> list[Array]:
        """The weights in a dtype."""
        if dtype not in self._cast:
            self._cast[dtype] = [w.astype(dtype) for w in self.weights]
        return self._cast[dtype]

    def times(self, x: Array, axis: int) -> Array:
        """The product with vectors along an axis, counted from behind."""
        shape = list(x.shape)
        shape[axis] = self.count
        after = (1,) * (-1 - axis)
        out, started = np.empty(shape, x.dtype), False
        if not any(is_whole(t.to, self.count) for t in self.taps[:1]):
            out[...], started = 0, True
        for t, weight in zip(self.taps, self.cast(x.real.dtype), strict=True):
            part = at_places(x, axis, t.at)
            if self.common is None:
                part = part * weight.reshape(-1, *after)
            where = (..., t.to, *(slice(None),) * len(after))
            if started:
                out[where] += part
            else:
                out[...], started = part, True
        if self.common is not None and self.common != 1:
            out *= out.dtype.type(self.common)
        return out


def from_elements(
    count: int, size: int, rows: Array, columns: Array, weights: Array
) -> Matrix:
    """A Matrix from its elements: the n-th of each row become a tap."""
    order = np.argsort(rows, kind="stable")
    rows, columns, weights = rows[order], columns[order], weights[order]
    before = np.searchsorted(rows, rows)
    rank = np.arange(len(rows)) - before
    taps, parts = [], []
    for k in range(int(rank.max(initial=-1)) + 1):
        here = rank == k
        taps.append(tap(rows[here], columns[here]))
        parts.append(weights[here])
    return Matrix(count, size, taps, parts)


def sums(windows: Windows, divisors: Array | None) -> Matrix:
    """The sum, or the mean, over windows."""
    weights = []
    for t in windows.taps:
        rows = np.arange(windows.count)[t.to]
        one = np.ones(len(rows))
        weights.append(one if divisors is None else one / divisors[rows])
    return Matrix(windows.count, windows.size, windows.taps, weights)


def _resample(x: Array, matrices: Any) -> Array:
    """Shrinks from the first dim on, then grows from the last: the least work."""
    n = len(matrices)
    axes = [(m, i - n) for i, m in enumerate(matrices) if m is not None]
    shrinking = [p for p in axes if p[0].count <= p[0].size]
    growing = [p for p in reversed(axes) if p[0].count > p[0].size]
    dtype, x = x.dtype, x.astype(np.float32) if x.dtype.itemsize < 4 else x
    for matrix, axis in (*shrinking, *growing):
        x = matrix.times(x, axis)
    return x.astype(dtype, copy=not axes)


resample = op(
    "_resample(self, matrices)",
    _resample,
    function=False,
    method=False,
    linear=True,
    self=lambda g, xp, matrices: xp._resample(
        g, tuple(None if m is None else m.transposed for m in matrices)
    ),
).function
