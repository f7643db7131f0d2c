"""Sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import INT64
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


def _sort(a: Any, dim: int = -1, descending: bool = False) -> Any:
    dim = wrapped(dim, a.ndim)
    if not a.ndim:
        return a.copy(), np.asarray(0)
    at = order(a, dim, descending)
    return np.take_along_axis(a, at, dim), at


def _sorted_grad(g: Any, xp: Any, self_shape: Any, indices: Any, dim: int) -> Any:
    return xp._gather_back(g, self_shape, dim, indices)


_sort_row = op(
    "_sort(self, dim=-1, descending=False)",
    _sort,
    outputs="values indices",
    function=False,
    method=False,
    node="Sort",
    self=_sorted_grad,
).function


@public
@method
def sort(
    self: Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool = False,
    out: Any = None,
) -> Any:
    """`(values, indices)`, sorted along `dim`; equal elements keep their order."""
    return _sort_row(self, dim, descending)


@public
@method
def argsort(
    self: Tensor, dim: int = -1, descending: bool = False, stable: bool = False
) -> Any:
    """The indices that sort along `dim`."""
    return _sort_row(self.detach(), dim, descending)[1]


@public
@method
def msort(self: Tensor) -> Any:
    """The values sorted along the first dim."""
    return _sort_row(self, 0)[0]


def _topk(
    a: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    dim = wrapped(dim, a.ndim)
    size = a.shape[dim] if a.ndim else 1
    if not 0 <= k <= size:
        raise RuntimeError("selected index k out of range")
    if not a.ndim:
        return a.copy(), np.asarray(0)
    at = np.take(order(a, dim, largest), np.arange(k), dim)
    return np.take_along_axis(a, at, dim), at


op(
    "topk(self, k, dim=-1, largest=True, sorted=True)",
    _topk,
    outputs="values indices",
    self=_sorted_grad,
)


@public
@method
def nonzero(self: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not 0: one a row, or a tuple of columns."""
    a = self._array
    if as_tuple:
        return tuple(wrap(i) for i in np.nonzero(np.atleast_1d(a)))
    if not a.ndim:
        return wrap(np.zeros((int(bool(a)), 0), INT64))
    return wrap(np.argwhere(a))


@public
@method
def argwhere(self: Tensor) -> Any:
    """The indices of the elements that are not 0, one a row."""
    return nonzero(self)


@public
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
    if sorter is not None:
        lines = np.take_along_axis(lines, sorter._array, -1)
    values = input._array if isinstance(input, Tensor) else np.asarray(input)
    where: Any = side or ("right" if right else "left")
    if lines.ndim == 1:
        found = np.searchsorted(lines, values, where)
    else:
        found = np.empty(values.shape, INT64)
        for place in np.ndindex(lines.shape[:-1]):
            found[place] = np.searchsorted(lines[place], values[place], where)
    return wrap(np.asarray(found, np.int32 if out_int32 else INT64))


@public
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Any:
    """The bucket between sorted boundaries into which each value falls."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


Tensor.bucketize = bucketize  # type: ignore[attr-defined]


@public
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
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    """The different elements, sorted; with inverse indices and counts if asked for."""
    values, inverse, counts = np.unique(
        self._array, return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    if dim is None:
        inverse = inverse.reshape(self._array.shape)
    return _answers(
        values,
        inverse.reshape(-1) if dim is not None else inverse,
        counts,
        return_inverse,
        return_counts,
    )


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
    self: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    """Without elements that equal the one before them."""
    a = self._array.reshape(-1) if dim is None else np.moveaxis(self._array, dim, 0)
    flat = a.reshape(len(a), a.size // max(len(a), 1))
    new = np.ones(len(a), bool)
    new[1:] = (flat[1:] != flat[:-1]).any(1)
    inverse = np.cumsum(new) - 1
    values = a[new] if dim is None else np.moveaxis(a[new], 0, dim)
    if dim is None:
        inverse = inverse.reshape(self._array.shape)
    counts = np.diff(np.flatnonzero(np.append(new, True)))
    return _answers(values, inverse, counts, return_inverse, return_counts)


@public
@method
def bincount(self: Tensor, weights: Any = None, minlength: int = 0) -> Any:
    """How often each non-negative integer occurs, or the sum of its weights."""
    if self._array.ndim != 1 or (self._array.size and self._array.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    w = None if weights is None else weights._array
    out = np.bincount(self._array, w, minlength)
    return wrap(out if w is None or w.dtype != np.float32 else out.astype(np.float32))


@public
@method
def histc(self: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """How many elements fall into each of equal bins between min and max."""
    low, high = (min, max) if min != max else (self._array.min(), self._array.max())
    found, _ = np.histogram(self._array, bins, (float(low), float(high)))
    return wrap(found.astype(self._array.dtype))
