"""Gathering and scattering along a dimension."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gradfn._dtypes import INT64, int32
from gradfn.graph.batched import all_values
from gradfn.ops.adding import MANY, add_at
from gradfn.ops.fill import cast, number_array
from gradfn.ops.index import checked
from gradfn.ops.rule import op
from gradfn.ops.sizes import wrapped
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method, wrap

INT32 = int32.numpy

# -- along a dim, an index for each element --------------------------------------------


def check_index(name: str, index: Any) -> None:
    """RuntimeError unless the index has integers."""
    if index.size and index.dtype not in (INT64, INT32):
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index but got: {index.dtype}"
        )


def refuse(at: Any, shape: Any, error: Any, lead: str = "") -> None:
    """An error if the last part of `at` is negative or too large for its dim."""
    index, dim = at[-1], len(at) - 1
    if not index.size:
        return
    low, high = int(index.min()), int(index.max())
    if low < 0 or high >= shape[dim]:
        raise error(
            f"{lead}index {low if low < 0 else high} is out of bounds for dimension {dim} "
            f"with size {shape[dim]}"
        )


def coordinates(index: Any, dim: int, shape: Any, name: str, what: str = "input") -> Any:
    """NumPy's index for `index` along `dim`. RuntimeErrors."""
    check_index(name, index)
    if index.ndim != len(shape):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {what} tensor "
            f"(got {index.ndim} and {len(shape)})"
        )
    refuse((*(None,) * dim, index), shape, RuntimeError)
    at: list[Any] = []
    for d, (n, m) in enumerate(zip(index.shape, shape, strict=True)):
        if d == dim:
            at.append(index)
            continue
        if n > m:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index "
                f"{list(index.shape)} to be no larger than self {list(shape)} apart from "
                f"dimension {dim}"
            )
        at.append(np.arange(n).reshape((n,) + (1,) * (index.ndim - d - 1)))
    return tuple(at)


def _line(a: Any) -> Any:
    return a.reshape(1) if not a.ndim else a


def _gather(a: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    dim, shape = wrapped(dim, a.ndim), index.shape
    a, index = _line(a), _line(index)
    if not index.size:
        check_index("gather", index)
        return np.empty(shape, a.dtype)
    return a[coordinates(index, dim, a.shape, "gather")].reshape(shape)


def _scattered(a: Any, dim: int, index: Any, src: Any, write: Any, name: str) -> Any:
    """A copy of `a` into which `write(array, coordinates, values)` wrote."""
    dim = wrapped(dim, a.ndim)
    out = _line(a.copy())
    if isinstance(src, np.ndarray) and src.dtype != a.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if not index.size:
        return out.reshape(a.shape)
    index = _line(index)
    at = coordinates(index, dim, out.shape, name, "self")
    if isinstance(src, np.ndarray):
        src = _line(src)
        if src.ndim != index.ndim:
            raise RuntimeError(
                "Index tensor must have the same number of dimensions as src tensor "
                f"(got {index.ndim} and {src.ndim})"
            )
        if any(n > m for n, m in zip(index.shape, src.shape, strict=True)):
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self "
                f"{list(out.shape)} apart from dimension {dim} and to be no larger size "
                f"than src {list(src.shape)}"
            )
        src = src[tuple(slice(n) for n in index.shape)]
    write(out, at, src)
    return out.reshape(a.shape)


def _set(out: Any, at: Any, src: Any) -> None:
    out[at] = src


def _add(out: Any, at: Any, src: Any) -> None:
    at_each(np.add, out, at, src)


def at_each(ufunc: Any, out: Any, at: Any, src: Any) -> None:
    """`ufunc.at` for an index of arrays alone; on large ones through flat indices."""
    if src.size < MANY or out.ndim == 1:
        ufunc.at(out, at, src)
        return
    places = np.ravel_multi_index(np.broadcast_arrays(*at), out.shape)
    ufunc.at(out.reshape(-1), places.reshape(-1), src.reshape(-1))


def _scatter(a: Any, dim: int, index: Any, src: Any) -> Any:
    return _scattered(a, dim, index, src, _set, "scatter")


def _scatter_value(a: Any, dim: int, index: Any, value: Any) -> Any:
    return _scatter(a, dim, index, number_array(value, a.dtype).item())


def _scatter_add(a: Any, dim: int, index: Any, src: Any) -> Any:
    return _scattered(a, dim, index, src, _add, "scatter")


def _gather_back(g: Any, shape: Any, dim: int, index: Any) -> Any:
    return _scatter_add(np.zeros(shape, g.dtype), dim, index, g)


op(
    "_gather_back(self, shape, dim, index)",
    _gather_back,
    takes="index",
    function=False,
    method=False,
    self=lambda g, xp, dim, index: xp.gather(g, dim, index),
)
_gather_row = op(
    "gather(self, dim, index, *, sparse_grad=False)",
    _gather,
    takes="index",
    discards=True,
    self=lambda g, xp, self_shape, dim, index: xp._gather_back(g, self_shape, dim, index),
).function


@public
def take_along_dim(input: Tensor, indices: Tensor, dim: Any = None) -> Any:
    """`gather` with broadcasting; flat if `dim` is None."""
    if dim is None:
        input, indices, dim = input.reshape(-1), indices.reshape(-1), 0
    if input._array.ndim != indices._array.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of "
            f"dimensions, but got {input._array.ndim} dimensions for input, and "
            f"{indices._array.ndim} dimensions for indices"
        )
    if indices._array.dtype != INT64:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            f"{indices.dtype}"
        )
    at = wrapped(dim, input._array.ndim)
    checked(all_values(indices), input.shape[at], at)
    indices = indices % max(input.shape[at], 1)
    one = list(
        np.broadcast_shapes(
            (*input.shape[:at], 1, *input.shape[at + 1 :]),
            (*indices.shape[:at], 1, *indices.shape[at + 1 :]),
        )
    )
    index_shape, self_shape = list(one), list(one)
    index_shape[at], self_shape[at] = indices.shape[at], input.shape[at]
    return _gather_row(input.expand(self_shape), at, indices.expand(index_shape))


Tensor.take_along_dim = take_along_dim  # type: ignore[attr-defined]


def _cleared(g: Any, xp: Any, dim: int, index: Any) -> Any:
    return xp._scatter_value(g, dim, index, 0)


def _gathered(g: Any, xp: Any, dim: int, index: Any, src_shape: Any) -> Any:
    """The gradient of src: what stands at its index; src may be larger than that."""
    got = xp.gather(g, dim, index)
    if 0 in got.shape:  # perhaps of fewer dims
        return xp._zeros_of(g, src_shape)
    if tuple(got.shape) == tuple(src_shape):
        return got
    return xp._place(got, src_shape, tuple(slice(n) for n in got.shape))


op(
    "_scatter_value(self, dim, index, value)",
    _scatter_value,
    takes="index",
    function=False,
    method=False,
    inplace=True,
    node="ScatterBackward1",
    self=_cleared,
)
op(
    "_scatter_src(self, dim, index, src)",
    _scatter,
    takes="index",
    function=False,
    method=False,
    inplace=True,
    node="Scatter",
    self=_cleared,
    src=_gathered,
)
op(
    "scatter_add(self, dim, index, src)",
    _scatter_add,
    takes="index",
    inplace=True,
    self=lambda g: g,
    src=_gathered,
)


def _scatter_call(
    self: Tensor, dim: int, index: Tensor, src: Any, reduce: Any, end: str
) -> Any:
    if reduce is not None:
        name = {"add": "sum", "multiply": "prod"}.get(reduce)
        if name is None:
            raise RuntimeError("reduce argument must be either add or multiply.")
        if not isinstance(src, Tensor):
            src = wrap(np.full(index._array.shape, src, self._array.dtype))
        return getattr(self, f"scatter_reduce{end}")(dim, index, src, name)
    from gradfn.ops.rule import TABLE

    kind = "_scatter_src" if isinstance(src, Tensor) else "_scatter_value"
    if end:
        return getattr(self, kind + "_")(dim, index, src)
    return TABLE[kind].function(self, dim, index, src)


@public
@method
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
) -> Any:
    """A copy with `src` (a tensor or number) written at the index along `dim`."""
    return _scatter_call(input, dim, index, value if src is None else src, reduce, "")


@method
def scatter_(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
) -> Any:
    """`scatter` in place."""
    return _scatter_call(self, dim, index, value if src is None else src, reduce, "_")


_UFUNC = {
    "sum": np.add,
    "prod": np.multiply,
    "mean": np.add,
    "amax": np.maximum,
    "amin": np.minimum,
}
_NEUTRAL = {"sum": 0, "prod": 1, "mean": 0, "amax": -np.inf, "amin": np.inf}


def _scatter_reduce(
    a: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True
) -> Any:
    if reduce not in _UFUNC:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if not include_self:
        a = _scatter(a, dim, index, _neutral(reduce, a.dtype))
    write = partial(at_each, _UFUNC[reduce])
    out = _scattered(a, dim, index, src, write, "scatter")
    if reduce == "mean":
        n = _counts(a, dim, index, include_self)
        out = out / n if out.dtype.kind in "fc" else out // n
    return out.astype(a.dtype, copy=False)


def _neutral(reduce: str, dtype: Any) -> Any:
    value = _NEUTRAL[reduce]
    if dtype.kind == "b":
        return value > 0
    if dtype.kind in "iu" and value in (np.inf, -np.inf):
        info = np.iinfo(dtype)
        return info.max if value > 0 else info.min
    return value


def _counts(a: Any, dim: int, index: Any, include_self: bool) -> Any:
    """How many values come together at each place, at least 1."""
    kind = a.dtype if a.dtype.kind in "iu" else np.dtype(a.real.dtype)
    n = np.full(a.shape, int(include_self), kind)
    n = _scatter_add(n, dim, index, np.ones(index.shape, kind))
    return np.maximum(n, 1)


op(
    "_scatter_counts(self, dim, index, include_self)",
    _counts,
    takes="self index",
    function=False,
    method=False,
)


def _reduce_self(
    g: Any,
    xp: Any,
    self: Any,
    dim: int,
    index: Any,
    src: Any,
    reduce: str,
    include_self: bool,
    result: Any,
) -> Any:
    if not include_self:
        g = xp._scatter_value(g, dim, index, 0)
    if reduce == "mean":
        return g / xp._scatter_counts(self, dim, index, include_self)
    if reduce == "prod":
        parts = _product_parts(xp, self, dim, index, src, include_self)
        return g * _product_slope(xp, self, result, *parts)
    if reduce in ("amax", "amin"):
        n = _winners(xp, self, dim, index, src, result, include_self)
        return xp._keep(g / n, self == result)
    return g


def _reduce_src(
    g: Any,
    xp: Any,
    self: Any,
    dim: int,
    index: Any,
    src: Any,
    src_shape: Any,
    reduce: str,
    include_self: bool,
    result: Any,
) -> Any:
    if reduce == "mean":
        g = g / xp._scatter_counts(self, dim, index, include_self)
    if reduce == "prod":
        parts = _product_parts(xp, self, dim, index, src, include_self)
        there = [_gathered(p, xp, dim, index, src_shape) for p in (g, result, *parts)]
        return there[0] * _product_slope(xp, src, *there[1:])
    if reduce in ("amax", "amin"):
        won = src == _gathered(result, xp, dim, index, src_shape)
        g = g / _winners(xp, self, dim, index, src, result, include_self)
        return xp._keep(_gathered(g, xp, dim, index, src_shape), won)
    return _gathered(g, xp, dim, index, src_shape)


def _product_parts(
    xp: Any, self: Any, dim: int, index: Any, src: Any, include_self: bool
) -> Any:
    """At each place: the product of what is not 0, how many zeros, and their sum."""

    def reduced(a: Any, b: Any, how: str) -> Any:
        return xp.scatter_reduce(a, dim, index, b, how, include_self=include_self)

    empty, none = self == 0, src == 0
    product = reduced(
        xp._masked_fill(self, empty, 1), xp._masked_fill(src, none, 1), "prod"
    )
    zeros = reduced(xp.ones_like(self) * empty, xp.ones_like(src) * none, "sum")
    return product, zeros, reduced(self * empty, src * none, "sum")


def _product_slope(
    xp: Any, factor: Any, result: Any, product: Any, zeros: Any, sum_of_zeros: Any
) -> Any:
    """The product of all factors but one, also where some are 0.

    Of two zeros, each one's derivative is the other times the rest. That is 0, but its
    own derivative is not; the other is the sum of both less this one.
    """
    empty = factor == 0
    other = xp._keep(xp.ones_like(factor), zeros == 1)
    other = other + xp._keep(sum_of_zeros - factor, zeros == 2)
    slope = xp._keep(result / xp._masked_fill(factor, empty, 1), ~empty)
    return slope + xp._keep(product * other, empty)


def _winners(
    xp: Any, self: Any, dim: int, index: Any, src: Any, result: Any, include_self: bool
) -> Any:
    """Among how many values the extreme is shared."""
    won = src == _gathered(result, xp, dim, index, src.shape)
    ours = (self == result) * xp.ones_like(self)
    if not include_self:
        ours = xp._scatter_value(ours, dim, index, 0)
    return xp.scatter_add(ours, dim, index, won * xp.ones_like(src))


op(
    "scatter_reduce(self, dim, index, src, reduce, *, include_self=True)",
    _scatter_reduce,
    takes="index",
    inplace=True,
    self=_reduce_self,
    src=_reduce_src,
)

# -- whole slices ----------------------------------------------------------------------


def _lines(index: Any, a: Any, dim: int, name: str) -> Any:
    """NumPy's index for the slices at `index` along `dim`."""
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got {index.ndim} dims"
        )
    return (slice(None),) * wrapped(dim, a.ndim) + (index.reshape(-1),)


def _index_select(a: Any, dim: int, index: Any) -> Any:
    check_index("index_select", index)
    line = _line(a)
    at = _lines(index, line, dim, "index_select")
    refuse(at, line.shape, IndexError, "index out of range in self: ")
    out = line.take(at[-1], len(at) - 1)
    return out.reshape(()) if not a.ndim else out


def _select_back(g: Any, shape: Any, dim: int, index: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    line = _line(out)
    add_at(line, _lines(index, line, dim, "index_select"), _line(g))
    return out


op(
    "_select_back(self, shape, dim, index)",
    _select_back,
    takes="index",
    function=False,
    method=False,
    self=lambda g, xp, dim, index: xp.index_select(g, dim, index),
)
op(
    "index_select(self, dim, index)",
    _index_select,
    takes="index",
    discards=True,
    self=lambda g, xp, self_shape, dim, index: xp._select_back(g, self_shape, dim, index),
)


def _check_source(a: Any, at: Any, source: Any, name: str, error: Any) -> None:
    """Errors for a source, of at least one dim, that does not fit the slices."""
    dim, n = len(at) - 1, at[-1].size
    if source.dtype != a.dtype:
        raise RuntimeError(
            f"{name}_(): self and source expected to have the same dtype, but got (self) "
            f"{a.dtype} and (source) {source.dtype}"
        )
    rest = [s[:dim] + s[dim + 1 :] for s in (a.shape, source.shape)]
    if source.ndim != a.ndim or rest[0] != rest[1]:
        raise error(
            f"{name}_(): source tensor shape must match self tensor shape, excluding the "
            f"specified dimension. Got self.shape = {list(a.shape)} source.shape = "
            f"{list(source.shape)}"
        )
    if source.shape[dim] != n:
        raise error(
            f"{name}_(): Number of indices ({n}) should be equal to source.size(dim) "
            f"({source.shape[dim]}), for dim: {dim}"
        )


def _index_add(a: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    check_index("index_add_", index)
    out = a.copy()
    line, source = _line(out), _line(source)
    at = _lines(index, line, dim, "index_add_")
    _check_source(line, at, source, "index_add", RuntimeError)
    refuse(at, line.shape, RuntimeError)
    add_at(line, at, source if alpha == 1 else source * number_array(alpha, a.dtype))
    return out


def _index_copy(a: Any, dim: int, index: Any, source: Any) -> Any:
    check_index("index_copy_", index)
    out = a.copy()
    line, source = _line(out), _line(source)
    at = _lines(index, line, dim, "index_copy_")
    _check_source(line, at, source, "index_copy", IndexError)
    refuse(at, line.shape, IndexError, "index_copy_(): ")
    line[at] = source
    return out


def _index_fill(a: Any, dim: int, index: Any, value: Any) -> Any:
    if index.dtype != INT64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    out = a.copy()
    line = _line(out)
    at = _lines(index, line, dim, "index_fill_")
    checked(at[-1], line.shape[len(at) - 1], len(at) - 1)
    if not isinstance(value, np.ndarray):
        value = number_array(value, a.dtype)
    elif value.ndim:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    line[at] = cast(value, a.dtype)
    return out


op(
    "index_add(self, dim, index, source, *, alpha=1)",
    _index_add,
    takes="index",
    inplace=True,
    self=lambda g: g,
    source=lambda g, xp, dim, index, alpha: xp.index_select(g, dim, index) * alpha,
)
op(
    "index_copy(self, dim, index, source)",
    _index_copy,
    takes="index",
    inplace=True,
    self=lambda g, xp, dim, index: xp._index_fill(g, dim, index, 0),
    source=lambda g, xp, dim, index: xp.index_select(g, dim, index),
)
_fill_row = op(
    "_index_fill(self, dim, index, value)",
    _index_fill,
    takes="index",
    function=False,
    method=False,
    inplace=True,
    node="IndexFill",
    discards=True,
    self=lambda g, xp, dim, index: xp._index_fill(g, dim, index, 0),
).function
_fill_tensor_row = op(
    "_index_fill_tensor(self, dim, index, value)",
    _index_fill,
    takes="index",
    function=False,
    method=False,
    inplace=True,
    node="IndexFillBackward1",
    self=lambda g, xp, dim, index: xp._index_fill(g, dim, index, 0),
    value=lambda g, xp, dim, index: xp.sum(g) - xp.sum(xp._index_fill(g, dim, index, 0)),
).function


@public
@method
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    """A copy with one value (a number or 0-d tensor) in the slices at `index`."""
    row = _fill_tensor_row if isinstance(value, Tensor) else _fill_row
    return row(input, dim, index, value)


@method
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    """`index_fill` in place."""
    if isinstance(value, Tensor):
        return self._index_fill_tensor_(dim, index, value)
    return self._index_fill_(dim, index, value)
