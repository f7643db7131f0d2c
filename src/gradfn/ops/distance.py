"""Distances between the rows of two matrices, and rows cut to a length."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn.ops.reduce import kind_name
from gradfn.ops.rule import op
from gradfn.ops.sizes import wrapped
from gradfn.ops.statistics import vector_norm
from gradfn.ops.world import RAW, public
from gradfn.tensor import Tensor, method, wrap

_MANY = 25  # from so many rows on, Euclidean distances come from a product of matrices
_BLOCK = 1 << 20  # elements of differences at a time

# -- cdist -------------------------------------------------------------------------------


def _check(a: Any, b: Any, p: Any) -> None:
    for what, x in (("X1", a), ("X2", b)):
        if x.dtype.kind != "f":
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {what} got: "
                f"{kind_name(x.dtype)}"
            )
        if x.ndim < 2:
            raise RuntimeError(
                f"cdist only supports at least 2D tensors, {what} got: {x.ndim}D"
            )
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: "
            f"{b.shape[-1]}"
        )
    if not p >= 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got {p}")


def _cdist(a: Any, b: Any, p: Any, product: Any) -> Any:
    _check(a, b, p)
    rows, columns = a.shape[-2], b.shape[-2]
    if product is None:
        product = rows > _MANY or columns > _MANY
    dtype = np.result_type(a, b)
    if p == 2 and product:
        return _euclidean(a, b).astype(dtype, copy=False)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.empty((*lead, rows, columns), dtype)
    step = max(1, _BLOCK // max(1, out[..., :1, :].size * a.shape[-1]))
    for start in range(0, rows, step):
        some = a[..., start : start + step, None, :]
        apart = some - b[..., None, :, :]
        out[..., start : start + step, :] = RAW.linalg_vector_norm(apart, p, -1)
    return out


def _euclidean(a: Any, b: Any) -> Any:
    """From |a|^2 - 2 a.b + |b|^2: a product of matrices, less exact for close rows."""
    squares = (a * a).sum(-1)[..., :, None] + (b * b).sum(-1)[..., None, :]
    return np.sqrt(np.maximum(squares - 2 * (a @ np.swapaxes(b, -1, -2)), 0))


def _cdist_grad(g: Any, xp: Any, a: Any, b: Any, result: Any, p: Any) -> Any:
    if p == 2:
        share = g * xp._keep(1 / (result + (result == 0)), result != 0)
        return a * xp.sum(share, -1, True) - xp._matmul(share, b)
    apart = xp.unsqueeze(a, -2) - xp.unsqueeze(b, -3)
    size, way = xp.abs(apart), xp.sgn(apart)
    far, g = xp.unsqueeze(result, -1), xp.unsqueeze(g, -1)
    if p == 0:
        return xp._zeros_like(a)
    if p == 1:
        slope = way
    elif p == math.inf:
        slope = xp._keep(way, size == far)
    else:
        there = (size != 0) & (far != 0)
        share = (size + (size == 0)) / (far + (far == 0))
        slope = xp._keep(way * xp._pow_number(share, p - 1), there)
    return xp.sum(g * slope, -2)


_cdist_row = op(
    "_cdist(self, x2, p, product)",
    _cdist,
    function=False,
    method=False,
    node="Cdist",
    self=lambda g, xp, self, x2, result, p: _cdist_grad(g, xp, self, x2, result, p),
    x2=lambda g, xp, self, x2, result, p: _cdist_grad(g.mT, xp, x2, self, result.mT, p),
).function

_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}


@public
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Any:
    """The p-norm distances between all rows of x1 and all of x2, in batches. RuntimeErrors.

    Where rows coincide the gradient is zero.
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _cdist_row(x1, x2, float(p), _MODES[compute_mode])


@public
def pdist(input: Tensor, p: float = 2.0) -> Any:
    """The p-norm distances between all pairs of rows: (n·(n - 1)/2,) for n rows.

    In the order of the upper triangle. RuntimeErrors.
    """
    a = input._array
    if a.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {a.ndim}D")
    if a.dtype.kind != "f":
        raise RuntimeError(
            f"pdist only supports floating-point dtypes, got: {kind_name(a.dtype)}"
        )
    if not p >= 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got {p}")
    rows, columns = (wrap(i) for i in np.triu_indices(a.shape[0], 1))
    return _cdist_row(input, input, float(p), False)[rows, columns]


# -- renorm ------------------------------------------------------------------------------


@public
@method
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Any:
    """The slices along `dim`, those with a p-norm above `maxnorm` scaled to it.

    RuntimeErrors.
    """
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input._array.ndim < 2:
        raise RuntimeError(
            "renorm: input needs at least 2 dimensions, got "
            f"{input._array.ndim} dimensions"
        )
    at = wrapped(dim, input._array.ndim)
    others = tuple(d for d in range(input._array.ndim) if d != at)
    norm = vector_norm(input, p, others, True)
    scale = (maxnorm / (norm + 1e-7)).where(norm > maxnorm, norm.new_ones(()))
    return input * scale


@method
def renorm_(self: Tensor, p: float, dim: int, maxnorm: float) -> Any:
    """`renorm` in place."""
    return self.copy_(renorm(self.clone(), p, dim, maxnorm))
