"""Running sums and products, differences, ranks: what is done along one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import INT64, to_numpy
from gradfn.ops.outs import into
from gradfn.ops.reduce import (
    line,
    not_empty,
    picked,
    picked_grad,
    refuse,
)
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC, RAW, public
from gradfn.tensor import Tensor, method

# -- helpers ---------------------------------------------------------------------------


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
    linear=True,
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


_LONG = 1 << 14  # as many may be added one after the other without a wider accumulator
_WIDER = {
    np.dtype("float16"): np.dtype("float32"),
    np.dtype("float32"): np.dtype("float64"),
    np.dtype("complex64"): np.dtype("complex128"),
}
BACK = slice(None, None, -1)


def accumulate(ufunc: Any, a: Any, dim: int, backwards: bool = False) -> Any:
    """Running results, in an array of their own; backwards: from the last element."""
    if not a.ndim:
        return a.copy()
    out = to = np.empty_like(a)
    if backwards:
        a, to = part(a, dim, BACK), part(out, dim, BACK)
    wide = _WIDER.get(a.dtype) if a.shape[dim] > _LONG or a.dtype.itemsize == 2 else None
    ufunc.accumulate(a, dim, wide, to)
    return out


def _running(ufunc: Any) -> Any:
    def kernel(a: Any, dim: int, dtype: Any = None) -> Any:
        if dtype is not None:
            a = a.astype(to_numpy(dtype), copy=False)
        elif a.dtype.kind in "biu":
            a = a.astype(INT64)
        return accumulate(ufunc, a, line(a, dim))

    return kernel


def _sum_back(g: Any, xp: Any, dim: int) -> Any:
    """Running sums from the last element."""
    return xp.flip(xp.cumsum(xp.flip(g, (dim,)), dim), (dim,))


op(
    "cumsum(self, dim, *, dtype=None)",
    _running(np.add),
    inplace=True,
    linear=True,
    self=_sum_back,
    raw={"self": lambda g, dim: accumulate(np.add, g, line(g, dim), True)},
)


def _cumprod_grad(g: Any, xp: Any, self: Any, result: Any, dim: int) -> Any:
    return xp._shift(result, dim, 1).conj() * xp._scan(g, self.conj(), dim)


def _cumprod_raw(g: Any, self: Any, result: Any, dim: int) -> Any:
    if not self.all():
        return _cumprod_grad(g, RAW, self, result, dim)
    sums = accumulate(np.add, np.asarray(g * result.conj()), line(g, dim), True)
    return np.divide(sums, self.conj(), sums)


op(
    "cumprod(self, dim, *, dtype=None)",
    _running(np.multiply),
    inplace=True,
    self=_cumprod_grad,
    raw={"self": _cumprod_raw},
)


def _logcumsumexp(a: Any, dim: int) -> Any:
    refuse(a, "biu", "logcumsumexp_out_cpu")
    dim = line(a, dim)
    if not a.ndim:
        return a.copy()
    if a.dtype.kind != "c":
        return np.logaddexp.accumulate(a, dim)
    out = a.copy()
    lines = np.moveaxis(out, dim, 0)
    for k in range(1, len(lines)):
        lines[k] = _log_sum(lines[k - 1], lines[k])
    return out


def _log_sum(a: Any, b: Any) -> Any:
    """log(exp(a) + exp(b)) of complex numbers; adds a small angle to the larger's."""
    first = a.real > b.real
    big, small = np.where(first, a, b), np.where(first, b, a)
    return np.where(np.isneginf(big.real), big, big + np.log1p(np.exp(small - big)))


def _logcumsumexp_grad(g: Any, xp: Any, self: Any, result: Any, dim: int) -> Any:
    decay = xp.exp(xp._shift(result, dim, 0) - result)  # its first entry is not used
    # Lines that begin with -inf: inf - inf is nan, where nothing has been added yet.
    decay = xp.nan_to_num(decay)
    weight = xp.nan_to_num(xp.exp(self - result))
    return weight.conj() * xp._scan(g, decay.conj(), dim)


op("logcumsumexp(self, dim)", _logcumsumexp, self=_logcumsumexp_grad)


def _running_extreme(name: str, ufunc: Any) -> Any:
    def kernel(a: Any, dim: int) -> Any:
        refuse(a, "c", f"{name}_cpu")
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
    linear=True,
    function=False,
    method=False,
    self=lambda g, xp, index, dim: xp._take_along(g, index, dim, True),
)
for _name, _ufunc in (("cummax", np.maximum), ("cummin", np.minimum)):
    op(
        f"{_name}(self, dim)",
        _running_extreme(_name, _ufunc),
        outputs="values indices",
        self=lambda g, xp, self_shape, indices, dim: xp._add_along(
            g, indices, dim, self_shape
        ),
    )


# -- differences, areas ----------------------------------------------------------------


@public
@method
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Any = None,
    append: Any = None,
    *,
    out: Any = None,
) -> Any:
    """Differences of neighbours along `dim`, taken `n` times.

    RuntimeError for a tensor without dims or a negative `n`.
    """
    if not input._array.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = line(input._array, dim)
    pieces = [t for t in (prepend, input, append) if t is not None]
    x: Any = PUBLIC["cat"](pieces, dim) if len(pieces) > 1 else input
    if not n:
        x = x.clone()
    for _ in range(n):
        if not x.shape[dim]:
            break
        back, ahead = _neighbours(x, dim)
        x = ahead ^ back if x._array.dtype.kind == "b" else ahead - back
    return x if out is None else into("diff", out, x)


def _neighbours(x: Any, dim: int) -> Any:
    """All but the last, and all but the first, along `dim`."""
    size = max(x.shape[dim] - 1, 0)
    return x.narrow(dim, 0, size), x.narrow(dim, min(1, x.shape[dim]), size)


def _widths(name: str, y: Any, x: Any, dim: int) -> Any:
    """The distances of the places `x`, in a shape that goes with y's neighbours."""
    if y._array.dtype.kind == "b":
        raise RuntimeError(
            f"{name}: received a bool input for `y`, but bool is not supported"
        )
    if x is None:
        return None
    if x._array.dtype.kind == "b":
        raise RuntimeError(
            f"{name}: received a bool input for `x` or `y`, but bool is not supported"
        )
    if x._array.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point"
            )
        return x.diff().reshape((-1,) + (1,) * (y._array.ndim - dim - 1))
    lead = (1,) * (y._array.ndim - x._array.ndim)
    return x.reshape((*lead, *x.shape)).diff(dim=dim)


@public
def trapezoid(y: Tensor, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """The area under `y` along `dim` by the trapezoidal rule.

    The samples stand at the places `x`, or `dx` apart. RuntimeError for bools and for
    another number of places.
    """
    values: Any = y
    dim = _dim_of_samples(y, dim)
    widths = _widths("trapezoid", y, x, dim)
    if not y._array.shape[dim]:
        return values.sum(dim) * 1.0
    if widths is None:
        ends = values.select(dim, 0) + values.select(dim, -1)
        return (values.sum(dim) - ends * 0.5) * dx
    back, ahead = _neighbours(values, dim)
    return ((back + ahead) * widths).sum(dim) / 2.0


@public
def trapz(y: Tensor, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """`trapezoid` by its old name."""
    return trapezoid(y, x, dx=dx, dim=dim)


@public
def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """The area up to each sample but the first; see `trapezoid`."""
    values: Any = y
    dim = _dim_of_samples(y, dim)
    widths = _widths("cumulative_trapezoid", y, x, dim)
    back, ahead = _neighbours(values, dim)
    if widths is None:
        return ((back + ahead) * (dx / 2.0)).cumsum(dim)
    return ((back + ahead) * widths).cumsum(dim) / 2.0


def _dim_of_samples(y: Tensor, dim: int) -> int:
    if not y._array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return line(y._array, dim)


# -- ranks -----------------------------------------------------------------------------


def ranked(name: str, a: Any, dim: Any) -> int:
    """The dim, checked, for an op that picks from each line."""
    dim = line(a, dim)
    if a.ndim:
        not_empty(f"{name}()", a, (dim,))
    return dim


def _kth(a: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    refuse(a, "bc", "kthvalue_cpu")
    dim = ranked("kthvalue", a, dim)
    if not 1 <= k <= (a.shape[dim] if a.ndim else 1):
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {dim}"
        )
    if not a.ndim:
        return a.copy(), np.asarray(0)
    order = np.argsort(a, dim, kind="stable")
    return picked(a, order.take(k - 1, dim), dim, keepdim)


op(
    "kthvalue(self, k, dim=-1, keepdim=False)",
    _kth,
    outputs="values indices",
    self=picked_grad,
)


def _mode(a: Any, dim: int = -1, keepdim: bool = False) -> Any:
    refuse(a, "c", "mode_cpu")
    dim = ranked("mode", a, dim)
    if not a.ndim:
        return a.copy(), np.asarray(0)
    order = np.argsort(a, dim, kind="stable")
    lines = np.moveaxis(np.take_along_axis(a, order, dim), dim, -1)
    # The length of each run of equal values so far; the longest's end is the answer.
    place = np.arange(lines.shape[-1])
    new = np.ones(lines.shape, bool)
    new[..., 1:] = lines[..., 1:] != lines[..., :-1]
    length = place - np.maximum.accumulate(np.where(new, place, 0), -1)
    end = np.expand_dims(length.argmax(-1), dim)
    return picked(a, np.take_along_axis(order, end, dim).squeeze(dim), dim, keepdim)


op("mode(self, dim=-1, keepdim=False)", _mode, outputs="values indices", self=picked_grad)
