"""Sorting and searching; what stands at flat places, or where a mask is true."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import INT64
from gradfn.graph.batched import by_sample, refuse_dynamic
from gradfn.graph.saved import legacy_type
from gradfn.ops.adding import add_at
from gradfn.ops.rule import op
from gradfn.ops.sizes import wrapped
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method, wrap


def order(a: Any, dim: int, descending: bool) -> Any:
    """Indices that sort `a`, equal elements in their order; nan counts as largest."""
    if not descending:
        return np.argsort(a, dim, kind="stable")
    n = a.shape[dim] - 1
    return np.flip(n - np.argsort(np.flip(a, dim), dim, kind="stable"), dim)


def picked(a: Any, at: Any, dim: int) -> Any:
    """The elements that `at` names along `dim`."""
    index: list[Any] = [
        np.arange(n).reshape((n,) + (1,) * (a.ndim - d - 1))
        for d, n in enumerate(a.shape)
    ]
    index[dim] = at
    return a[tuple(index)]


def check_order(name: str, a: Any, kinds: str) -> None:
    """RuntimeError for dtypes that torch does not sort."""
    if a.dtype.kind in kinds:
        kind = "complex" if a.dtype.kind == "c" else "bool"
        raise RuntimeError(f"{name} does not support {kind} dtypes on CPU")


def _sort(a: Any, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    check_order("Sort", a, "c")
    dim = wrapped(dim, a.ndim)
    if not a.ndim:
        return a.copy(), np.asarray(0)
    at = order(a, dim, descending)
    return picked(a, at, dim), at


def _sorted_grad(g: Any, xp: Any, self_shape: Any, indices: Any, dim: int) -> Any:
    return xp._gather_back(g, self_shape, dim, indices)


# Equal elements always keep their order; `stable` decides only on the node's name.
_sort_row = op(
    "sort(self, dim=-1, descending=False, stable=None)",
    _sort,
    outputs="values indices",
    overload="stable is not None",
    self=_sorted_grad,
).function


@public
@method
def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False
) -> Any:
    """The indices that sort along `dim`."""
    return _sort_row(input.detach(), dim, descending)[1]


@public
@method
def msort(input: Tensor) -> Any:
    """The values sorted along the first dim."""
    return _sort_row(input, 0)[0]


def _topk(
    a: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    check_order("topk", a, "cb")
    dim = wrapped(dim, a.ndim)
    size = a.shape[dim] if a.ndim else 1
    if not 0 <= k <= size:
        raise RuntimeError("selected index k out of range")
    if not a.ndim:
        return (a.copy(), np.asarray(0)) if k else (a.reshape(1)[:0], np.empty(0, INT64))
    at = order(a, dim, largest)[(slice(None),) * dim + (slice(k),)].copy()
    return picked(a, at, dim), at


op(
    "topk(self, k, dim=-1, largest=True, sorted=True)",
    _topk,
    outputs="values indices",
    self=_sorted_grad,
)


@public
@method
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not 0: one a row, or a tuple of columns."""
    refuse_dynamic("nonzero", input)
    a = input._array
    if as_tuple:
        return tuple(wrap(i) for i in np.nonzero(np.atleast_1d(a)))
    if not a.ndim:
        return wrap(np.zeros((int(bool(a)), 0), INT64))
    return wrap(np.argwhere(a))


@public
@method
def argwhere(input: Tensor) -> Any:
    """The indices of the elements that are not 0, one a row."""
    return nonzero(input)


@public
@by_sample
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
) -> Any:
    """Where values belong in sorted lines, so that they stay sorted."""
    lines = sorted_sequence._array
    values = input._array if isinstance(input, Tensor) else np.asarray(input)
    if sorter is not None:
        check_sorter(lines, sorter._array)
        lines = np.take_along_axis(lines, sorter._array, -1)
    check_lines(lines, values)
    if side not in (None, "left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if right and side == "left":
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of "
            "left while right was True"
        )
    where: Any = side or ("right" if right else "left")
    if lines.ndim == 1:
        found = np.searchsorted(lines, values, where)
    else:
        found = np.empty(values.shape, INT64)
        for place in np.ndindex(lines.shape[:-1]):
            found[place] = np.searchsorted(lines[place], values[place], where)
    return wrap(np.asarray(found, np.int32 if out_int32 else INT64))


def check_sorter(lines: Any, sorter: Any) -> None:
    """RuntimeError unless the sorter has an int64 index for each element."""
    if sorter.dtype != INT64:
        raise RuntimeError(
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
            f"{sorter.dtype}"
        )
    if sorter.shape != lines.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got "
            f"boundary tensor {list(lines.shape)} and sorter tensor {list(sorter.shape)}"
        )
    if sorter.size and not 0 <= sorter.min() <= sorter.max() < lines.shape[-1]:
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


def check_lines(lines: Any, values: Any) -> None:
    """RuntimeError unless each line of values has a sorted line."""
    if not lines.ndim:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but "
            "got 0 dimension"
        )
    if lines.ndim > 1 and lines.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first "
            "N-1 dimensions of boundaries tensor and input value tensor must match, but "
            f"we got boundaries tensor {list(lines.shape)} and input value tensor "
            f"{list(values.shape)}"
        )


@public
@by_sample
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Any:
    """The bucket between sorted boundaries into which each value falls."""
    if boundaries._array.ndim != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})"
        )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@public
@by_sample
def isin(
    elements: Any,
    test_elements: Any,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Any:
    """Is each element among the others?"""
    a = elements._array if isinstance(elements, Tensor) else np.asarray(elements)
    b = (
        test_elements._array
        if isinstance(test_elements, Tensor)
        else np.asarray(test_elements)
    )
    return wrap(np.isin(a, b, invert=invert))


@public
@method
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    """The different elements, sorted; with inverse indices and counts if asked for.

    With `dim`, the different slices. nan equals nothing, so that each one stays.
    """
    refuse_dynamic("_unique2", input)
    a = input._array
    dim = None if dim is None else wrapped(dim, a.ndim)
    values, inverse, counts = np.unique(
        a, return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    inverse = inverse.reshape(a.shape if dim is None else -1)
    return _answers(values, inverse, counts, return_inverse, return_counts)


def _answers(
    values: Any, inverse: Any, counts: Any, with_inverse: bool, with_counts: bool
) -> Any:
    out = [wrap(values)]
    if with_inverse:
        out.append(wrap(inverse.astype(INT64)))
    if with_counts:
        out.append(wrap(counts.astype(INT64)))
    return out[0] if len(out) == 1 else tuple(out)


@public
@method
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    """Without elements that equal the one before them."""
    refuse_dynamic("unique_consecutive", input)
    a = input._array.reshape(-1) if dim is None else np.moveaxis(input._array, dim, 0)
    flat = a.reshape(len(a), a.size // max(len(a), 1))
    new = np.ones(len(a), bool)
    new[1:] = (flat[1:] != flat[:-1]).any(1)
    inverse = np.cumsum(new) - 1
    values = a[new] if dim is None else np.moveaxis(a[new], 0, dim)
    if dim is None:
        inverse = inverse.reshape(input._array.shape)
    counts = np.diff(np.flatnonzero(np.append(new, True)))
    return _answers(values, inverse, counts, return_inverse, return_counts)


# -- flat places, and masks -------------------------------------------------------------


def _flat(index: Any, n: int, name: str) -> Any:
    """Flat indices in one dimension. RuntimeError, IndexError."""
    a = index if isinstance(index, np.ndarray) else index._array
    if a.dtype != INT64:
        kind = legacy_type(str(a.dtype))[6:-6]
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {kind}")
    if a.size and not n:
        raise IndexError(f"{name}(): tried to {name} from an empty tensor")
    if a.size and not -n <= a.min() <= a.max() < n:
        bad = int(a.min() if a.min() < -n else a.max())
        raise IndexError(
            f"out of range: tried to access index {bad} on a tensor of {n} elements."
        )
    return a.reshape(-1)


def _take(a: Any, index: Any) -> Any:
    return a.reshape(-1).take(_flat(index, a.size, "take")).reshape(index.shape)


def _take_back(g: Any, shape: Any, index: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    add_at(out.reshape(-1), (index.reshape(-1),), g.reshape(-1))
    return out


op(
    "_take_back(self, shape, index)",
    _take_back,
    takes="index",
    function=False,
    method=False,
    self=lambda g, xp, index: xp.take(g, index),
)
op(
    "take(self, index)",
    _take,
    takes="index",
    discards=True,
    self=lambda g, xp, self_shape, index: xp._take_back(g, self_shape, index),
)


def _put(a: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    if source.dtype != a.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype "
            f"= {a.dtype} and source.dtype = {source.dtype}"
        )
    if source.size != index.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but "
            f"got source.numel() = {source.size}, index.numel() = {index.size}"
        )
    out = a.copy()
    flat, at = out.reshape(-1), _flat(index, a.size, "put_")
    if accumulate:
        np.add.at(flat, at, source.reshape(-1))
    else:
        flat[at] = source.reshape(-1)
    return out


def _put_source(g: Any, xp: Any, index: Any, accumulate: bool, source_shape: Any) -> Any:
    if isinstance(index, Tensor) and type(index._array) is not np.ndarray:
        return xp.take(g, index)  # samples of vmap: each has its own index
    at = (_flat(index, g.size if isinstance(g, np.ndarray) else g.numel(), "put_"),)
    read = xp._index if accumulate else xp._index_last
    return read(g.reshape(-1), at).reshape(source_shape)


def _put_self(g: Any, xp: Any, index: Any, accumulate: bool) -> Any:
    return g if accumulate else xp.put(g, index, xp._zeros_like(xp.take(g, index)))


op(
    "put(self, index, source, accumulate=False)",
    _put,
    takes="index",
    inplace=True,
    self=_put_self,
    source=_put_source,
)


def _masked_select(a: Any, mask: Any) -> Any:
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"masked_select: expected BoolTensor for mask, got {mask.dtype}"
        )
    if a.shape != mask.shape:
        a, mask = np.broadcast_arrays(a, mask)
    return a[mask]


def _unmasked(g: Any, mask: Any, shape: Any) -> Any:
    shape = np.broadcast_shapes(mask.shape, shape)
    out = np.zeros(shape, g.dtype)
    out[np.broadcast_to(mask, shape)] = g
    return out


op(
    "_unmasked(self, mask, shape)",
    _unmasked,
    takes="mask",
    function=False,
    method=False,
    self=lambda g, xp, mask: xp.masked_select(g, mask),
)
op(
    "masked_select(self, mask)",
    _masked_select,
    takes="mask",
    discards=True,
    self=lambda g, xp, mask, self_shape: xp._unmasked(g, mask, self_shape),
)


def _masked_scatter(a: Any, mask: Any, source: Any) -> Any:
    if mask.dtype.kind != "b":
        kind = legacy_type(str(mask.dtype))[6:-6]
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {kind}"
        )
    if source.dtype != a.dtype:
        kinds = " and ".join(legacy_type(str(x.dtype))[6:-6] for x in (a, source))
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {kinds}"
        )
    shape = np.broadcast_shapes(a.shape, mask.shape)
    out = np.broadcast_to(a, shape).copy()
    where = np.broadcast_to(mask, shape)
    n = int(where.sum())
    if n > source.size:
        raise RuntimeError(
            "masked_scatter: Number of elements of source < number of ones in mask "
            f"({source.size} and {n})"
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

# -- counting --------------------------------------------------------------------------


@public
@method
@by_sample
def bincount(self: Tensor, weights: Any = None, minlength: int = 0) -> Any:
    """How often each non-negative integer occurs, or the sum of its weights."""
    if self._array.ndim != 1 or (self._array.size and self._array.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    w = None if weights is None else weights._array
    out = np.bincount(self._array, w, minlength)
    return wrap(out if w is None or w.dtype != np.float32 else out.astype(np.float32))


@public
@method
@by_sample
def histc(self: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """How many elements fall into each of equal bins between min and max."""
    low, high = (min, max) if min != max else (self._array.min(), self._array.max())
    found, _ = np.histogram(self._array, bins, (float(low), float(high)))
    return wrap(found.astype(self._array.dtype))
