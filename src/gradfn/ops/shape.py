"""Views: the same memory in another arrangement."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradfn._dtypes import dtype as dtype_type
from gradfn._dtypes import to_numpy
from gradfn.ops.rare import dim_error
from gradfn.ops.rule import alias, op
from gradfn.ops.sizes import inferred, sizes, wrapped
from gradfn.ops.strided import owner
from gradfn.ops.world import PUBLIC, public
from gradfn.tensor import Size, Tensor, method

# -- other shapes ----------------------------------------------------------------------


def private(signature: str, kernel: Any, **options: Any) -> Any:
    """The function of a row that is neither gradfn's nor a method."""
    return op(signature, kernel, function=False, method=False, **options).function


def by_name(function: str, word: str, args: Any, named: dict[str, Any]) -> Any:
    """Sizes or dims that were not given one by one: by name, or not at all (TypeError)."""
    for name in named:
        if name != word or args:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    if not named:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{word}"')
    return (named[word],)


def _view(a: Any, shape: Any) -> Any:
    shape = inferred(shape, a.size)
    try:
        return a.reshape(shape, copy=False)
    except ValueError:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        ) from None


def _back(g: Any, self_shape: Any) -> Any:
    return g.reshape(self_shape)


_view_row = private("_view(self, shape)", _view, view=True, node="View", self=_back)
_reshape_alias = private(
    "_reshape_alias(self, shape)", _view, view=True, node="ReshapeAlias", self=_back
)
# No view for the graph: a copy, or memory that nobody else knows.
unsafe_view = private(
    "_unsafe_view(self, shape)",
    lambda a, shape: a.reshape(shape),
    node="UnsafeView",
    self=_back,
)
_bits = private(
    "_view_bits(self, dtype)", lambda a, dtype: a.view(dtype), view=True, takes="self"
)


@method
def view(self: Tensor, *shape: Any, dtype: Any = None, **named: Any) -> Any:
    """The same memory in another shape (one size may be -1), or read as another dtype.

    RuntimeError if the strides do not permit it (use reshape) or the sizes don't fit.
    """
    if shape and isinstance(shape[0], dtype_type):
        dtype = shape[0]
    if dtype is not None:
        return _bits(self, to_numpy(dtype))
    if named or not shape:
        shape = by_name("view", "size", shape, named)
    return _view_row(self, sizes(shape))


@public
@method
def reshape(input: Tensor, *shape: Any, **named: Any) -> Any:
    """Another shape (one size may be -1): a view where possible, else a copy.

    RuntimeError if the sizes don't fit.
    """
    if named or not shape:
        shape = by_name("reshape", "shape", shape, named)
    array = input._array
    wanted = inferred(sizes(shape), array.size)
    if array.flags.c_contiguous:
        return _view_row(input, wanted)
    try:
        layout = array if type(array) is np.ndarray else array.layout  # type: ignore[attr-defined]
        layout.reshape(wanted, copy=False)
    except ValueError:
        return unsafe_view(input, wanted)
    return _reshape_alias(input, wanted)


@method
def view_as(self: Tensor, other: Tensor) -> Any:
    """A view in the shape of another tensor."""
    return _view_row(self, other._array.shape)


@method
def reshape_as(self: Tensor, other: Tensor) -> Any:
    """The tensor in the shape of another."""
    return reshape(self, other._array.shape)


@public
@method
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The dims from `start_dim` to `end_dim` as one; a 0-d tensor becomes 1-d."""
    shape = input._array.shape
    first, last = wrapped(start_dim, len(shape)), wrapped(end_dim, len(shape))
    if not shape:
        return reshape(input, 1)
    if first > last:
        raise RuntimeError(
            "flatten() has invalid args: start_dim cannot come after end_dim"
        )
    if first == last:
        return input
    size = 1
    for n in shape[first : last + 1]:
        size *= n
    return reshape(input, (*shape[:first], size, *shape[last + 1 :]))


@public
@method
def ravel(input: Tensor) -> Any:
    """The tensor in one dimension: a view if it is contiguous, else of a copy."""
    return _view_row(input.contiguous(), (-1,))


@public
@method
def unflatten(input: Tensor, dim: int, sizes: Any) -> Any:
    """One dim split into several, of which one size may be -1. RuntimeErrors."""
    shape = input._array.shape
    at = wrapped(dim, len(shape))
    if not shape or not len(sizes):
        raise RuntimeError("unflatten: sizes must be non-empty, and a dim there to split")
    try:
        split = inferred(tuple(sizes), shape[at])
    except RuntimeError as error:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim "
            f"{at} ({shape[at]}) in the input tensor: {error}"
        ) from None
    return reshape(input, (*shape[:at], *split, *shape[at + 1 :]))


def _squeeze(a: Any, dim: Any = None) -> Any:
    if dim is None:
        return a.squeeze()
    dims = [wrapped(d, a.ndim) for d in (dim if isinstance(dim, tuple) else (dim,))]
    return a.squeeze(tuple(d for d in dims if a.ndim and a.shape[d] == 1))


_squeeze_row = private(
    "_squeeze(self, dim=None)",
    _squeeze,
    view=True,
    node="Squeeze",
    overload="dim is not None",
    self=_back,
)
_squeeze_dims = private(
    "_squeeze_dims(self, dim)", _squeeze, view=True, node="SqueezeBackward2", self=_back
)


@public
@method
def squeeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Any:
    """Without dims of size 1: all of them, or those named that have size 1."""
    dim = axis if dim is None else dim
    if isinstance(dim, (tuple, list)):
        return _squeeze_dims(input, tuple(dim))
    return _squeeze_row(input, dim)


def _unsqueeze(a: Any, dim: int) -> Any:
    if not -a.ndim - 1 <= dim <= a.ndim:
        raise dim_error(dim, a.ndim + 1)
    return a[(*(slice(None),) * (dim % (a.ndim + 1)), None, ...)]


op("unsqueeze(self, dim)", _unsqueeze, view=True, self=_back)

# -- other orders of dims --------------------------------------------------------------


def _permute(a: Any, dims: Any) -> Any:
    if len(dims) != a.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match "
            f"the length of the desired ordering of dimensions i.e. input.dim() = {a.ndim} "
            f"is not equal to len(dims) = {len(dims)}"
        )
    if len({wrapped(d, a.ndim) for d in dims}) < len(dims):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return a.transpose(dims)


def _unpermuted(dims: Any) -> tuple[int, ...]:
    n = len(dims)
    return tuple(sorted(range(n), key=lambda place: dims[place] % n))


_permute_row = private(
    "_permute(self, dims)",
    _permute,
    view=True,
    node="Permute",
    self=lambda g, xp, dims: xp._permute(g, _unpermuted(dims)),
)


@public
@method
def permute(input: Tensor, *dims: Any, **named: Any) -> Any:
    """The dims in another order. RuntimeError unless each is named once."""
    if named or not dims:
        dims = by_name("permute", "dims", dims, named)
    return _permute_row(input, sizes(dims))


def _transpose(a: Any, dim0: int, dim1: int) -> Any:
    first, second = wrapped(dim0, a.ndim), wrapped(dim1, a.ndim)
    return a.swapaxes(first, second) if a.ndim else a[...]


_transpose_row = op(
    "transpose(self, dim0, dim1)",
    _transpose,
    view=True,
    self=lambda g, xp, dim0, dim1: xp.transpose(g, dim0, dim1),
).function
alias("swapdims", "transpose")


@public
@method
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Any:
    """Another name of `transpose`."""
    return _transpose_row(input, axis0, axis1)


def _t(a: Any) -> Any:
    if a.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {a.ndim}D"
        )
    return a.T


op("t(self)", _t, view=True, self=lambda g, xp: xp.t(g))


def _turned(self: Tensor) -> Any:
    """All dims in reverse order."""
    if self._array.ndim not in (0, 2):
        warnings.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape "
            "is deprecated. Use `x.mT` to transpose batches of matrices, or "
            "`x.permute(*range(x.ndim - 1, -1, -1))`.",
            UserWarning,
            stacklevel=2,
        )
    return _permute_row(self, tuple(reversed(range(self._array.ndim))))


def _matrix_turned(self: Tensor, name: str = "mT") -> Any:
    """The last two dims exchanged."""
    ndim = self._array.ndim
    if not ndim:
        warnings.warn(
            f"Tensor.{name} is deprecated on 0-D tensors: it is the tensor itself.",
            UserWarning,
            stacklevel=3,
        )
        return self
    if ndim < 2:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got "
            f"{ndim}-D tensor."
        )
    return _transpose_row(self, -2, -1)


@public
@method
def adjoint(input: Tensor) -> Any:
    """The last two dims exchanged, and conjugated."""
    return _matrix_turned(input, "adjoint()").conj()


def _hermitian(self: Tensor) -> Any:
    """A matrix transposed and conjugated."""
    if self._array.ndim not in (0, 2):
        raise RuntimeError(
            "tensor.H is only supported on matrices (2-D tensors). Got "
            f"{self._array.ndim}-D tensor."
        )
    return _matrix_turned(self, "H").conj()


_PROPERTIES = {"T": _turned, "mT": _matrix_turned, "H": _hermitian, "mH": adjoint}
for _name, _get in _PROPERTIES.items():
    setattr(Tensor, _name, property(_get))


def _moved(ndim: int, source: Any, destination: Any) -> tuple[int, ...]:
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) "
            f"should contain as many dims as destination ({list(destination)} dims)"
        )
    src = [wrapped(d, ndim) for d in source]
    dst = [wrapped(d, ndim) for d in destination]
    for name, given, dims in (("source", source, src), ("destination", destination, dst)):
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    order: list[int] = [d for d in range(ndim) if d not in src]
    for place, d in sorted(zip(dst, src, strict=True)):
        order.insert(place, d)
    return tuple(order)


@public
@method
def movedim(input: Tensor, source: Any, destination: Any) -> Any:
    """Dims moved to other places; the rest keep their order.

    RuntimeError if a dim is named twice, or more sources are named than destinations.
    """
    if hasattr(source, "__iter__") != hasattr(destination, "__iter__"):
        raise TypeError("movedim(): source and destination must both be ints or tuples")
    order = _moved(input._array.ndim, sizes((source,)), sizes((destination,)))
    return _permute_row(input, order) if input._array.ndim else alias_row(input, (...,))


PUBLIC["moveaxis"] = Tensor.moveaxis = movedim  # type: ignore[attr-defined]


# -- repeated without copying ----------------------------------------------------------


def strided(a: Any, shape: Any, strides: Any) -> Any:
    """A view with any strides, writable if `a` is."""
    if a.flags.c_contiguous:
        return np.ndarray(shape, a.dtype, a, 0, strides)
    memory = owner(a)
    if not memory.flags.forc:
        return np.lib.stride_tricks.as_strided(a, shape, strides)
    # as_strided would hide the memory's owner, of which storage_offset() wants to know.
    offset = a.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    out = np.ndarray(shape, a.dtype, memory, offset, strides)
    out.flags.writeable = a.flags.writeable
    return out


def _expand(a: Any, size: Any) -> Any:
    new = len(size) - a.ndim
    if new < 0:
        raise RuntimeError(
            f"expand({list(a.shape)}, size={list(size)}): the number of sizes provided "
            f"({len(size)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({a.ndim})"
        )
    shape, strides = [], []
    for i, n in enumerate(size):
        have, step = (1, 0) if i < new else (a.shape[i - new], a.strides[i - new])
        if n == -1 and i < new:
            what = "isn't allowed in a leading, non-existing dimension"
            raise RuntimeError(f"The expanded size of the tensor (-1) {what} {i}")
        wanted = have if n == -1 else n
        if have != wanted and have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size "
                f"({have}) at non-singleton dimension {i}.  Target sizes: {list(size)}.  "
                f"Tensor sizes: {list(a.shape)}"
            )
        shape.append(wanted)
        strides.append(step if have == wanted else 0)
    return strided(a, tuple(shape), tuple(strides))


# The engine sums what was repeated.
_expand_row = private(
    "_expand(self, size)", _expand, view=True, node="Expand", self=lambda g: g
)


@method
def expand(self: Tensor, *size: Any, implicit: bool = False, **named: Any) -> Any:
    """A view in which dims of size 1, and new ones in front, are repeated."""
    if named or not size:
        size = by_name("expand", "size", size, named)
    return _expand_row(self, sizes(size))


@method
def expand_as(self: Tensor, other: Tensor) -> Any:
    """A view repeated to the shape of another tensor."""
    return _expand_row(self, other._array.shape)


@public
@method
def broadcast_to(input: Tensor, *size: Any, **named: Any) -> Any:
    """Another name of `expand`."""
    if named or not size:
        size = by_name("broadcast_to", "size", size, named)
    return _expand_row(input, sizes(size))


@public
def broadcast_shapes(*shapes: Any) -> Any:
    """The shape to which tensors of these shapes broadcast. RuntimeError if they don't."""
    try:
        return Size(np.broadcast_shapes(*shapes))
    except ValueError as error:
        raise RuntimeError(
            "Shape mismatch: objects cannot be broadcast to a single shape: "
            f"{', '.join(str(list(s)) for s in shapes)}"
        ) from error


@public
def broadcast_tensors(*tensors: Any) -> Any:
    """The tensors in their common shape: views, or themselves if they have it."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*(t._array.shape for t in tensors))
    return tuple(
        t if t._array.shape == shape else _expand_row(t, tuple(shape)) for t in tensors
    )


# -- parts -----------------------------------------------------------------------------


def _place(g: Any, shape: Any, index: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    out[index] = g
    return out


private(
    "_place(self, shape, index)",
    _place,
    node="Slice",
    self=lambda g, xp, index: xp._slice(g, index),
)


def basic(name: str, node: str) -> Any:
    """A row for basic indexing; `index` is a tuple with an Ellipsis in it."""
    return private(
        f"{name}(self, index)",
        lambda a, index: a[index],
        view=True,
        discards=True,
        node=node,
        self=lambda g, xp, self_shape, index: xp._place(g, self_shape, index),
    )


slice_row = basic("_slice", "Slice")
select_row = basic("_select", "Select")
newaxis_row = basic("_newaxis", "Unsqueeze")
alias_row = basic("_alias", "Alias")


@public
@method
def select(input: Tensor, dim: int, index: Any) -> Any:
    """The part at `index` along `dim`, without that dim. IndexError outside."""
    shape = input._array.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at, i = wrapped(dim, len(shape)), int(index)
    if not -shape[at] <= i < shape[at]:
        raise IndexError(
            f"select(): index {i} out of range for tensor of size {list(shape)} at "
            f"dimension {at}"
        )
    return select_row(input, (*(slice(None),) * at, i, Ellipsis))


@public
@method
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Any:
    """`length` places along `dim` from `start` on. IndexError or RuntimeError outside."""
    shape = input._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = shape[at := wrapped(dim, len(shape))]
    if isinstance(start, Tensor) and (start.ndim or start._array.dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    first = int(start)
    if not -size <= first <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [-{size}, {size}], but got "
            f"{first})"
        )
    first += size if first < 0 else 0
    if first + length > size:
        raise RuntimeError(
            f"start ({first}) + length ({length}) exceeds dimension size ({size})."
        )
    part = slice(first, first + length)
    return slice_row(input, (*(slice(None),) * at, part, Ellipsis))


def _diagonal(a: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    first, second = wrapped(dim1, a.ndim), wrapped(dim2, a.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    out = a.diagonal(offset, first, second)
    out.flags.writeable = a.flags.writeable
    return out


def _diagonal_put(g: Any, shape: Any, offset: int, dim1: int, dim2: int) -> Any:
    out = np.zeros(shape, g.dtype)
    _diagonal(out, offset, dim1, dim2)[...] = g
    return out


private(
    "_diagonal_put(self, shape, offset, dim1, dim2)",
    _diagonal_put,
    self=lambda g, xp, offset, dim1, dim2: xp.diagonal(g, offset, dim1, dim2),
)
op(
    "diagonal(self, offset=0, dim1=0, dim2=1)",
    _diagonal,
    view=True,
    self=lambda g, xp, self_shape, offset, dim1, dim2: xp._diagonal_put(
        g, self_shape, offset, dim1, dim2
    ),
)


def _windows(a: Any, dimension: int, size: int, step: int) -> Any:
    if not a.ndim:
        return strided(a, (size,), (*a.strides, a.itemsize))
    at = wrapped(dimension, a.ndim)
    if size > a.shape[at]:
        raise RuntimeError(
            f"maximum size for tensor at dimension {at} is {a.shape[at]} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    shape, strides = list(a.shape), list(a.strides)
    shape[at] = (shape[at] - size) // step + 1
    strides[at] *= step
    return strided(a, (*shape, size), (*strides, a.strides[at]))


def _windows_back(g: Any, shape: Any, dimension: int, size: int, step: int) -> Any:
    out = np.zeros(shape, g.dtype)
    if not shape:
        out[...] = g.sum()
        return out
    at = wrapped(dimension, len(shape))
    whole = (slice(None),) * at
    for k in range(size):
        span = slice(k, k + (g.shape[at] - 1) * step + 1, step)
        out[(*whole, span)] += g[..., k]
    return out


private(
    "_windows_back(self, shape, dimension, size, step)",
    _windows_back,
    self=lambda g, xp, dimension, size, step: xp.unfold(g, dimension, size, step),
)
op(
    "unfold(self, dimension, size, step)",
    _windows,
    function=False,
    view=True,
    self=lambda g, xp, self_shape, dimension, size, step: xp._windows_back(
        g, self_shape, dimension, size, step
    ),
)
