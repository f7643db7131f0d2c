"""Gathering and scattering along a dimension, and through masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import INT64
from gradfn.ops.index import checked
from gradfn.ops.rule import op
from gradfn.ops.sizes import wrapped
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method, wrap

# -- along a dim, an index for each element --------------------------------------------


def check_index(name: str, index: Any) -> None:
    """RuntimeError unless the index has integers."""
    if index.size and index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


def coordinates(index: Any, dim: int, shape: Any, name: str) -> Any:
    """NumPy's index for `index` along `dim`. IndexError outside."""
    check_index(name, index)
    if index.ndim != len(shape):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as input tensor: "
            f"{index.ndim} and {len(shape)}"
        )
    if index.size:
        low, high = int(index.min()), int(index.max())
        if low < 0 or high >= shape[dim]:
            raise IndexError(
                f"index {low if low < 0 else high} is out of bounds for dimension {dim} "
                f"with size {shape[dim]}"
            )
    for d, (n, m) in enumerate(zip(index.shape, shape, strict=True)):
        if d != dim and n > m:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index.shape)} "
                f"to be no larger than self {list(shape)} apart from dimension {dim}"
            )
    at: list[Any] = list(np.indices(index.shape, sparse=True))
    at[dim] = index.astype(INT64, copy=False)
    return tuple(at)


def _line(a: Any) -> Any:
    return a.reshape(1) if not a.ndim else a


def _gather(a: Any, dim: int, index: Any) -> Any:
    dim, shape = wrapped(dim, a.ndim), index.shape
    a, index = _line(a), _line(index)
    return a[coordinates(index, dim, a.shape, "gather")].reshape(shape)


def _scattered(a: Any, dim: int, index: Any, src: Any, write: Any, name: str) -> Any:
    """A copy of `a` into which `write(array, coordinates, values)` wrote."""
    dim = wrapped(dim, a.ndim)
    out = _line(a.copy())
    index = _line(index)
    if isinstance(src, np.ndarray):
        src = _line(src)
        for d, (n, m) in enumerate(zip(index.shape, src.shape, strict=True)):
            if n > m:
                raise RuntimeError(
                    f"Expected index {list(index.shape)} to be no larger than src "
                    f"{list(src.shape)} in dimension {d}"
                )
        src = src[tuple(slice(n) for n in index.shape)]
        if src.dtype != a.dtype:
            raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    write(out, coordinates(index, dim, out.shape, name), src)
    return out.reshape(a.shape)


def _set(out: Any, at: Any, src: Any) -> None:
    out[at] = src


def _scatter(a: Any, dim: int, index: Any, src: Any) -> Any:
    return _scattered(a, dim, index, src, _set, "scatter")


def _scatter_add(a: Any, dim: int, index: Any, src: Any) -> Any:
    return _scattered(a, dim, index, src, np.add.at, "scatter_add")


def _gather_back(g: Any, shape: Any, dim: int, index: Any) -> Any:
    return _scatter_add(np.zeros(shape, g.dtype), dim, index, g)


op(
    "_gather_back(self, shape, dim, index)",
    _gather_back,
    takes="index",
    function=False,
    method=False,
    self=lambda g, xp, dim, index: xp._gather(g, dim, index),
)
_gather_row = op(
    "_gather(self, dim, index)",
    _gather,
    takes="index",
    function=False,
    method=False,
    node="Gather",
    self=lambda g, xp, self_shape, dim, index: xp._gather_back(g, self_shape, dim, index),
).function


@public
@method
def gather(
    self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Any = None
) -> Any:
    """For each index along `dim` the element that it names."""
    return _gather_row(self, dim, index)


@public
def take_along_dim(input: Tensor, indices: Tensor, dim: Any = None) -> Any:
    """`gather` with broadcasting; flat if `dim` is None."""
    if dim is None:
        input, indices, dim = input.reshape(-1), indices.reshape(-1), 0
    at = wrapped(dim, input._array.ndim)
    check_index("take_along_dim", indices._array)
    indices = wrap(checked(indices._array, input.shape[at], at) % max(input.shape[at], 1))
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
    got = xp._gather(g, dim, index)
    if tuple(got.shape) == tuple(src_shape):
        return got
    return xp._place(got, src_shape, tuple(slice(n) for n in got.shape))


op(
    "_scatter_value(self, dim, index, value)",
    _scatter,
    takes="index",
    function=False,
    method=False,
    inplace=True,
    node="Scatter",
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
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
) -> Any:
    """A copy with `src` (a tensor or number) written at the index along `dim`."""
    return _scatter_call(self, dim, index, value if src is None else src, reduce, "")


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
    out = _scattered(a, dim, index, src, _UFUNC[reduce].at, "scatter_reduce")
    if reduce == "mean":
        n = _counts(a, dim, index, include_self)
        out = out / n if out.dtype.kind in "fc" else out // n
    return out.astype(a.dtype, copy=False)


def _neutral(reduce: str, dtype: Any) -> Any:
    value = _NEUTRAL[reduce]
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
        product, zeros, filled, _ = _product_parts(
            xp, self, dim, index, src, include_self
        )
        return xp._keep(g * product / filled, zeros == (self == 0))
    if reduce in ("amax", "amin"):
        return xp._keep(g / _winners(xp, self, dim, index, src, result), self == result)
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
        product, zeros, _, filled = _product_parts(
            xp, self, dim, index, src, include_self
        )
        slope = _gathered(g * product, xp, dim, index, src_shape) / filled
        there = _gathered(zeros, xp, dim, index, src_shape)
        return xp._keep(slope, there == (src == 0))
    if reduce in ("amax", "amin"):
        won = src == _gathered(result, xp, dim, index, src_shape)
        g = g / _winners(xp, self, dim, index, src, result)
        return xp._keep(_gathered(g, xp, dim, index, src_shape), won)
    return _gathered(g, xp, dim, index, src_shape)


def _product_parts(
    xp: Any, self: Any, dim: int, index: Any, src: Any, include_self: bool
) -> Any:
    """At each place the product of what is not 0, and how many zeros there are.

    Also self and src with 1 for 0, by which the product can be divided. The product of
    all others is not 0 where none of the others is.
    """
    empty, none = self == 0, src == 0
    own, other = xp._masked_fill(self, empty, 1), xp._masked_fill(src, none, 1)
    product = xp.scatter_reduce(own, dim, index, other, "prod", include_self=include_self)
    ones, others = xp.ones_like(self), xp.ones_like(src)
    zeros = xp.scatter_reduce(
        ones * empty, dim, index, others * none, "sum", include_self=include_self
    )
    return product, zeros, own, other


def _winners(xp: Any, self: Any, dim: int, index: Any, src: Any, result: Any) -> Any:
    """Among how many values the extreme is shared."""
    won = src == xp._gather(result, dim, index)
    ours = (self == result) * xp.ones_like(self)
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
    check_index(name, index)
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector")
    at = wrapped(dim, a.ndim)
    size = a.shape[at] if a.ndim else 1
    return (slice(None),) * at + (checked(index.reshape(-1), size, at),)


def _index_select(a: Any, dim: int, index: Any) -> Any:
    line = _line(a)
    out = line[_lines(index, line, dim, "index_select")]
    return out.reshape(()) if not a.ndim else out


def _select_back(g: Any, shape: Any, dim: int, index: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    line = _line(out)
    np.add.at(line, _lines(index, line, dim, "index_select"), _line(g))
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
    self=lambda g, xp, self_shape, dim, index: xp._select_back(g, self_shape, dim, index),
)


def _with_lines(write: Any, name: str) -> Any:
    def kernel(a: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
        out = a.copy()
        line = _line(out)
        values = source
        if isinstance(source, np.ndarray):
            if source.dtype != a.dtype:
                raise RuntimeError(
                    f"{name}(): self and source expected to have the same dtype"
                )
            values = _line(source) if alpha == 1 else _line(source) * a.dtype.type(alpha)
        write(line, _lines(index, line, dim, name), values)
        return out

    return kernel


op(
    "index_add(self, dim, index, source, *, alpha=1)",
    _with_lines(np.add.at, "index_add"),
    takes="index",
    inplace=True,
    self=lambda g: g,
    source=lambda g, xp, dim, index, alpha: xp.index_select(g, dim, index) * alpha,
)
op(
    "index_copy(self, dim, index, source)",
    _with_lines(_set, "index_copy"),
    takes="index",
    inplace=True,
    self=lambda g, xp, dim, index: xp._index_fill(g, dim, index, 0),
    source=lambda g, xp, dim, index: xp.index_select(g, dim, index),
)
op(
    "_index_fill(self, dim, index, value)",
    _with_lines(_set, "index_fill"),
    takes="index",
    function=False,
    method=False,
    inplace=True,
    node="IndexFill",
    self=lambda g, xp, dim, index: xp._index_fill(g, dim, index, 0),
)
op(
    "_index_fill_tensor(self, dim, index, value)",
    _with_lines(_set, "index_fill"),
    takes="index",
    function=False,
    method=False,
    inplace=True,
    node="IndexFill",
    self=lambda g, xp, dim, index: xp._index_fill(g, dim, index, 0),
    value=lambda g, xp, dim, index: xp.sum(g) - xp.sum(xp._index_fill(g, dim, index, 0)),
)


@public
@method
def index_fill(self: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    """A copy with one value (a number or 0-d tensor) in the slices at `index`."""
    from gradfn.ops.rule import TABLE

    kind = "_index_fill_tensor" if isinstance(value, Tensor) else "_index_fill"
    return TABLE[kind].function(self, dim, index, value)


@method
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    """`index_fill` in place."""
    if isinstance(value, Tensor):
        return self._index_fill_tensor_(dim, index, value)
    return self._index_fill_(dim, index, value)


# -- flat ------------------------------------------------------------------------------


@public
@method
def take(self: Tensor, index: Tensor) -> Any:
    """The elements at flat indices, in the index's shape."""
    n = self._array.size
    flat = wrap(index._array.reshape(-1) % max(n, 1))
    checked(index._array, n, 0)
    return self.reshape(-1).index_select(0, flat).reshape(index._array.shape)


@method
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Writes elements at flat indices, in place."""
    return self.copy_(put(self, index, source, accumulate))  # type: ignore[no-any-return]


@public
@method
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    """A copy with elements written at flat indices."""
    flat = self.reshape(-1)
    at = (wrap(index._array.reshape(-1)),)
    return flat.index_put(at, source.reshape(-1), accumulate).reshape(self._array.shape)


# -- masks -----------------------------------------------------------------------------


@public
@method
def masked_select(self: Tensor, mask: Tensor) -> Any:
    """The elements where the mask is true, in one dimension."""
    if mask._array.dtype.kind != "b":
        raise RuntimeError(
            f"masked_select: expected BoolTensor for mask, got {mask.dtype}"
        )
    shape = np.broadcast_shapes(self._array.shape, mask._array.shape)
    return self.expand(shape)[mask.expand(shape)]


def _masked_scatter(a: Any, mask: Any, source: Any) -> Any:
    shape = np.broadcast_shapes(a.shape, mask.shape)
    out = np.broadcast_to(a, shape).copy()
    where = np.broadcast_to(mask, shape)
    n = int(where.sum())
    if n > source.size:
        raise RuntimeError(
            f"masked_scatter: expected self to have {n} elements of source, got {source.size}"
        )
    out[where] = source.reshape(-1)[:n]
    return out


def _masked_source(g: Any, mask: Any, shape: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    picked = g[np.broadcast_to(mask, g.shape)]
    out.reshape(-1)[: picked.size] = picked
    return out


op(
    "_masked_source(self, mask, shape)",
    _masked_source,
    takes="mask",
    function=False,
    method=False,
    self=lambda g, xp, self_shape, mask: xp.masked_scatter(
        xp._zeros_of(g, self_shape), mask, g
    ),
)
op(
    "masked_scatter(self, mask, source)",
    _masked_scatter,
    takes="mask",
    inplace=True,
    self=lambda g, xp, mask: xp._keep(g, ~mask),
    source=lambda g, xp, mask, source_shape: xp._masked_source(g, mask, source_shape),
)
