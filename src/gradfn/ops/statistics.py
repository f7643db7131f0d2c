"""Variance, norms, medians and other statistics."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from gradfn._dtypes import real_dtype, to_numpy
from gradfn.graph.batched import all_values
from gradfn.ops.outs import into
from gradfn.ops.reduce import (
    _sum,
    add_reduce,
    among_equals,
    among_equals_raw,
    axes,
    count,
    kind_name,
    lifted,
    line,
    picked,
    picking,
    reduced_dims,
    refuse,
)
from gradfn.ops.rule import op
from gradfn.ops.scan import ranked
from gradfn.ops.world import RAW, public
from gradfn.tensor import Tensor, method, wrap

_HALF = np.dtype("float16")

# -- sums and means of what is not nan -------------------------------------------------


def _nansum(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if a.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    clean = np.where(np.isnan(a), a.dtype.type(0), a) if a.dtype.kind == "f" else a
    return _sum(clean, dim, keepdim, dtype=dtype)


op(
    "nansum(self, dim=None, keepdim=False, *, dtype=None)",
    _nansum,
    self=lambda g, xp, self, self_shape, dim, keepdim: xp._keep(
        xp._spread(g, self_shape, dim, keepdim), ~xp.isnan(self)
    ),
)


@public
@method
def nanmean(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """The mean of what is not nan; nan if there is nothing. RuntimeError for integers."""
    if input._array.dtype.kind in "biu":
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            + kind_name(input._array.dtype)
        )
    x: Any = input
    result = x.nansum(dim, keepdim, dtype=dtype) / (~x.isnan()).sum(dim, keepdim)
    return result if out is None else into("nanmean", out, result)


# -- variance --------------------------------------------------------------------------


def _about_mean(
    name: str, a: Any, dim: Any, correction: Any, keepdim: Any, finish: Any = np.asarray
) -> Any:
    """The variance (what `finish` makes of it), and the mean with its dims kept."""
    if a.dtype.kind not in "fc":
        raise RuntimeError(f"{name} only support floating point and complex dtypes")
    n = count(a.shape, dim)
    free = max(n - correction, 0)
    if free <= 0:
        warnings.warn(
            f"{name.split(' ')[0]}(): degrees of freedom is <= 0. Correction should be "
            "strictly less than the reduction factor (input numel divided by output "
            "numel).",
            UserWarning,
            stacklevel=2,
        )
    work = a.astype(np.float32) if a.dtype is _HALF else a
    mean = _sum(work, dim, True) / (n or np.nan)
    away = work - mean
    squares = away.real**2 + away.imag**2 if a.dtype.kind == "c" else away * away
    out = finish(_sum(squares, dim, keepdim) / squares.dtype.type(free))
    return out.astype(real_dtype(a.dtype), copy=False), mean.astype(a.dtype, copy=False)


def _var(a: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    return _about_mean("std and var", a, dim, correction, keepdim)[0]


def _std(a: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    return _about_mean("std and var", a, dim, correction, keepdim, np.sqrt)[0]


def _with_mean(name: str, finish: Any) -> Any:
    def kernel(
        a: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False
    ) -> Any:
        out, mean = _about_mean(f"{name}_mean", a, dim, correction, keepdim, finish)
        return out, mean.reshape(np.shape(out))

    return kernel


def _var_grad(g: Any, xp: Any, self: Any, dim: Any, correction: Any, keepdim: Any) -> Any:
    away = self - xp.mean(self, dim, True) if self.ndim else self - self
    free = count(self.shape, dim) - correction
    slope = g * (2 / free if free else math.inf)
    return lifted(slope, self.shape, dim, keepdim) * away


def _std_grad(
    g: Any, xp: Any, self: Any, result: Any, dim: Any, correction: Any, keepdim: Any
) -> Any:
    slope = xp._keep(g / (result + result), result != 0)
    return _var_grad(slope, xp, self, dim, correction, keepdim)


def _both_grad(gs: Any, first: Any, xp: Any, shape: Any, dim: Any, keepdim: Any) -> Any:
    """The sum of the gradients through the spread (a function of gs[0]) and the mean."""
    parts = [] if gs[0] is None else [first(gs[0])]
    if gs[1] is not None:
        share = gs[1] / max(count(shape, dim), 1)
        parts.append(xp._spread(share, tuple(shape), dim, keepdim))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


_TWO = {"outputs": "spread mean", "differentiable": 2}
_rows = {}
for _name, _kernel, _rule, _options in (
    ("var", _var, _var_grad, {}),
    ("std", _std, _std_grad, {}),
    (
        "var_mean",
        _with_mean("var", np.asarray),
        lambda gs, xp, self, dim, correction, keepdim: _both_grad(
            gs,
            lambda g: _var_grad(g, xp, self, dim, correction, keepdim),
            *(xp, self.shape, dim, keepdim),
        ),
        _TWO,
    ),
    (
        "std_mean",
        _with_mean("std", np.sqrt),
        lambda gs, xp, self, spread, dim, correction, keepdim: _both_grad(
            gs,
            lambda g: _std_grad(g, xp, self, spread, dim, correction, keepdim),
            *(xp, self.shape, dim, keepdim),
        ),
        _TWO,
    ),
):
    _rows[_name] = op(
        f"_{_name}(self, dim=None, correction=1, keepdim=False)",
        _kernel,
        function=False,
        method=False,
        node=_name.title().replace("_", ""),
        self=_rule,
        **_options,
    )


def _spread_measure(name: str, doc: str) -> Any:
    row = _rows[name].function

    def measure(
        input: Tensor,
        dim: Any = None,
        unbiased: Any = None,
        keepdim: bool = False,
        *,
        correction: Any = None,
        axis: Any = None,
        keepdims: bool = False,
        out: Any = None,
    ) -> Any:
        if isinstance(dim, bool):  # var(unbiased)
            dim, unbiased = None, dim
        if axis is not None:
            dim = axis
        if unbiased is not None and correction is not None:
            raise TypeError(
                f"{name}() received an invalid combination of arguments: `unbiased` and "
                "`correction` say the same; give one of them"
            )
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        result = row(input, dim, correction, keepdim or keepdims)
        if name.endswith("mean"):
            result = tuple(result)
        return result if out is None else into(name, out, result)

    measure.__name__ = measure.__qualname__ = name
    measure.__doc__ = doc
    return public(measure)


method(
    _spread_measure(
        "var",
        "The variance over all or along `dim`: of n elements, divided by n - correction.",
    )
)
method(_spread_measure("std", "The square root of the variance; see `var`."))
for _name in ("var", "std"):
    _spread_measure(
        f"{_name}_mean", f"`({_name}, mean)`; the arguments are those of `{_name}`."
    )

# -- norms -----------------------------------------------------------------------------


def _wider(a: Any, dtype: Any) -> Any:
    """`a` in the dtype that a norm was asked for. RuntimeErrors."""
    target = to_numpy(dtype)
    have, want = kind_name(a.dtype), kind_name(target)
    kind = "real" if a.dtype.kind == "f" else "complex"
    if target.kind not in "fc":
        reason = f"dtype should be floating point or complex, but got {want}"
    elif target.kind != a.dtype.kind:
        reason = f"dtype should be {kind} for {kind} inputs, but got {want}"
    elif target.itemsize < a.dtype.itemsize:
        reason = (
            f"the dtype of the input ({have}) should be convertible without narrowing to "
            f"the specified dtype ({want})"
        )
    else:
        return a.astype(target, copy=False)
    raise RuntimeError(f"linalg.vector_norm: {reason}")


def _check_norm(a: Any, ord: Any, dim: Any) -> None:
    """RuntimeErrors for what has no norm of this order."""
    if a.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. "
            f"Got {kind_name(a.dtype)}"
        )
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if not a.size and (ord < 0 or ord == math.inf) and not count(a.shape, dim):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor "
            "because the operation does not have an identity"
        )


def _vector_norm(
    a: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    _check_norm(a, ord, dim)
    if dtype is not None:
        a = _wider(a, dtype)
    dims = axes(a, dim)
    if a.dtype is _HALF:
        return _norm_of(a.astype(np.float32), ord, dims, keepdim).astype(_HALF)
    return _norm_of(a, ord, dims, keepdim)


def _norm_of(a: Any, ord: Any, dims: Any, keepdim: bool) -> Any:
    if ord == 2 and a.dtype.kind == "f":
        if dims is None and not keepdim and a.flags.c_contiguous:
            flat = a.reshape(-1)
            return np.sqrt(flat.dot(flat))
        return np.sqrt(_sum(a * a, dims, keepdim))
    size = np.abs(a)
    if ord in (math.inf, -math.inf):
        pick = np.maximum if ord > 0 else np.minimum
        return pick.reduce(size, dims, None, None, keepdim)
    if ord == 0:
        return add_reduce(size != 0, dims, size.dtype, None, keepdim)
    if ord == 2:
        return np.sqrt(_sum(size * size, dims, keepdim))
    return _sum(size if ord == 1 else size**ord, dims, keepdim) ** (1.0 / ord)


def _norm_grad(
    g: Any, xp: Any, self: Any, result: Any, ord: Any, dim: Any, keepdim: Any
) -> Any:
    g, norm = (lifted(x, self.shape, dim, keepdim) for x in (g, result))
    if ord == 0:
        return xp._zeros_like(self)
    if ord == 1:
        return g * xp.sgn(self)
    if ord == 2:
        way = self / (norm + (norm == 0))
        if xp is RAW and way.ndim:
            return np.multiply(way, g, way)
        return xp._keep(g * way, norm != 0)
    size = xp.abs(self)
    if ord in (math.inf, -math.inf):
        top = size == norm
        return xp._keep(g * xp.sgn(self) / xp.sum(top, dim, True), top)
    # Of zeros only, the norm is not smooth: its gradient is 0, also that of powers of it.
    there = norm != 0
    share = xp._keep(g * xp._pow_number(norm + ~there, 1 - ord), there)
    if ord > 2:
        return self * xp._pow_number(size, ord - 2) * share
    power = xp._pow_number(size, ord - 1)
    return xp.sgn(self) * (power if ord > 1 else xp._keep(power, self != 0)) * share


vector_norm = op(
    "linalg_vector_norm(self, ord=2, dim=None, keepdim=False, *, dtype=None)",
    _vector_norm,
    method=False,
    self=_norm_grad,
).function


@public
@method
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """The p-norm of all elements, or along `dim`; "fro" and None are the 2-norm.

    RuntimeError for integers, and for a dtype that is narrower than the tensor's.
    """
    if p == "nuc":
        from importlib import import_module

        linalg: Any = import_module("gradfn.linalg")
        result = linalg.matrix_norm(input, "nuc", dim or (-2, -1), keepdim)
    else:
        order = 2 if p is None or p == "fro" else p
        result = vector_norm(input, order, dim, keepdim, dtype=dtype)
    return result if out is None else into("norm", out, result)


def _dist_grad(g: Any, xp: Any, self: Any, other: Any, result: Any, p: Any) -> Any:
    return _norm_grad(g, xp, self - other, result, p, None, False)


op(
    "dist(self, other, p=2)",
    lambda a, b, p=2: _vector_norm(a - b, p),
    numbers="no",
    self=_dist_grad,
    other=lambda g, xp, self, other, result, p: _dist_grad(g, xp, other, self, result, p),
)

# -- medians ---------------------------------------------------------------------------


def _median_along(skip: bool) -> Any:
    def kernel(a: Any, dim: int, keepdim: bool = False) -> Any:
        refuse(a, "bc", "median_out")
        dim = ranked("median", a, dim)
        if not a.ndim:
            return a.copy(), np.asarray(0)
        order = np.argsort(a, dim, kind="stable")  # nan is last
        size = a.shape[dim]
        nan = np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool)
        holes = nan.sum(dim, keepdims=True)
        if skip:
            place = np.maximum(size - holes - 1, 0) // 2
        else:
            place = np.where(holes > 0, size - holes, (size - 1) // 2)
        at = np.take_along_axis(order, place, dim).squeeze(dim)
        return picked(a, at, dim, keepdim)

    return kernel


def _median_of_all(skip: bool) -> Any:
    def kernel(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return _median(a, skip)
        dims = reduced_dims(a.shape, axes(a, dim))
        lines = np.moveaxis(a, dims, range(-len(dims), 0))
        lines = lines.reshape((*lines.shape[: a.ndim - len(dims)], -1))
        values = _median_along(skip)(lines, -1)[0]
        return np.expand_dims(values, dims) if keepdim else values

    return kernel


def _median(a: Any, skip: bool) -> Any:
    """The median of all, nan (0 for integers, which have none) if there is nothing."""
    refuse(a, "bc", "median_cpu")
    flat, nan = a.reshape(-1), a.dtype.type(0)
    if a.dtype.kind == "f":
        nan = a.dtype.type(np.nan)
        bad = np.isnan(flat)
        if bad.any():
            if not skip:
                return nan
            flat = flat[~bad]
    if not flat.size:
        return nan
    middle = (flat.size - 1) // 2
    return np.partition(flat, middle)[middle]


def _middle(name: str, skip: bool, doc: str) -> None:
    one = op(
        f"_{name}_all(self, dim=None, keepdim=False)",
        _median_of_all(skip),
        function=False,
        method=False,
        node=name.capitalize(),
        self=among_equals,
        raw={"self": among_equals_raw},
    ).function
    each = picking(name, _median_along(skip), overload="True")

    def middle(
        input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None
    ) -> Any:
        result = one(input) if dim is None else each(input, dim, keepdim)
        return result if out is None else into(name, out, result)

    middle.__name__ = middle.__qualname__ = name
    middle.__doc__ = doc
    public(method(middle))


_middle("median", False, "The lower median of all, or `(values, indices)` along `dim`.")
_middle("nanmedian", True, "The lower median of what is not nan; see `median`.")


# -- quantiles -------------------------------------------------------------------------

_WAYS = ("linear", "lower", "higher", "midpoint", "nearest")


def _levels(a: Any, q: Any, how: str) -> Tensor:
    """`q` as a tensor; RuntimeError for what quantile does not take."""
    if a.dtype.kind != "f" or a.dtype is _HALF:
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if not a.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if how not in _WAYS:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or "
            f"nearest, but got {how}"
        )
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
        return wrap(np.asarray(q, a.dtype))
    if q._array.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q._array.dtype != a.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    values = all_values(q)
    if not ((values >= 0) & (values <= 1)).all():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q


def _quantile(x: Any, q: Any, dim: Any, keepdim: bool, how: str, skip: bool) -> Any:
    level: Any = _levels(x._array, q, how)
    flat = x.reshape(-1) if dim is None or not x._array.ndim else x
    at = -1 if dim is None else line(x._array, dim)
    values = flat.sort(at)[0].movedim(at, -1)
    place = _place(values, level.reshape(-1), skip)
    out = _between(values, place, how).movedim(-1, 0)
    if not level._array.ndim:
        out = out[0]
    if keepdim:
        dims = reduced_dims(x.shape, dim)
        kept = [1 if i in dims else n for i, n in enumerate(x.shape)]
        out = out.reshape((*level.shape, *kept))
    return out


def _place(values: Any, level: Any, skip: bool) -> Any:
    """The fractional index of each level, among the last dim's sorted values.

    nan is last: where there is one it is the answer, unless they are skipped.
    """
    if skip:
        place = level * ((~values.isnan()).sum(-1, True) - 1)
        return place.masked_fill(place < 0, 0)
    last = values.shape[-1] - 1
    place = (level * last).expand((*values.shape[:-1], -1))
    return place.masked_fill(values.isnan().any(-1, True), last)


def _between(values: Any, place: Any, how: str) -> Any:
    """The values at fractional places along the last dim."""

    def at(index: Any) -> Any:
        return values.gather(-1, index.long())

    if how == "nearest":
        return at(place.round())
    if how == "higher":
        return at(place.ceil())
    low = at(place.floor())
    if how == "lower":
        return low
    high = at(place.ceil())
    if how == "midpoint":
        return low.lerp(high, 0.5)
    return low.lerp(high, place - place.floor())


def _quantiles(name: str, skip: bool, doc: str) -> None:
    def quantile(
        input: Tensor,
        q: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        out: Any = None,
    ) -> Any:
        result = _quantile(input, q, dim, keepdim, interpolation, skip)
        return result if out is None else into(name, out, result)

    quantile.__name__ = quantile.__qualname__ = name
    quantile.__doc__ = f"""{doc}

    `q` is a number or a 1-d tensor of them, whose dim comes first in the result.
    RuntimeError for a q outside [0, 1], for another dtype than float32 and float64, for
    an empty tensor, and for an `interpolation` that is not linear, lower, higher,
    midpoint or nearest.
    """
    public(method(quantile))


_quantiles("quantile", False, "The q-quantile of all, or along `dim`; nan if one is nan.")
_quantiles(
    "nanquantile", True, "The q-quantile of what is not nan, or nan; see `quantile`."
)
