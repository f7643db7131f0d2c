"""Joining, splitting and rearranging with copies."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gradfn._device import contiguous_format
from gradfn._dtypes import default_dtype, result_dtype
from gradfn.ops.rule import op
from gradfn.ops.shape import by_name, private, unsafe_view
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
    if not arrays:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, a in enumerate(arrays):
        if not a.ndim:
            raise RuntimeError(
                f"zero-dimensional tensor (at position {i}) cannot be concatenated"
            )
    # A 1-d tensor without elements goes with everything: an old habit of torch's.
    some = [a for a in _common(arrays) if a.shape != (0,)] or arrays
    at = wrapped(dim, some[0].ndim)
    _check_sizes(some, at)
    return _rows(np.concatenate(some, at))


def _check_sizes(arrays: Any, dim: int) -> None:
    first = arrays[0].shape
    for i, a in enumerate(arrays):
        if a.ndim != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {a.ndim}"
            )
        for d, (n, m) in enumerate(zip(first, a.shape, strict=True)):
            if n != m and d != dim:
                raise RuntimeError(
                    "Sizes of tensors must match except in dimension "
                    f"{dim}. Expected size {n} but got size {m} for tensor number {i} in "
                    "the list."
                )


def _cat_grad(g: Any, xp: Any, dim: int, tensors_shape: Any) -> Any:
    at = wrapped(dim, g.ndim)
    whole, start, grads = (slice(None),) * at, 0, []
    for shape in tensors_shape:
        size = 0 if shape == (0,) else shape[at]
        piece = xp._slice(g, (*whole, slice(start, start + size), Ellipsis))
        grads.append(piece.reshape(shape) if shape == (0,) else piece)
        start += size
    return grads


def _cat_error(error: Exception, arrays: Any, dim: int = 0) -> Exception | None:
    return error if not arrays else None  # the ValueError is torch's own


_cat_row = private(
    "_cat(tensors, dim=0)",
    _cat,
    many="tensors",
    explain=_cat_error,
    tensors=_cat_grad,
)


@public
def cat(tensors: Any, dim: Any = 0, *, axis: Any = None, out: Any = None) -> Any:
    """The tensors one after the other along `dim`; all other sizes must agree.

    RuntimeError if they don't, ValueError for an empty list.
    """
    result = _cat_row(tensors, int(dim if axis is None else axis))
    if out is None:
        return result
    from gradfn.ops.names import into

    return into("cat", out, result)


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


def _some(function: str, tensors: Any) -> Any:
    if not tensors:
        raise RuntimeError(f"{function} expects a non-empty TensorList")
    return tensors


@public
def hstack(tensors: Any) -> Any:
    """Side by side: along dim 1, or 0 for 1-d tensors."""
    tensors = _some("hstack", [PUBLIC["atleast_1d"](t) for t in tensors])
    return cat(tensors, 0 if tensors[0]._array.ndim == 1 else 1)


@public
def vstack(tensors: Any) -> Any:
    """On top of each other: along dim 0, 1-d tensors as rows."""
    return cat(_some("vstack", [PUBLIC["atleast_2d"](t) for t in tensors]), 0)


PUBLIC["row_stack"] = vstack


@public
def dstack(tensors: Any) -> Any:
    """Behind each other: along dim 2."""
    return cat(_some("dstack", [PUBLIC["atleast_3d"](t) for t in tensors]), 2)


@public
def column_stack(tensors: Any) -> Any:
    """Side by side, with 0-d and 1-d tensors as columns."""
    columns = [t.reshape(t.numel(), 1) if t.dim() < 2 else t for t in tensors]
    return hstack(_some("column_stack", columns))


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

    def filled(g: Any, n: int) -> Any:
        if g is not None:
            return g
        return xp._zeros_of(some, (*self_shape[:at], n, *self_shape[at + 1 :]))

    return xp._cat([filled(g, n) for g, n in zip(gs, parts, strict=True)], at)


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
    tensor: Tensor,
    split_size_or_sections: Any = None,
    dim: int = 0,
    *,
    split_size: Any = None,
) -> Any:
    """Pieces of one size (the last may be smaller), or of given sizes, along `dim`."""
    size = split_size if split_size_or_sections is None else split_size_or_sections
    total = _length("split", tensor, dim)
    if isinstance(size, Tensor) and not size._array.ndim:
        size = int(size)
    if not hasattr(size, "__index__") or isinstance(size, Tensor):
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
    if min(parts, default=0) < 0:
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(parts)}"
        )
    if sum(parts) != total:
        raise RuntimeError(
            "split_with_sizes expects split_sizes to sum exactly to "
            f"{total} (input tensor's size at dimension {dim}), but got split_sizes="
            f"{list(parts)}"
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


def _whole_numbers(where: Tensor) -> Any:
    array = where._array
    if array.ndim > 1 or array.dtype != np.int64:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
            f"one-dimensional tensor of dtype long, but got {array.ndim} dims of "
            f"{where.dtype}"
        )
    return array.tolist()


@public
@method
def tensor_split(
    input: Tensor,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    sections: Any = None,
    indices: Any = None,
) -> Any:
    """Pieces of nearly equal size, or between given indices. RuntimeErrors."""
    total = _length("tensor_split", input, dim)
    where = indices if sections is None else sections
    where = where if indices_or_sections is None else indices_or_sections
    if isinstance(where, Tensor):
        where = _whole_numbers(where)
    if isinstance(where, int):
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        small, more = divmod(total, where)
        bounds = [i * small + min(i, more) for i in range(where + 1)]
    else:
        inner = [i if i >= 0 else i + total for i in sizes((where,))]
        bounds = [0, *(max(min(i, total), 0) for i in inner), total]
    return tuple(input.narrow(dim, a, max(b - a, 0)) for a, b in pairwise(bounds))


def _split_along(name: str, dim: int) -> None:
    def split_along(input: Tensor, indices_or_sections: Any) -> Any:
        ndim, where = input._array.ndim, indices_or_sections
        if ndim < (dim or 1) + (name != "hsplit"):
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least "
                f"{(dim or 1) + (name != 'hsplit')} dimension, but got a tensor with "
                f"{ndim} dimensions!"
            )
        at = min(dim, ndim - 1)
        size = input._array.shape[at]
        if isinstance(where, int) and (where <= 0 or size % where):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {at}, but the size of "
                f"the dimension {size} is not divisible by the split_size {where}!"
            )
        return tensor_split(input, where, at)

    split_along.__name__ = name
    split_along.__doc__ = "`tensor_split` along the dim of the name. RuntimeErrors."
    public(method(split_along))


_split_along("hsplit", 1)
_split_along("vsplit", 0)
_split_along("dsplit", 2)

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


@public
@method
def fliplr(input: Tensor) -> Any:
    """Columns in reverse order. RuntimeError for less than 2 dims."""
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return _flip_row(input, (1,))


@public
@method
def flipud(input: Tensor) -> Any:
    """Rows in reverse order. RuntimeError for a 0-d tensor."""
    if not input._array.ndim:
        raise RuntimeError("Input must be >= 1-d.")
    return _flip_row(input, (0,))


def _roll(a: Any, shifts: Any, dims: Any = None) -> Any:
    return np.roll(a, shifts, dims)


def _negative(shifts: Any) -> Any:
    return tuple(-s for s in shifts) if isinstance(shifts, tuple) else -shifts


_roll_row = private(
    "_roll(self, shifts, dims=None)",
    _roll,
    node="Roll",
    self=lambda g, xp, shifts, dims: xp._roll(g, _negative(shifts), dims),
)


@public
@method
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Any:
    """Elements moved on along the dims (or flat), and round at the end.

    RuntimeError unless there is a dim for each shift.
    """
    shifts, dims = sizes((shifts,)), () if dims is None else sizes((dims,))
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != (len(dims) or 1):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    return _roll_row(input, shifts, dims) if dims else _roll_row(input, shifts[0])


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
    if len(plane) != 2:
        raise RuntimeError(
            f"expected total rotation dims == 2, but got dims = {len(plane)}"
        )
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    if wrapped(plane[0], ndim) == wrapped(plane[1], ndim):
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {plane[0]} and dim1 = "
            f"{plane[1]}"
        )
    return _rot90_row(input, k, plane)


# -- repeated --------------------------------------------------------------------------


def _interleaved(repeats: Any, shape: Any) -> tuple[int, ...]:
    """The shape in which every second dim is a repetition, dims in front included."""
    shape = (1,) * (len(repeats) - len(shape)) + shape
    return tuple(n for pair in zip(repeats, shape, strict=True) for n in pair)


def _repeat(a: Any, repeats: Any) -> Any:
    if len(repeats) < a.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor"
        )
    wide = _interleaved(repeats, a.shape)
    shape = [n * m for n, m in zip(wide[::2], wide[1::2], strict=True)]
    if min(shape, default=0) < 0 or min(repeats, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension: {shape}")
    out = np.empty(wide, a.dtype)
    out[...] = a.reshape(_interleaved((1,) * len(repeats), a.shape))
    return out.reshape(shape)


def _repeat_grad(g: Any, xp: Any, self_shape: Any, repeats: Any) -> Any:
    if not repeats:
        return g
    each = g.reshape(_interleaved(repeats, self_shape))
    return xp.sum(each, tuple(range(0, each.ndim, 2)))


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


def _counts(repeats: Any, size: int | None) -> Any:
    """The repetitions of each element, checked. RuntimeErrors."""
    counts = repeats._array
    if counts.dtype.kind != "i":
        raise NotImplementedError(
            f'"repeat_interleave_cpu" not implemented for {repeats.dtype}'
        )
    if counts.ndim > 1 or (size is None and not counts.ndim):
        raise RuntimeError("repeat_interleave: repeats must be 0-dim or 1-dim tensor")
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if size is not None and counts.size not in (1, size):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got "
            f"repeats.size(0) = {counts.size} and input.size(0) = {size}"
        )
    return counts


@public
@method
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: Any = None, *, output_size: Any = None
) -> Any:
    """Each element repeated, along `dim` or flat; or indices from counts alone.

    `repeats` is an int or an integer tensor, for all or each. RuntimeErrors.
    """
    if repeats is None:
        counts = _counts(input, None)
        return PUBLIC["tensor"](
            np.repeat(np.arange(len(counts), dtype=counts.dtype), counts)
        )
    x, at = (input.reshape(-1), 0) if dim is None else (input, dim)
    shape = x._array.shape
    at = wrapped(at, len(shape))
    size = shape[at] if shape else 1
    if not isinstance(repeats, Tensor):
        times = sizes((repeats,))[0]
        if times < 0:
            raise RuntimeError("Repeats must be non-negative")
        total = times * size
    else:
        counts = np.broadcast_to(_counts(repeats, size), size)
        total = int(counts.sum())
    if output_size not in (None, total):
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {total} but got {output_size}"
        )
    if isinstance(repeats, Tensor):
        return x.index_select(at, PUBLIC["tensor"](np.repeat(np.arange(size), counts)))
    # Summing over a dim, as the gradient of expand does, is faster than adding at indices.
    x = x if shape else x.reshape(1)
    wide = x.unsqueeze(at + 1).expand(
        [*x._array.shape[: at + 1], times, *x._array.shape[at + 1 :]]
    )
    return wide.clone(memory_format=contiguous_format).flatten(at, at + 1)


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
    if not a.ndim:
        raise RuntimeError("diag_embed: the tensor must have at least one dim")
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
_diagonal_copy = private(
    "_diagonal_copy(self, offset)",
    lambda a, offset: RAW.diagonal(a, offset).copy(),
    node="DiagonalBackward0_copy",
    self=lambda g, xp, self_shape, offset: xp._diagonal_put(g, self_shape, offset, 0, 1),
)


@public
@method
def diag(input: Tensor, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, as a copy; or a matrix with this diagonal."""
    if input._array.ndim == 1:
        return _diag_embed_row(input, diagonal)
    if input._array.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._array.ndim}D")
    return _diagonal_copy(input, diagonal)


@public
@method
def diagflat(input: Tensor, offset: int = 0) -> Any:
    """A matrix with all elements on its diagonal."""
    return _diag_embed_row(input.reshape(-1), offset)


def _blocks(shapes: Any) -> list[tuple[tuple[int, int], tuple[slice, slice]]]:
    """The shape of each block as a matrix, and its place. RuntimeError above 2 dims."""
    out, top, left = [], 0, 0
    for i, shape in enumerate(shapes):
        if len(shape) > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{i} has {len(shape)} dimensions"
            )
        h, w = (1,) * (2 - len(shape)) + shape
        out.append(((h, w), (slice(top, top + h), slice(left, left + w))))
        top, left = top + h, left + w
    return out


def _block_diag(arrays: Any) -> Any:
    if not arrays:
        return np.zeros((1, 0), default_dtype())
    blocks = _blocks([a.shape for a in arrays])
    rows, columns = (s.stop for s in blocks[-1][1])
    arrays = _common(arrays)
    out = np.zeros((rows, columns), arrays[0].dtype)
    for a, (shape, place) in zip(arrays, blocks, strict=True):
        out[place] = a.reshape(shape)
    return out


def _block_diag_grad(g: Any, xp: Any, tensors_shape: Any) -> Any:
    blocks = _blocks(tensors_shape)
    parts = [xp._slice(g, (*place, Ellipsis)) for _, place in blocks]
    return [p.reshape(shape) for p, shape in zip(parts, tensors_shape, strict=True)]


_block_diag_row = private(
    "_block_diag(tensors)",
    _block_diag,
    many="tensors",
    node="BlockDiag",
    tensors=_block_diag_grad,
)


@public
def block_diag(*tensors: Any) -> Any:
    """A matrix with these as blocks along its diagonal, zeros elsewhere."""
    return _block_diag_row(tensors)


# -- dims ------------------------------------------------------------------------------


def _at_least(n: int, widened: Any) -> None:
    def at_least(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            t = tensors[0]
            if t._array.ndim >= n:
                return t
            return widened(t) if t._array.ndim else t.reshape((1,) * n)
        given = tensors[0] if len(tensors) == 1 else tensors
        return tuple(at_least(t) for t in given)

    at_least.__name__ = f"atleast_{n}d"
    at_least.__doc__ = f"The tensor (or several) with at least {n} dims."
    public(at_least)


_at_least(1, None)
_at_least(2, lambda t: t.unsqueeze(0))
_at_least(3, lambda t: (t.unsqueeze(0) if t._array.ndim == 1 else t).unsqueeze(-1))


@public
def meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    """A grid of coordinates from 1-d (or 0-d) tensors, one tensor for each."""
    given = (
        tensors[0]
        if len(tensors) == 1 and not isinstance(tensors[0], Tensor)
        else tensors
    )
    for t in _some("meshgrid", given):
        if t._array.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got shape "
                f"{list(t.shape)}"
            )
        if t.dtype is not given[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    given = [t.reshape(-1) for t in given]
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            'torch.meshgrid: indexing must be one of "xy" or "ij", but received: '
            + indexing
        )
    swap = indexing == "xy" and len(given) > 1
    if swap:
        given[0], given[1] = given[1], given[0]
    shape = [t.shape[0] for t in given]
    out = [
        t.reshape([-1 if i == j else 1 for j in range(len(given))]).expand(shape)
        for i, t in enumerate(given)
    ]
    if swap:
        out[0], out[1] = out[1], out[0]
    return tuple(out)


@public
def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of elements of 1-d tensors, one a row. RuntimeError for others."""
    for t in tensors:
        if t._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return PUBLIC["stack"]([t.reshape(-1) for t in meshgrid(*tensors)], 1)


@public
@method
def kron(input: Tensor, other: Tensor) -> Any:
    """The Kronecker product."""
    n = max(input._array.ndim, other._array.ndim)
    a = (1,) * (n - input._array.ndim) + input._array.shape
    b = (1,) * (n - other._array.ndim) + other._array.shape
    left = input.reshape([m for size in a for m in (size, 1)])
    right = other.reshape([m for size in b for m in (1, size)])
    shape = tuple(m * k for m, k in zip(a, b, strict=True))
    return unsafe_view(left * right, shape)
