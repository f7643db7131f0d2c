"""Ops that bring many elements to one: sums, extremes, statistics, norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import INT64
from gradfn.ops.rule import op


def _sum(a: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if dtype is None and a.dtype.kind in "biu":
        dtype = INT64
    return np.add.reduce(a, axis=dim, dtype=dtype, keepdims=keepdim)


op(
    "sum(self, dim=None, keepdim=False, *, dtype=None)",
    _sum,
    overload="dim is not None",
    self=lambda g, xp, self_shape, dim, keepdim: xp.spread(
        g, self_shape, dim, keepdim
    ),
)


def _spread(g: Any, shape: Any, dim: Any = None, keepdim: bool = True) -> Any:
    if dim is not None and not keepdim:
        g = np.expand_dims(g, dim)
    out = np.empty(shape, g.dtype)
    out[...] = g
    return out


# The gradient of a reduction, the same at each place that was reduced.
op(
    "spread(self, shape, dim=None, keepdim=True)",
    _spread,
    function=False,
    method=False,
    node="Expand",
    self=lambda g, xp, self_shape, dim, keepdim: xp.sum(g, dim, keepdim),
)


def _max_dim(a: Any, dim: int, keepdim: bool = False) -> Any:
    at = np.expand_dims(a.argmax(dim), dim)
    values = np.take_along_axis(a, at, dim)
    return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))


op(
    "_max_dim(self, dim, keepdim=False)",
    _max_dim,
    outputs="values indices",
    function=False,
    method=False,
    node="Max",
    self=lambda g, xp, self_shape, indices, dim, keepdim: g,
)
