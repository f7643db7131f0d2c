"""Joining, splitting and rearranging with copies."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gradfn._dtypes import result_dtype
from gradfn.ops.rule import op
from gradfn.ops.sizes import sizes, wrapped
from gradfn.ops.world import PUBLIC, public
from gradfn.tensor import Tensor, method

# -- several to one --------------------------------------------------------------------


def _common(arrays: Any) -> Any:
    """The arrays in torch's promoted dtype."""
    first = arrays[0].dtype
    if all(a.dtype is first for a in arrays):
        return arrays
    wanted = first
    for a in arrays[1:]:
        wanted = result_dtype(wanted, False, a.dtype, False)
    return [a.astype(wanted, copy=False) for a in arrays]


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
    return np.concatenate(some, at)


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


_cat_row = op(
    "_cat(tensors, dim=0)",
    _cat,
    many="tensors",
    function=False,
    method=False,
    tensors=_cat_grad,
).function


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
    return np.stack(_common(arrays), dim)


op(
    "stack(tensors, dim=0)",
    _stack,
    many="tensors",
    method=False,
    tensors=lambda g, xp, dim: xp.unbind(g, dim),
)


@public
def hstack(tensors: Any) -> Any:
    """Side by side: along dim 1, or 0 for 1-d tensors."""
    tensors = [PUBLIC["atleast_1d"](t) for t in tensors]
    return cat(tensors, 0 if tensors[0]._array.ndim == 1 else 1)


@public
def vstack(tensors: Any) -> Any:
    """On top of each other: along dim 0, 1-d tensors as rows."""
    return cat([PUBLIC["atleast_2d"](t) for t in tensors], 0)


PUBLIC["row_stack"] = vstack


@public
def dstack(tensors: Any) -> Any:
    """Behind each other: along dim 2."""
    return cat([PUBLIC["atleast_3d"](t) for t in tensors], 2)


@public
def column_stack(tensors: Any) -> Any:
    """Side by side, with 0-d and 1-d tensors as columns."""
    return hstack([t.reshape(t.numel(), 1) if t.dim() < 2 else t for t in tensors])


# -- one to several --------------------------------------------------------------------

op(
    "_zeros_of(self, shape)",
    lambda a, shape: np.zeros(shape, a.dtype),
    takes="self",
    function=False,
    method=False,
)


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


_split_equal = op(
    "_split(self, parts, dim)",
    _pieces,
    outputs="many",
    view=True,
    function=False,
    method=False,
    node="Split",
    self=_pieces_grad,
).function
_split_sizes = op(
    "_split_with_sizes(self, parts, dim)",
    _pieces,
    outputs="many",
    view=True,
    function=False,
    method=False,
    node="SplitWithSizes",
    self=_pieces_grad,
).function


@public
@method
def split(self: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Pieces of one size (the last may be smaller), or of given sizes, along `dim`."""
    if not isinstance(split_size_or_sections, int):
        return split_with_sizes(self, split_size_or_sections, dim)
    size, total = (
        split_size_or_sections,
        self._array.shape[wrapped(dim, self._array.ndim)],
    )
    if size < 0 or (not size and total):
        raise RuntimeError(
            f"split expects split_size be non-negative, but got split_size={size}"
        )
    parts = [min(size, total - i) for i in range(0, total, size)] if total else [0]
    return _split_equal(self, tuple(parts), dim)


@public
@method
def split_with_sizes(self: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Pieces of given sizes along `dim`. RuntimeError if they don't add up."""
    parts = sizes((split_sizes,))
    total = self._array.shape[wrapped(dim, self._array.ndim)]
    if sum(parts) != total:
        raise RuntimeError(
            "split_with_sizes expects split_sizes to sum exactly to "
            f"{total} (input tensor's size at dimension {dim}), but got split_sizes="
            f"{list(parts)}"
        )
    return _split_sizes(self, parts, dim)


@public
@method
def chunk(self: Tensor, chunks: int, dim: int = 0) -> Any:
    """At most `chunks` pieces of equal size, the last perhaps smaller."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    total = self._array.shape[wrapped(dim, self._array.ndim)]
    if not total:
        return _split_sizes(self, (0,) * chunks, dim)
    return split(self, -(-total // chunks), dim)


@public
@method
def tensor_split(self: Tensor, indices_or_sections: Any, dim: int = 0) -> Any:
    """Pieces of nearly equal size, or between given indices."""
    total = self._array.shape[wrapped(dim, self._array.ndim)]
    where = indices_or_sections
    if isinstance(where, Tensor):
        where = where.tolist()
    if isinstance(where, int):
        small, more = divmod(total, where)
        parts = [small + (i < more) for i in range(where)]
        bounds = [sum(parts[:i]) for i in range(len(parts) + 1)]
    else:
        bounds = [
            0,
            *(max(min(i if i >= 0 else i + total, total), 0) for i in where),
            total,
        ]
    return tuple(self.narrow(dim, a, max(b - a, 0)) for a, b in pairwise(bounds))


def _split_along(name: str, dims: Any) -> None:
    def split_along(self: Tensor, indices_or_sections: Any) -> Any:
        return tensor_split(self, indices_or_sections, dims(self._array.ndim))

    split_along.__name__ = name
    split_along.__doc__ = "`tensor_split` along the dim of the name."
    public(method(split_along))


_split_along("hsplit", lambda ndim: 0 if ndim == 1 else 1)
_split_along("vsplit", lambda ndim: 0)
_split_along("dsplit", lambda ndim: 2)

# -- other orders of elements ----------------------------------------------------------


def _flip(a: Any, dims: Any) -> Any:
    at = {wrapped(d, a.ndim) for d in dims}
    if len(at) < len(dims):
        raise RuntimeError(f"dim {dims[-1]} appears multiple times in the list of dims")
    return np.flip(a, tuple(at)).copy() if a.ndim else a.copy()


_flip_row = op(
    "flip(self, dims)",
    _flip,
    function=False,
    method=False,
    self=lambda g, xp, dims: xp.flip(g, dims),
).function


def _flip_public(self: Tensor, *dims: Any, **named: Any) -> Any:
    """The elements in reverse order along the dims."""
    return _flip_row(self, sizes(dims or (named["dims"],)))


_flip_public.__name__ = "flip"
public(method(_flip_public))


@public
@method
def fliplr(self: Tensor) -> Any:
    """Columns in reverse order."""
    return _flip_row(self, (1,))


@public
@method
def flipud(self: Tensor) -> Any:
    """Rows in reverse order."""
    return _flip_row(self, (0,))


def _roll(a: Any, shifts: Any, dims: Any = None) -> Any:
    return np.roll(a, shifts, dims)


def _negative(shifts: Any) -> Any:
    return tuple(-s for s in shifts) if isinstance(shifts, tuple) else -shifts


_roll_row = op(
    "_roll(self, shifts, dims=None)",
    _roll,
    function=False,
    method=False,
    node="Roll",
    self=lambda g, xp, shifts, dims: xp._roll(g, _negative(shifts), dims),
).function


@public
@method
def roll(self: Tensor, shifts: Any, dims: Any = None) -> Any:
    """Elements moved on along the dims, and round at the end."""
    shifts = sizes((shifts,)) if dims not in (None, ()) else sizes((shifts,))[0]
    return _roll_row(self, shifts, None if dims in (None, ()) else sizes((dims,)))


@public
@method
def rot90(self: Tensor, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Turned by 90 degrees `k` times in the plane of two dims."""
    a, b = dims
    k %= 4
    if k == 1:
        return _flip_row(self, (b,)).transpose(a, b)
    if k == 2:
        return _flip_row(self, (a, b))
    return _flip_row(self, (a,)).transpose(a, b) if k == 3 else self.clone()


# -- repeated --------------------------------------------------------------------------


@method
def repeat(self: Tensor, *repeats: Any) -> Any:
    """The whole tensor repeated along each dim; new dims come in front."""
    times = sizes(repeats)
    shape = self._array.shape
    new = len(times) - len(shape)
    if new < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor"
        )
    shape = (1,) * new + shape
    wide = [n for pair in zip(times, shape, strict=True) for n in pair]
    narrow = [n for size in shape for n in (1, size)]
    whole = self.reshape(narrow).expand(wide)
    return whole.reshape([a * b for a, b in zip(times, shape, strict=True)]).clone()


@public
@method
def tile(self: Tensor, *dims: Any) -> Any:
    """`repeat`, with 1 for the dims in front that are left out."""
    times = sizes(dims)
    return self.repeat((1,) * (self._array.ndim - len(times)) + times)


@public
@method
def repeat_interleave(
    self: Tensor, repeats: Any = None, dim: Any = None, *, output_size: Any = None
) -> Any:
    """Each element repeated, along `dim` or flat; or indices from counts alone."""
    if repeats is None:
        counts = self._array
        return PUBLIC["tensor"](np.repeat(np.arange(len(counts)), counts))
    x, at = (self.reshape(-1), 0) if dim is None else (self, dim)
    counts = repeats._array if isinstance(repeats, Tensor) else np.asarray(repeats)
    size = x._array.shape[wrapped(at, x._array.ndim)]
    index = np.repeat(
        np.arange(size), counts if counts.size > 1 else int(counts.reshape(-1)[0])
    )
    return x.index_select(at, PUBLIC["tensor"](index))


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


@public
@method
def diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Zeros with the last dim on the diagonal of two new dims."""
    n = self._array.shape[-1] + abs(offset)
    ndim = self._array.ndim + 1
    a, b = wrapped(dim1, ndim), wrapped(dim2, ndim)
    rest = iter(self._array.shape[:-1])
    shape = tuple(n if d in (a, b) else next(rest) for d in range(ndim))
    return _put(self, shape, offset, a, b)


def _put(*args: Any) -> Any:
    from gradfn.ops.rule import TABLE

    return TABLE["_diagonal_put"].function(*args)


@public
@method
def diag(self: Tensor, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, as a copy; or a matrix with this diagonal."""
    if self._array.ndim == 1:
        return diag_embed(self, diagonal)
    if self._array.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self._array.ndim}D")
    return self.diagonal(diagonal).clone()


@public
@method
def diagflat(self: Tensor, offset: int = 0) -> Any:
    """A matrix with all elements on its diagonal."""
    return diag_embed(self.reshape(-1), offset)


@public
def block_diag(*tensors: Any) -> Any:
    """A matrix with these as blocks along its diagonal, zeros elsewhere."""
    blocks = [PUBLIC["atleast_2d"](t) for t in tensors]
    width = sum(b.shape[1] for b in blocks)
    rows, left = [], 0
    for b in blocks:
        h, w = b.shape
        before, after = b.new_zeros(h, left), b.new_zeros(h, width - left - w)
        rows.append(cat([before, b, after], 1))
        left += w
    return cat(rows, 0)


# -- dims ------------------------------------------------------------------------------


def _at_least(n: int, shape_of: Any) -> None:
    def at_least(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            t = tensors[0]
            return t if t._array.ndim >= n else t.reshape(shape_of(t._array.shape))
        given = tensors[0] if len(tensors) == 1 else tensors
        return tuple(at_least(t) for t in given)

    at_least.__name__ = f"atleast_{n}d"
    at_least.__doc__ = f"The tensor (or several) with at least {n} dims."
    public(at_least)


_at_least(1, lambda shape: (1,))
_at_least(2, lambda shape: (1, *shape) if shape else (1, 1))
_at_least(3, lambda shape: (*((1,) * (2 - len(shape))), *shape, 1))


@public
def meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    """A grid of coordinates from 1-d (or 0-d) tensors, one tensor for each."""
    given = (
        tensors[0]
        if len(tensors) == 1 and not isinstance(tensors[0], Tensor)
        else tensors
    )
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
    """All combinations of elements of 1-d tensors, one a row."""
    if len(tensors) == 1:
        return tensors[0]
    return PUBLIC["stack"]([t.reshape(-1) for t in meshgrid(*tensors)], 1)


@public
@method
def kron(self: Tensor, other: Tensor) -> Any:
    """The Kronecker product."""
    n = max(self._array.ndim, other._array.ndim)
    a = (1,) * (n - self._array.ndim) + self._array.shape
    b = (1,) * (n - other._array.ndim) + other._array.shape
    left = self.reshape([m for size in a for m in (size, 1)])
    right = other.reshape([m for size in b for m in (1, size)])
    return (left * right).reshape([m * k for m, k in zip(a, b, strict=True)])
