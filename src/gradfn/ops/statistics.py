"""Variance, norms, medians and other statistics."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from gradfn._dtypes import real_dtype, to_numpy
from gradfn.ops.reduce import (
    add_reduce,
    axes,
    count,
    lifted,
    picked_grad,
    reduced_dims,
)
from gradfn.ops.rule import op
from gradfn.ops.scan import line
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method, wrap

# -- variance --------------------------------------------------------------------------


def _freedom(shape: Any, dim: Any, correction: Any) -> Any:
    return max(count(shape, dim) - correction, 0)


def _var(a: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    if a.dtype.kind not in "fc":
        raise RuntimeError("std and var only support floating point and complex dtypes")
    n, dims = count(a.shape, dim), axes(a, dim)
    free = _freedom(a.shape, dim, correction)
    if free <= 0:
        warnings.warn(
            "var(): degrees of freedom is <= 0. Correction should be strictly less than "
            "the reduction factor (input numel divided by output numel).",
            UserWarning,
            stacklevel=2,
        )
    work = a.astype(np.float32) if a.dtype == np.float16 else a
    away = work - add_reduce(work, dims, None, None, True) / (n or np.nan)
    squares = away.real**2 + away.imag**2 if a.dtype.kind == "c" else away * away
    out = add_reduce(squares, dims, None, None, keepdim) / squares.dtype.type(free)
    return out.astype(real_dtype(a.dtype), copy=False)


def _var_grad(
    g: Any,
    xp: Any,
    self: Any,
    self_shape: Any,
    dim: Any,
    correction: Any,
    keepdim: Any,
) -> Any:
    away = self - xp.mean(self, dim, True) if self_shape else self - self
    free = _freedom(self_shape, dim, correction)
    return lifted(g, self_shape, dim, keepdim) * away * (2 / free if free else math.inf)


def _std(a: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    return np.sqrt(_var(a, dim, correction, keepdim))


def _std_grad(
    g: Any,
    xp: Any,
    self: Any,
    self_shape: Any,
    result: Any,
    dim: Any,
    correction: Any,
    keepdim: Any,
) -> Any:
    slope = xp._keep(g / (result + result), result != 0)
    return _var_grad(slope, xp, self, self_shape, dim, correction, keepdim)


_rows = {
    "var": op(
        "_var(self, dim=None, correction=1, keepdim=False)",
        _var,
        function=False,
        method=False,
        node="Var",
        self=_var_grad,
    ).function,
    "std": op(
        "_std(self, dim=None, correction=1, keepdim=False)",
        _std,
        function=False,
        method=False,
        node="Std",
        self=_std_grad,
    ).function,
}


def _spread_measure(name: str, doc: str) -> None:
    row = _rows[name]

    def measure(
        self: Tensor,
        dim: Any = None,
        unbiased: Any = None,
        keepdim: bool = False,
        *,
        correction: Any = None,
        axis: Any = None,
        out: Any = None,
    ) -> Any:
        if isinstance(dim, bool):  # var(unbiased)
            dim, unbiased = None, dim
        if axis is not None:
            dim = axis
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        return row(self, dim, correction, keepdim)

    measure.__name__, measure.__doc__ = name, doc
    public(method(measure))

    def with_mean(
        self: Tensor,
        dim: Any = None,
        unbiased: Any = None,
        keepdim: bool = False,
        *,
        correction: Any = None,
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        spread = measure(self, dim, unbiased, keepdim, correction=correction)
        return spread, self.mean(dim, keepdim)

    with_mean.__name__ = f"{name}_mean"
    with_mean.__doc__ = f"`({name}, mean)`; the arguments are those of `{name}`."
    public(with_mean)


_spread_measure(
    "var",
    "The variance over all or along `dim`: of n elements, divided by n - correction.",
)
_spread_measure("std", "The square root of the variance; see `var`.")

# -- norms -----------------------------------------------------------------------------


def _vector_norm(
    a: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    if dtype is not None:
        a = a.astype(to_numpy(dtype), copy=False)
    if a.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. "
            f"Got {a.dtype}"
        )
    dims = axes(a, dim)
    if ord == 2 and a.dtype.kind == "f" and a.dtype != np.float16:
        return np.sqrt(add_reduce(a * a, dims, None, None, keepdim))
    size = np.abs(a)
    if ord in (math.inf, -math.inf):
        if not count(a.shape, dim):
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor "
                "because the operation does not have an identity"
            )
        pick = np.maximum if ord > 0 else np.minimum
        return pick.reduce(size, dims, None, None, keepdim)
    if ord == 0:
        return add_reduce(size != 0, dims, size.dtype, None, keepdim)
    if ord == 1:
        return add_reduce(size, dims, None, None, keepdim)
    if ord == 2:
        return np.sqrt(add_reduce(size * size, dims, None, None, keepdim))
    return add_reduce(size**ord, dims, None, None, keepdim) ** (1.0 / ord)


def _norm_grad(
    g: Any,
    xp: Any,
    self: Any,
    self_shape: Any,
    result: Any,
    ord: Any,
    dim: Any,
    keepdim: Any,
) -> Any:
    g, norm = (lifted(x, self_shape, dim, keepdim) for x in (g, result))
    if ord == 0:
        return xp._zeros_like(self)
    if ord == 1:
        return g * xp.sgn(self)
    if ord == 2:
        return xp._keep(g * (self / norm), norm != 0)
    size = xp.abs(self)
    if ord in (math.inf, -math.inf):
        top = size == norm
        return xp._keep(g * xp.sgn(self) / xp.sum(top, dim, True), top)
    slope = xp.sgn(self) * xp._pow_number(size, ord - 1) * xp._pow_number(norm, 1 - ord)
    return xp._keep(g * slope, (self != 0) & (norm != 0))


vector_norm = op(
    "linalg_vector_norm(self, ord=2, dim=None, keepdim=False, *, dtype=None)",
    _vector_norm,
    method=False,
    self=_norm_grad,
).function


@public
@method
def norm(
    self: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """The p-norm of all elements, or along `dim`; "fro" and None are the 2-norm."""
    if p == "nuc":
        from importlib import import_module

        linalg: Any = import_module("gradfn.linalg")
        return linalg.matrix_norm(self, "nuc", dim or (-2, -1), keepdim)
    order = 2 if p is None or p == "fro" else p
    return vector_norm(self, order, dim, keepdim, dtype=dtype)


@public
@method
def dist(self: Tensor, other: Tensor, p: Any = 2) -> Any:
    """The p-norm of the difference."""
    return vector_norm(self - other, p)


# -- medians and ranks -----------------------------------------------------------------


def _kth(a: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    dim = line(a, dim)
    if not a.ndim:
        return a.copy(), np.asarray(0)
    if not 1 <= k <= a.shape[dim]:
        raise RuntimeError("kthvalue(): selected number k out of range for dimension")
    at = np.take(np.argsort(a, dim, kind="stable"), [k - 1], dim)
    return _at(a, at, dim, keepdim)


def _at(a: Any, at: Any, dim: int, keepdim: bool) -> Any:
    values = np.take_along_axis(a, at, dim)
    return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))


def _median(a: Any, dim: int = -1, keepdim: bool = False, skip: bool = False) -> Any:
    """The lower median; nan if there is one, unless they are skipped."""
    dim = line(a, dim)
    if not a.ndim:
        return a.copy(), np.asarray(0)
    order = np.argsort(a, dim, kind="stable")
    size = a.shape[dim]
    nan = np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool)
    holes = nan.sum(dim, keepdims=True)
    if skip:
        place = np.maximum(size - holes - 1, 0) // 2
    else:  # nan sorts last
        place = np.where(holes > 0, size - holes, (size - 1) // 2)
    return _at(a, np.take_along_axis(order, place, dim), dim, keepdim)


op(
    "kthvalue(self, k, dim=-1, keepdim=False)",
    _kth,
    outputs="values indices",
    self=picked_grad,
)
for _name, _skip in (("median", False), ("nanmedian", True)):
    op(
        f"_{_name}_dim(self, dim=-1, keepdim=False)",
        lambda a, dim=-1, keepdim=False, skip=_skip: _median(a, dim, keepdim, skip),
        outputs="values indices",
        function=False,
        method=False,
        node=_name.capitalize(),
        self=picked_grad,
    )


def _middle(name: str, doc: str) -> None:
    from gradfn.ops.rule import TABLE

    row = TABLE[f"_{name}_dim"].function

    def middle(self: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is not None:
            return row(self, dim, keepdim)
        return row(self.reshape(-1), 0)[0]

    middle.__name__, middle.__doc__ = name, doc
    public(method(middle))


_middle("median", "The lower median of all, or `(values, indices)` along `dim`.")
_middle("nanmedian", "The lower median of what is not nan; see `median`.")


def _mode(a: Any, dim: int = -1, keepdim: bool = False) -> Any:
    dim = line(a, dim)
    if not a.ndim:
        return a.copy(), np.asarray(0)
    lines = np.moveaxis(a, dim, -1)
    found = np.empty(lines.shape[:-1], np.int64)
    for place in np.ndindex(found.shape):
        values, counts = np.unique(lines[place], return_counts=True)
        winner = values[counts.argmax()]
        found[place] = np.flatnonzero(lines[place] == winner)[-1]
    return _at(a, np.expand_dims(found, dim), dim, keepdim)


op("mode(self, dim=-1, keepdim=False)", _mode, outputs="values indices", self=picked_grad)


@public
@method
def quantile(
    self: Tensor,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Any:
    """The q-quantile of all, or along `dim`; `q` is a number or a 1-d tensor of them.

    ValueError for a q outside [0, 1], RuntimeError for another `interpolation`.
    """
    flat = self.reshape(-1) if dim is None or not self._array.ndim else self
    at = -1 if dim is None else dim
    level = q if isinstance(q, Tensor) else wrap(np.asarray(q, self._array.dtype))
    if (level._array < 0).any() or (level._array > 1).any():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    values = flat.sort(at)[0].movedim(at, -1)
    scalar = not level._array.ndim
    out = _between(values, level.reshape(-1), interpolation).movedim(-1, 0)
    out = out[0] if scalar else out
    levels = level.reshape(-1)._array
    if keepdim:
        kept = [
            1 if i in reduced_dims(self.shape, dim) else n
            for i, n in enumerate(self.shape)
        ]
        out = out.reshape((*(() if scalar else (len(levels),)), *kept))
    return out


def _between(values: Any, level: Any, how: str) -> Any:
    """The values at fractions of the last dim's length; nan where there is one."""
    last = values.shape[-1] - 1
    place = level * last
    low = place.floor().long()
    high = (low + 1).clamp(max=last)
    share = place - low
    a, b = values.index_select(-1, low), values.index_select(-1, high)
    pick = {
        "linear": lambda: a.lerp(b, share.expand(a.shape)),
        "lower": lambda: a,
        "higher": lambda: b.where(share > 0, a),
        "midpoint": lambda: ((a + b) * 0.5).where(share > 0, a),
        "nearest": lambda: values.index_select(-1, place.round().long()),
    }
    if how not in pick:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or "
            f"nearest, but got {how}"
        )
    bad = values.isnan().any(-1, True)
    return pick[how]().masked_fill(bad, math.nan)
