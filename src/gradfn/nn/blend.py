"""Weighted sums of some places of an image: three rows that derive each other.

Note [Blends]
    result[n, c, p] = Σ_k source[n, c, index[n, k, p]] · weight[n, k, p] ties a source, weights
    and a result together, and each of three rows gives one from the two others: `_blend`
    the result, `_blend_back` the source (its gradient), `_blend_dots` the weights (theirs).
    All are linear in both arguments, and the derivatives of each are the two others. An
    index of -1 names no place: what would stand there does not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.rule import op

Array = Any


def _nowhere(index: Array) -> Any:
    """Which indices name no place, or None if all do."""
    return index < 0 if index.size and index.min() < 0 else None


def _blend(a: Array, weight: Array, index: Array) -> Array:
    n, taps, count = index.shape
    out = np.zeros((n, a.shape[1], count), a.dtype)
    none = _nowhere(index)
    for i, k in np.ndindex(n, taps):
        part = a[i].take(index[i, k], 1)
        part *= weight[i, k]
        if none is not None:
            part[:, none[i, k]] = 0
        out[i] += part
    return out


def _blend_back(g: Array, weight: Array, index: Array, size: int) -> Array:
    n, taps, _ = index.shape
    channels = g.shape[1]
    out = np.zeros((n, channels, size), g.dtype)
    none = _nowhere(index)
    for i, k in np.ndindex(n, taps):
        part, at = g[i] * weight[i, k], index[i, k]
        if none is not None:
            there = ~none[i, k]
            part, at = part[:, there], at[there]
        for row, values in zip(out[i], part, strict=True):
            np.add.at(row, at, values)
    return out


def _blend_dots(a: Array, other: Array, index: Array) -> Array:
    n, taps, count = index.shape
    out = np.empty((n, taps, count), a.dtype)
    for i, k in np.ndindex(n, taps):
        part = a[i].take(index[i, k], 1)
        part *= other[i]
        part.sum(0, out=out[i, k])
    none = _nowhere(index)
    if none is not None:
        out[none] = 0
    return out


_hidden = {"function": False, "method": False, "takes": "index", "linear": True}
blend = op(
    "_blend(self, weight, index)",
    _blend,
    **_hidden,
    self=lambda g, xp, self_shape, weight, index: xp._blend_back(
        g, weight, index, self_shape[2]
    ),
    weight=lambda g, xp, self, index: xp._blend_dots(self, g, index),
).function
op(
    "_blend_back(self, weight, index, size)",
    _blend_back,
    **_hidden,
    self=lambda g, xp, weight, index: xp._blend(g, weight, index),
    weight=lambda g, xp, self, index: xp._blend_dots(g, self, index),
)
op(
    "_blend_dots(self, other, index)",
    _blend_dots,
    **_hidden,
    self=lambda g, xp, self_shape, other, index: xp._blend_back(
        other, g, index, self_shape[2]
    ),
    other=lambda g, xp, self, index: xp._blend(self, g, index),
)
