"""Histograms, combinations, mantissas, hashes: what counts and takes numbers apart."""

from __future__ import annotations

import math
from itertools import combinations as _combinations
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from gradfn.graph.batched import by_sample
from gradfn.ops.reduce import axes, result_type
from gradfn.ops.rule import op
from gradfn.ops.shape import private
from gradfn.ops.sizes import sizes
from gradfn.ops.world import PUBLIC, public
from gradfn.tensor import Tensor, method, wrap

# -- histograms ------------------------------------------------------------------------


def _bounds(column: Any, given: Any, dim: int) -> tuple[float, float]:
    """Where the bins of a dim begin and end. RuntimeErrors."""
    if given is not None:
        low, high = given
    elif column.size:
        low, high = column.min(), column.max()
    else:
        low, high = 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(
            f"torch.histogramdd: dimension {dim}'s range [{low}, {high}] is not finite"
        )
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low} max {high} "
            f"for dimension {dim}"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges(column: Any, bins: Any, given: Any, dim: int, name: str) -> Any:
    """The edges of the bins of a dim."""
    if isinstance(bins, Tensor):
        if bins._array.ndim != 1 or not bins._array.size:
            raise RuntimeError(
                f"torch.{name}: bins tensor should have one dimension and an element, but "
                f"got {list(bins.shape)} in the bins tensor for dimension {dim}"
            )
        if bins._array.dtype != column.dtype:
            raise RuntimeError(
                f"torch.{name}: input tensor and bins tensors should have the same dtype, "
                f"but got {column.dtype} and {bins.dtype} for dimension {dim}"
            )
        return bins._array.copy()
    if bins <= 0:
        raise RuntimeError(
            f"torch.{name}(): bins must be > 0, but got {bins} for dimension {dim}"
        )
    low, high = _bounds(column, given, dim)
    return PUBLIC["linspace"](
        float(low), float(high), bins + 1, dtype=wrap(column).dtype
    )._array


def _counted(points: Any, edges: list[Any], weight: Any) -> Any:
    """How many (or how heavy) points lie in each bin; the last edge belongs to its bin."""
    shape = tuple(e.size - 1 for e in edges)
    inside = np.ones(points.shape[0], bool)
    flat = np.zeros(points.shape[0], np.int64)
    for column, e in zip(points.T, edges, strict=True):
        place = np.searchsorted(e, column, "right") - 1
        place[column == e[-1]] = e.size - 2
        inside &= (column >= e[0]) & (column <= e[-1])
        flat = flat * (e.size - 1) + place
    some = None if weight is None else weight[inside].astype(np.float64)
    hist = np.bincount(flat[inside], some, math.prod(shape)).astype(points.dtype)
    return hist.reshape(shape)


def _histogram(
    name: str, x: Tensor, bins: list[Any], range: Any, weight: Any, density: bool
) -> Any:
    a = x._array
    if a.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f"\"{name}\" not implemented for '{x.dtype}'")
    points = a.reshape(-1, a.shape[-1])
    if range is not None and len(range) != 2 * len(bins):
        raise RuntimeError(
            f"torch.{name}: for a {len(bins)}-dimensional histogram range should have "
            f"{2 * len(bins)} elements, but got {len(range)}"
        )
    heavy = None
    if weight is not None:
        if weight._array.shape != a.shape[:-1] or weight._array.dtype != a.dtype:
            raise RuntimeError(
                f"torch.{name}: if weight tensor is provided it should have the same shape "
                "and dtype as the input tensor excluding its innermost dimension, but got "
                f"weight with shape {list(weight.shape)} and {weight.dtype}"
            )
        heavy = weight._array.reshape(-1)
    edges = []
    for i, b in enumerate(bins):
        given = None if range is None else range[2 * i : 2 * i + 2]
        edges.append(_edges(points[:, i], b, given, i, name))
    hist = _counted(points, edges, heavy)
    if density:
        hist = _dense(hist, edges)
    return wrap(hist), [wrap(e) for e in edges]


def _dense(hist: Any, edges: list[Any]) -> Any:
    """Per volume, so that the integral is 1."""
    hist = hist / hist.sum()
    for d, e in enumerate(edges):
        hist = hist / np.diff(e).reshape((-1,) + (1,) * (len(edges) - d - 1))
    return hist


@public
@method
@by_sample
def histogram(
    input: Tensor,
    bins: Any,
    *,
    range: Any = None,
    weight: Any = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """(counts or weights in each bin, edges); `bins` is their number or the edges."""
    flat = input.detach().reshape(-1, 1)
    heavy = None if weight is None else weight.detach().reshape(-1)
    hist, edges = _histogram("histogram", flat, [bins], range, heavy, density)
    result = result_type("histogram", "hist bin_edges")(hist, edges[0])
    if out is None:
        return result
    from gradfn.ops.outs import into

    return into("histogram", out, result)


@public
@by_sample
def histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    """(counts, edges of each dim) of points, whose coordinates are the last dim."""
    if input._array.ndim < 2:
        raise RuntimeError(
            "torch.histogramdd: input tensor should have at least 2 dimensions, but got "
            f"{input._array.ndim}"
        )
    n = input._array.shape[-1]
    bins = [bins] * n if isinstance(bins, int) else list(bins)
    if len(bins) != n:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the "
            f"input. Expected {n}, got {len(bins)}"
        )
    x = input.detach()
    hist, edges = _histogram("histogramdd", x, bins, range, weight, density)
    return result_type("histogramdd", "hist bin_edges")(hist, tuple(edges))


# -- places ----------------------------------------------------------------------------


@public
@method
@by_sample
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` places that are not 0, one a row; filled up with `fill_value`."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    a = input._array
    found = np.argwhere(a)[:size].astype(np.int64)
    out = np.full((size, a.ndim), fill_value, np.int64)
    out[: found.shape[0]] = found
    return wrap(out)


@public
@by_sample
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The index in each dim of `shape` for places in the flat tensor."""
    if not isinstance(indices, Tensor) or indices._array.dtype.kind not in "iu":
        kind = getattr(indices, "dtype", type(indices))
        raise TypeError(f"expected 'indices' to be integer dtype, but got {kind}")
    if not isinstance(shape, (int, tuple, list)):
        raise TypeError(
            f"expected 'shape' to be int or sequence of ints, but got {type(shape)}"
        )
    shape = (shape,) if isinstance(shape, int) else sizes((shape,))
    if min(shape, default=0) < 0:
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    found: list[Tensor] = []
    rest = indices._array.astype(np.int64)
    for n in reversed(shape):
        found.insert(0, wrap(np.asarray(rest % n)))
        rest = rest // n
    return tuple(found)


@public
@method
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    """All choices of `r` elements of a vector, one a row, in order. RuntimeErrors."""
    if input._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if not r:
        return input.new_empty(0)
    choose = combinations_with_replacement if with_replacement else _combinations
    places = list(choose(range(input._array.shape[0]), r))
    return input[wrap(np.array(places, np.int64).reshape(-1, r))]


# -- parts of numbers ------------------------------------------------------------------


def _frexp(a: Any) -> Any:
    if a.dtype.kind != "f":
        raise RuntimeError(
            f"torch.frexp() only supports floating-point dtypes, not torch.{a.dtype}"
        )
    mantissa, exponent = np.frexp(a)
    return [np.asarray(mantissa), np.asarray(exponent, np.int32)]


op(
    "frexp(self)",
    _frexp,
    outputs="mantissa exponent",
    self=lambda g, xp, exponent: xp.ldexp(g, -exponent),
)


def _hash(a: Any, dim: Any, keepdim: bool) -> Any:
    if a.dtype.kind == "c":
        raise NotImplementedError(f"hash_tensor is not implemented for {a.dtype}")
    wide = a.astype(np.float64 if a.dtype.kind == "f" else np.int64).view(np.uint64)
    return np.bitwise_xor.reduce(wide, axes(a, dim), keepdims=keepdim)


_hash_row = private("_hash(self, dim, keepdim)", _hash, takes="self")


@public
@method
def hash_tensor(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, mode: int = 0
) -> Any:
    """The bits of all elements in 64 of them, by exclusive or: the only mode, 0."""
    if mode:
        raise RuntimeError(f"hash_tensor: mode 0 (xor) is all there is, but got {mode}")
    return _hash_row(input, dim, keepdim)
