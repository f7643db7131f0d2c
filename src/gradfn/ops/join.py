"""Joining, splitting and rearranging with copies."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gradfn._device import contiguous_format
from gradfn._dtypes import BY_NUMPY, result_dtype
from gradfn._kinds import type_name
from gradfn.ops.rule import op
from gradfn.ops.shape import by_name, private
from gradfn.ops.sizes import sizes, wrapped
from gradfn.ops.world import PUBLIC, RAW, public
from gradfn.tensor import Tensor, method

# -- several to one --------------------------------------------------------------------


def _common(arrays: Any) -> Any:
    """The arrays in torch's promoted dtype, for which those with dims count first."""
    first = arrays[0].dtype
    if all(a.dtype is first for a in arrays):
        return arrays
    ranked = sorted(arrays, key=lambda a: a.ndim == 0)
    wanted, scalar = ranked[0].dtype, ranked[0].ndim == 0
    for a in ranked[1:]:
        wanted = result_dtype(wanted, scalar, a.dtype, a.ndim == 0)
    return [a.astype(wanted, copy=False) for a in arrays]


def _rows(a: Any) -> Any:
    """NumPy joins columnwise arrays into a columnwise one, which torch never does."""
    return a if a.flags.c_contiguous else np.ascontiguousarray(a)


def _cat(arrays: Any, dim: int = 0) -> Any:
    # A 1-d tensor without elements goes with everything: an old habit of torch's.
    some = [a for a in _common(arrays) if a.shape != (0,)] or arrays
    return _rows(np.concatenate(some, dim))


def _cat_error(error: Exception, arrays: Any, dim: int = 0) -> Exception | None:
    """What NumPy's error means; None for a dim that is not there."""
    if not arrays:
        return ValueError("torch.cat(): expected a non-empty list of Tensors")
    if isinstance(error, np.exceptions.AxisError):
        return None
    first = next((a.shape for a in arrays if a.shape != (0,)), (0,))
    for i, a in enumerate(arrays):
        have = f"but got {list(a.shape)} for tensor number {i} beside {list(first)}"
        if not a.ndim:
            what = "zero-dimensional tensor cannot be concatenated"
        elif a.ndim != len(first):
            what = "Tensors must have same number of dimensions"
        elif any(
            n != m for d, (n, m) in enumerate(zip(first, a.shape)) if d != dim % a.ndim
        ):
            what = f"Sizes of tensors must match except in dimension {dim}"
        else:
            continue
        if a.shape != (0,):
            return RuntimeError(f"{what}, {have}")
    return None


def _cat_grad(g: Any, xp: Any, dim: int, tensors_shape: Any) -> Any:
    at = wrapped(dim, g.ndim)
    whole, start, grads = (slice(None),) * at, 0, []
    for shape in tensors_shape:
        size = 0 if shape == (0,) else shape[at]
        piece = xp._slice(g, (*whole, slice(start, start + size), Ellipsis))
        grads.append(piece.reshape(shape) if shape == (0,) else piece)
        start += size
    return grads


_cat_row = private(
    "_cat(tensors, dim=0)", _cat, many="tensors", explain=_cat_error, tensors=_cat_grad
)


@public
def cat(tensors: Any, dim: Any = 0, *, axis: Any = None, out: Any = None) -> Any:
    """The tensors one after the other along `dim`. RuntimeError if other sizes differ."""
    result = _cat_row(tensors, int(dim if axis is None else axis))
    if out is None:
        return result
    from gradfn.ops.outs import into

    return into("cat", out, result, tensors)


PUBLIC["concat"] = PUBLIC["concatenate"] = cat


def _stack(arrays: Any, dim: int = 0) -> Any:
    if not arrays:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = arrays[0].shape
    for i, a in enumerate(arrays):
        if a.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at "
                f"entry 0 and {list(a.shape)} at entry {i}"
            )
    at = wrapped(dim, len(first) + 1)
    place = (*(slice(None),) * at, None, ...)
    return _rows(np.concatenate([a[place] for a in _common(arrays)], at))


op(
    "stack(tensors, dim=0)",
    _stack,
    many="tensors",
    method=False,
    tensors=lambda g, xp, dim: xp.unbind(g, dim),
)


def _at_least_each(n: int, function: str, tensors: Any) -> Any:
    if not tensors:
        raise RuntimeError(f"{function} expects a non-empty TensorList")
    return [PUBLIC[f"atleast_{n}d"](t) for t in tensors]


@public
def hstack(tensors: Any) -> Any:
    """Side by side: along dim 1, or 0 for 1-d tensors."""
    tensors = _at_least_each(1, "hstack", tensors)
    return cat(tensors, 0 if tensors[0]._array.ndim == 1 else 1)


@public
def vstack(tensors: Any) -> Any:
    """On top of each other: along dim 0, 1-d tensors as rows."""
    return cat(_at_least_each(2, "vstack", tensors), 0)


PUBLIC["row_stack"] = vstack


@public
def dstack(tensors: Any) -> Any:
    """Behind each other: along dim 2."""
    return cat(_at_least_each(3, "dstack", tensors), 2)


@public
def column_stack(tensors: Any) -> Any:
    """Side by side, with 0-d and 1-d tensors as columns."""
    return hstack([t.reshape(t.numel(), 1) if t.dim() < 2 else t for t in tensors])


# -- one to several --------------------------------------------------------------------

private("_zeros_of(self, shape)", lambda a, shape: np.zeros(shape, a.dtype), takes="self")


def _unbind(a: Any, dim: int = 0) -> Any:
    if not a.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    whole = (slice(None),) * wrapped(dim, a.ndim)
    return [a[(*whole, i, ...)] for i in range(a.shape[len(whole)])]


def _unbind_grad(gs: Any, xp: Any, dim: int) -> Any:
    some = next(g for g in gs if g is not None)
    return xp.stack([xp._zeros_like(some) if g is None else g for g in gs], dim)


op("unbind(self, dim=0)", _unbind, outputs="many", view=True, self=_unbind_grad)


def _pieces(a: Any, parts: Any, dim: int) -> Any:
    whole, start, out = (slice(None),) * wrapped(dim, a.ndim), 0, []
    for n in parts:
        out.append(a[(*whole, slice(start, start + n))])
        start += n
    return out


def _pieces_grad(gs: Any, xp: Any, self_shape: Any, parts: Any, dim: int) -> Any:
    some = next(g for g in gs if g is not None)
    at = wrapped(dim, len(self_shape))
    shapes = [(*self_shape[:at], n, *self_shape[at + 1 :]) for n in parts]
    pairs = zip(gs, shapes, strict=True)
    return xp._cat([xp._zeros_of(some, n) if g is None else g for g, n in pairs], at)


def _split_row(name: str, node: str) -> Any:
    options = {"outputs": "many", "view": True, "node": node, "self": _pieces_grad}
    return private(f"{name}(self, parts, dim)", _pieces, **options)


_split_equal = _split_row("_split", "Split")
_split_sizes = _split_row("_split_with_sizes", "SplitWithSizes")


def _length(function: str, t: Tensor, dim: int) -> int:
    """The size of a dim that is to be split; RuntimeError for a 0-d tensor."""
    if not t._array.ndim:
        raise RuntimeError(f"{function} expects at least a 1-dimensional tensor")
    return t._array.shape[wrapped(dim, t._array.ndim)]


@public
@method
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, **more: Any
) -> Any:
    """Pieces of one size (the last may be smaller), or of given sizes, along `dim`."""
    total, size = _length("split", tensor, dim), split_size_or_sections
    if size is None:
        size = by_name("split", "split_size", (), more)[0]
    if isinstance(size, Tensor) and not size._array.ndim:
        size = int(size)
    if not isinstance(size, int):
        return split_with_sizes(tensor, size, dim)
    if size < 0 or (not size and total):
        raise RuntimeError(
            f"split expects split_size be non-negative, but got split_size={size}"
        )
    parts = [min(size, total - i) for i in range(0, total, size)] if total else [0]
    return _split_equal(tensor, tuple(parts), dim)


@public
@method
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Pieces of given sizes along `dim`. RuntimeError if they don't add up."""
    parts = sizes((split_sizes,))
    total = _length("split_with_sizes", input, dim)
    if min(parts, default=0) < 0 or sum(parts) != total:
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries and to sum "
            f"exactly to {total} (input tensor's size at dimension {dim}), but got "
            f"split_sizes={list(parts)}"
        )
    return _split_sizes(input, parts, dim)


@public
@method
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """At most `chunks` pieces of equal size, the last perhaps smaller."""
    total = _length("chunk", input, dim)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not total:
        return _split_sizes(input, (0,) * chunks, dim)
    return split(input, -(-total // chunks), dim)


@public
@method
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, **more: Any
) -> Any:
    """Pieces of nearly equal size, or between given indices. RuntimeErrors."""
    total, where = _length("tensor_split", input, dim), indices_or_sections
    if where is None:
        word = "indices" if "indices" in more else "sections"
        where = by_name("tensor_split", word, (), more)[0]
    where = where.tolist() if isinstance(where, Tensor) else where
    if isinstance(where, int):
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        small, more_of = divmod(total, where)
        bounds = [i * small + min(i, more_of) for i in range(where + 1)]
    else:
        inner = [i if i >= 0 else i + total for i in sizes((where,))]
        bounds = [0, *(max(min(i, total), 0) for i in inner), total]
    return tuple(input.narrow(dim, a, max(b - a, 0)) for a, b in pairwise(bounds))


def _split_along(name: str, dim: int, least: int) -> None:
    def split_along(input: Tensor, indices_or_sections: Any) -> Any:
        shape, where = input._array.shape, indices_or_sections
        at = min(dim, len(shape) - 1)
        if len(shape) < least or (
            isinstance(where, int) and (where <= 0 or shape[at] % where)
        ):
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, of a size "
                f"that is divisible by the split_size; got {list(shape)} and {where}"
            )
        return tensor_split(input, where, at)

    split_along.__name__ = name
    split_along.__doc__ = "`tensor_split` along the dim of the name. RuntimeErrors."
    public(method(split_along))


_split_along("hsplit", 1, 1)
_split_along("vsplit", 0, 2)
_split_along("dsplit", 2, 3)

# -- other orders of elements ----------------------------------------------------------


def _flip(a: Any, dims: Any) -> Any:
    at = {wrapped(d, a.ndim) for d in dims}
    if len(at) < len(dims):
        raise RuntimeError(f"dim {dims[-1]} appears multiple times in the list of dims")
    return np.flip(a, tuple(at)).copy() if a.ndim else a.copy()


_flip_row = private("flip(self, dims)", _flip, self=lambda g, xp, dims: xp.flip(g, dims))


@public
@method
def flip(input: Tensor, *dims: Any, **named: Any) -> Any:
    """The elements in reverse order along the dims. RuntimeError if one is repeated."""
    if named or not dims:
        dims = by_name("flip", "dims", dims, named)
    return _flip_row(input, sizes(dims))


def _flip_along(name: str, dim: int) -> None:
    def flip_along(input: Tensor) -> Any:
        if input._array.ndim <= dim:
            raise RuntimeError(f"Input must be >= {dim + 1}-d.")
        return _flip_row(input, (dim,))

    flip_along.__name__ = name
    flip_along.__doc__ = f"The elements in reverse order along dim {dim}. RuntimeError."
    public(method(flip_along))


_flip_along("fliplr", 1)
_flip_along("flipud", 0)


_roll_row = private(
    "_roll(self, shifts, dims=None)",
    lambda a, shifts, dims=None: np.roll(a, shifts, dims),
    node="Roll",
    self=lambda g, xp, shifts, dims: xp._roll(g, tuple(-n for n in shifts), dims),
)


@public
@method
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Any:
    """Elements moved on along the dims (or flat), and round at the end. RuntimeError."""
    shifts, dims = sizes((shifts,)), () if dims is None else sizes((dims,))
    if not shifts or len(shifts) != (len(dims) or 1):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    return _roll_row(input, shifts, dims or None)


_rot90_row = private(
    "_rot90(self, k, dims)",
    lambda a, k, dims: np.rot90(a, k, dims).copy(),
    node="Rot90",
    self=lambda g, xp, k, dims: xp._rot90(g, -k, dims),
)


@public
@method
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Turned by 90 degrees `k` times in the plane of two dims. RuntimeErrors."""
    ndim, plane = input._array.ndim, sizes((dims,))
    if len(plane) != 2 or ndim < 2 or len({wrapped(d, ndim) for d in plane}) < 2:
        raise RuntimeError(
            "expected total rotation dims == 2, total dims >= 2 and rotation dims to be "
            f"different, but got dims = {list(plane)} and total dims = {ndim}"
        )
    return _rot90_row(input, k, plane)


# -- repeated --------------------------------------------------------------------------


def _repeat(a: Any, repeats: Any) -> Any:
    if len(repeats) < a.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor"
        )
    if min(repeats, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension: {repeats}")
    return _rows(np.tile(a, repeats))


def _repeat_grad(g: Any, xp: Any, self_shape: Any, repeats: Any) -> Any:
    shape = (1,) * (len(repeats) - len(self_shape)) + self_shape
    wide = [n for pair in zip(repeats, shape) for n in pair]
    return xp.sum(g.reshape(wide), tuple(range(0, len(wide), 2))) if wide else g


_repeat_row = private("_repeat(self, repeats)", _repeat, node="Repeat", self=_repeat_grad)


@method
def repeat(self: Tensor, *repeats: Any, **named: Any) -> Any:
    """The whole tensor repeated along each dim; new dims come in front. RuntimeErrors."""
    if named or not repeats:
        repeats = by_name("repeat", "repeats", repeats, named)
    return _repeat_row(self, sizes(repeats))


@public
@method
def tile(input: Tensor, *dims: Any, **named: Any) -> Any:
    """`repeat`, with 1 for the dims in front that are left out."""
    if named or not dims:
        dims = by_name("tile", "dims", dims, named)
    times = sizes(dims)
    return _repeat_row(input, (1,) * (input._array.ndim - len(times)) + times)


def _indices(repeats: Tensor, size: int) -> Any:
    """The index of each of `size` elements, as often as `repeats` says. RuntimeErrors."""
    counts = repeats._array
    if counts.ndim > 1 or counts.size not in (1, size):
        raise RuntimeError(
            "repeats must be 0-dim or 1-dim and have the same size as input along dim, but "
            f"got repeats of shape {list(counts.shape)} and input.size(dim) = {size}"
        )
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    return PUBLIC["tensor"](np.repeat(np.arange(size, dtype=counts.dtype), counts))


@public
@method
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: Any = None, *, output_size: Any = None
) -> Any:
    """Each element repeated, along `dim` or flat; or indices from counts. RuntimeErrors."""
    if repeats is None:
        return _indices(input, input._array.size)
    x = input.reshape(-1) if dim is None or not input._array.ndim else input
    shape, at = x._array.shape, wrapped(dim or 0, x._array.ndim)
    if isinstance(repeats, Tensor):
        out = x.index_select(at, _indices(repeats, shape[at]))
    elif (times := sizes((repeats, 0))[0]) < 0:
        raise RuntimeError("Repeats must be non-negative")
    else:  # summing, as the gradient of expand does, is faster than adding at indices
        wide = x.unsqueeze(at + 1).expand(*shape[: at + 1], times, *shape[at + 1 :])
        out = wide.clone(memory_format=contiguous_format).flatten(at, at + 1)
    if output_size not in (None, out._array.shape[at]):
        raise RuntimeError(f"repeat_interleave: Invalid output_size, got {output_size}")
    return out


# -- triangles and diagonals -----------------------------------------------------------


def _triangle(name: str) -> None:
    kernel = getattr(np, name)

    def part(a: Any, diagonal: int = 0) -> Any:
        if a.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return kernel(a, diagonal)

    op(
        f"{name}(self, diagonal=0)",
        part,
        inplace=True,
        self=lambda g, xp, diagonal: getattr(xp, name)(g, diagonal),
    )


_triangle("tril")
_triangle("triu")


def _diag_embed(a: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    ndim = a.ndim + 1
    first, second = wrapped(dim1, ndim), wrapped(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = a.shape[-1] + abs(offset)
    rest = iter(a.shape[:-1])
    shape = tuple(n if d in (first, second) else next(rest) for d in range(ndim))
    return RAW._diagonal_put(a, shape, offset, first, second)


_diag_embed_row = op(
    "diag_embed(self, offset=0, dim1=-2, dim2=-1)",
    _diag_embed,
    self=lambda g, xp, offset, dim1, dim2: xp.diagonal(g, offset, dim1, dim2),
).function


@public
@method
def diag(input: Tensor, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, as a copy; or a matrix with this diagonal."""
    if input._array.ndim == 1:
        return _diag_embed_row(input, diagonal)
    if input._array.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._array.ndim}D")
    return input.diagonal(diagonal).clone()


@public
@method
def diagflat(input: Tensor, offset: int = 0) -> Any:
    """A matrix with all elements on its diagonal."""
    return _diag_embed_row(input.reshape(-1), offset)


@public
def block_diag(*tensors: Any) -> Any:
    """A matrix with these as blocks along its diagonal, zeros elsewhere. RuntimeError."""
    if max((t._array.ndim for t in tensors), default=0) > 2:
        raise RuntimeError(
            "torch.block_diag: Input tensors must have 2 or fewer dimensions"
        )
    like = [np.empty((0,) * t.dim(), t._array.dtype) for t in tensors]
    kind = BY_NUMPY[_common(like)[0].dtype] if like else None
    blocks = [PUBLIC["atleast_2d"](t).to(kind) for t in tensors]
    width = sum(b._array.shape[1] for b in blocks)
    rows, left = ([] if blocks else [PUBLIC["zeros"](1, 0)]), 0
    for b in blocks:
        h, w = b._array.shape
        before, after = b.new_zeros(h, left), b.new_zeros(h, width - left - w)
        rows.append(cat([before, b, after], 1))
        left += w
    return cat(rows, 0)


# -- dims ------------------------------------------------------------------------------


def _at_least(n: int, widened: Any) -> None:
    def at_least(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            t = tensors[0]
            if t._array.ndim >= n:
                return t
            return widened(t) if t._array.ndim else t.reshape((1,) * n)
        given = tensors[0] if len(tensors) == 1 else tensors
        if not isinstance(given, (tuple, list)):
            raise TypeError(
                f"atleast_{n}d(): argument 'tensors' (position 1) must be Tensor or tuple of "
                f"Tensors, not {type_name(given)}"
            )
        for i, t in enumerate(given):
            if not isinstance(t, Tensor):
                raise TypeError(
                    f"expected Tensor as element {i} in argument 0, but got {type_name(t)}"
                )
        return tuple(at_least(t) for t in given)

    at_least.__name__ = f"atleast_{n}d"
    at_least.__doc__ = f"The tensor (or several) with at least {n} dims."
    public(at_least)


_at_least(1, None)
_at_least(2, lambda t: t.unsqueeze(0))
_at_least(3, lambda t: (t.unsqueeze(0) if t._array.ndim == 1 else t).unsqueeze(-1))
