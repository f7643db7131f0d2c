"""Running sums and products, softmax, and their kin along one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import INT64, default_dtype, to_numpy
from gradfn.ops.rare import dim_error
from gradfn.ops.reduce import axes, lifted
from gradfn.ops.rule import op
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method

# -- helpers ---------------------------------------------------------------------------


def line(a: Any, dim: int) -> int:
    """`dim` from 0 on; IndexError if there is no such dim."""
    n = max(a.ndim, 1)
    if not -n <= dim < n:
        raise dim_error(dim, a.ndim)
    return int(dim) % n


def part(a: Any, dim: int, where: slice) -> Any:
    """A slice along one dim, the others whole."""
    return a[(slice(None),) * dim + (where,)]


def _shift(a: Any, dim: int, fill: Any) -> Any:
    if not a.ndim:
        return np.full((), fill, a.dtype)
    dim = line(a, dim)
    out = np.empty_like(a)
    part(out, dim, slice(0, 1))[...] = fill
    part(out, dim, slice(1, None))[...] = part(a, dim, slice(0, -1))
    return out


def _unshift(a: Any, dim: int) -> Any:
    if not a.ndim:
        return np.zeros((), a.dtype)
    dim = line(a, dim)
    out = np.zeros_like(a)
    part(out, dim, slice(0, -1))[...] = part(a, dim, slice(1, None))
    return out


# One place on along a dim, with `fill` in front; and the same backwards.
op(
    "_shift(self, dim, fill)",
    _shift,
    function=False,
    method=False,
    self=lambda g, xp, dim: xp._unshift(g, dim),
)
op(
    "_unshift(self, dim)",
    _unshift,
    function=False,
    method=False,
    self=lambda g, xp, dim: xp._shift(g, dim, 0),
)


def _scan(g: Any, factor: Any, dim: int) -> Any:
    if not g.ndim:
        return g.copy()
    out = np.moveaxis(g.astype(np.result_type(g, factor)), line(g, dim), 0)
    factor = np.moveaxis(factor, line(factor, dim), 0)
    for k in range(len(out) - 2, -1, -1):
        out[k] += factor[k + 1] * out[k + 1]
    return np.moveaxis(out, 0, line(g, dim))


def _scan_grad(g: Any, xp: Any, factor: Any, dim: int) -> Any:
    turned = xp._shift(xp.flip(factor.conj(), (dim,)), dim, 0)
    return xp.flip(xp._scan(xp.flip(g, (dim,)), turned, dim), (dim,))


# S[k] = self[k] + factor[k+1] * S[k+1]: gradients of running products, without division.
op(
    "_scan(self, factor, dim)",
    _scan,
    function=False,
    method=False,
    self=_scan_grad,
    factor=lambda g, xp, result, factor, dim: (
        xp._shift(_scan_grad(g, xp, factor, dim), dim, 0) * result.conj()
    ),
)

# -- running sums and products ---------------------------------------------------------


def _running(ufunc: Any) -> Any:
    def kernel(a: Any, dim: int, *, dtype: Any = None) -> Any:
        if dtype is not None:
            a = a.astype(to_numpy(dtype))
        elif a.dtype.kind in "biu":
            a = a.astype(INT64)
        dim = line(a, dim)
        return ufunc.accumulate(a, dim) if a.ndim else a.copy()

    return kernel


op(
    "cumsum(self, dim, *, dtype=None)",
    _running(np.add),
    inplace=True,
    self=lambda g, xp, dim: xp.flip(xp.cumsum(xp.flip(g, (dim,)), dim), (dim,)),
)
op(
    "cumprod(self, dim, *, dtype=None)",
    _running(np.multiply),
    inplace=True,
    self=lambda g, xp, self, result, dim: (
        xp._shift(result, dim, 1).conj() * xp._scan(g, self.conj(), dim)
    ),
)


def _logcumsumexp(a: Any, dim: int) -> Any:
    dim = line(a, dim)
    if a.dtype.kind == "c":
        top = a.real.max(dim, keepdims=True) if a.ndim and a.size else 0
        return np.log(np.add.accumulate(np.exp(a - top), dim)) + top
    return np.logaddexp.accumulate(a, dim) if a.ndim else a.copy()


def _logcumsumexp_grad(g: Any, xp: Any, self: Any, result: Any, dim: int) -> Any:
    decay = xp.exp(xp._shift(result, dim, 0) - result)  # its first entry is not used
    # Lines that begin with -inf: inf - inf is nan, where nothing has been added yet.
    decay = xp.nan_to_num(decay)
    weight = xp.nan_to_num(xp.exp(self - result))
    return weight.conj() * xp._scan(g, decay.conj(), dim)


op("logcumsumexp(self, dim)", _logcumsumexp, self=_logcumsumexp_grad)


def _running_extreme(ufunc: Any) -> Any:
    def kernel(a: Any, dim: int) -> Any:
        dim = line(a, dim)
        if not a.ndim:
            return a.copy(), np.asarray(0)
        values = ufunc.accumulate(a, dim)
        new = (a == values) | np.isnan(a)
        shape = [1] * a.ndim
        shape[dim] = -1
        place = np.arange(a.shape[dim]).reshape(shape)
        return values, np.maximum.accumulate(np.where(new, place, 0), dim)

    return kernel


def add_along(g: Any, index: Any, dim: int, shape: Any) -> Any:
    """Zeros of `shape` with each element of `g` added at its index along `dim`."""
    if not shape:
        return g.copy()
    out = np.zeros(shape, g.dtype)
    places = list(np.indices(index.shape, sparse=True))
    places[line(out, dim)] = index
    np.add.at(out, tuple(places), g)
    return out


op(
    "_add_along(self, index, dim, shape)",
    add_along,
    takes="index",
    function=False,
    method=False,
    self=lambda g, xp, index, dim: xp._take_along(g, index, dim, True),
)
for _name, _ufunc in (("cummax", np.maximum), ("cummin", np.minimum)):
    op(
        f"{_name}(self, dim)",
        _running_extreme(_ufunc),
        outputs="values indices",
        self=lambda g, xp, self_shape, indices, dim: xp._add_along(
            g, indices, dim, self_shape
        ),
    )


@public
@method
def diff(
    self: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Any:
    """Differences of neighbours along `dim`, taken `n` times."""
    from gradfn.ops.world import PUBLIC

    pieces = [t for t in (prepend, self, append) if t is not None]
    x = PUBLIC["cat"](pieces, dim) if len(pieces) > 1 else self
    for _ in range(n):
        size = x.shape[dim]
        if not size:
            return x
        ahead, back = x.narrow(dim, 1, size - 1), x.narrow(dim, 0, size - 1)
        x = ahead ^ back if x._array.dtype.kind == "b" else ahead - back
    return x


# -- softmax ---------------------------------------------------------------------------


def _floats(a: Any, dtype: Any) -> Any:
    if dtype is not None:
        return a.astype(to_numpy(dtype), copy=False)
    return a.astype(default_dtype()) if a.dtype.kind in "biu" else a


def _top(a: Any, dim: Any) -> Any:
    """The largest of each line, 0 where that is infinite or there is none."""
    if not a.size:
        return 0
    top = np.maximum.reduce(a.real, axes(a, dim), None, None, True)
    return np.where(np.isfinite(top), top, top.dtype.type(0))


def _softmax(a: Any, dim: int, dtype: Any = None) -> Any:
    a = _floats(a, dtype)
    line(a, dim)
    e = np.exp(a - _top(a, dim))
    return np.asarray(e / np.add.reduce(e, axes(a, dim), None, None, True), a.dtype)


def _log_softmax(a: Any, dim: int, dtype: Any = None) -> Any:
    a = _floats(a, dtype)
    line(a, dim)
    low = a - _top(a, dim)
    total = np.add.reduce(np.exp(low), axes(a, dim), None, None, True)
    return np.asarray(low - np.log(total), a.dtype)


op(
    "softmax(self, dim, dtype=None)",
    _softmax,
    self=lambda g, xp, result, dim: (
        result.conj() * (g - xp.sum(g * result.conj(), dim, True))
    ),
)
op(
    "log_softmax(self, dim, dtype=None)",
    _log_softmax,
    self=lambda g, xp, result, dim: g - xp.exp(result).conj() * xp.sum(g, dim, True),
)


def _logsumexp(a: Any, dim: Any, keepdim: bool = False) -> Any:
    a = _floats(a, None)
    dim = axes(a, dim)
    top = _top(a, dim)
    total = np.log(np.add.reduce(np.exp(a - top), dim, None, None, keepdim))
    if a.size and not keepdim:
        top = np.reshape(top, np.shape(total))
    return total + top


def _logsumexp_grad(
    g: Any, xp: Any, self: Any, self_shape: Any, result: Any, dim: Any, keepdim: Any
) -> Any:
    # A line of -inf only has the result -inf; -inf - -inf would be nan.
    bottom = xp._keep(result, result != -np.inf)
    share = xp.exp(self - lifted(bottom, self_shape, dim, keepdim))
    return lifted(g, self_shape, dim, keepdim) * share.conj()


op("logsumexp(self, dim, keepdim=False)", _logsumexp, self=_logsumexp_grad)
