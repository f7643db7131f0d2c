"""Indexing, and writing through an index.

Note [Indexing]
    Ints, slices, None and Ellipsis make a view, in one row whatever the index; its name
    is that of the last step that torch would take. Masks and integer arrays copy. Where
    both occur, the view is taken first: each array is left as a whole slice there. Then
    the arrays index what remains, by NumPy's rules, which are torch's.

Note [Index arrays are kept]
    A node keeps the index arrays for its backward, so a user's array is copied when the
    result is recorded: who writes into it later changes no gradient. (PyTorch keeps the
    tensor, and raises an error then.)
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from gradfn._dtypes import BOOL, INT64, int32, uint8
from gradfn._state import GRAD, TRANSFORMS, mode
from gradfn.graph.view import edge
from gradfn.ops.adding import add_at
from gradfn.ops.fill import cast, differentiable, number_array
from gradfn.ops.inplace import bump, check_memory, own
from gradfn.ops.rule import op
from gradfn.ops.shape import alias_row, newaxis_row, select_row, slice_row
from gradfn.tensor import Tensor, method, wrap

WHOLE = slice(None)
INDEXES = (INT64, BOOL, int32.numpy, uint8.numpy)  # dtypes of index tensors

# -- what the index means --------------------------------------------------------------


def items_of(index: Any) -> list[Any]:
    """The index's parts. A list with tensors, lists or slices in it stands for a tuple."""
    if isinstance(index, tuple):
        return list(index)
    if not isinstance(index, list) or len(index) >= 32:
        return [index]
    parts = (Tensor, np.ndarray, list, tuple, range, slice)
    if not any(x is None or x is Ellipsis or isinstance(x, parts) for x in index):
        return [index]
    warnings.warn(
        "Using a non-tuple sequence for multidimensional indexing is deprecated; use "
        "x[tuple(seq)] instead of x[seq], or x[torch.tensor(seq)] for an index of rows.",
        UserWarning,
        stacklevel=4,
    )
    return index


def array_index(x: Any, kept: bool) -> Any:
    """A list, tensor or array as an index array; None for ints, slices and the like."""
    if isinstance(x, Tensor):
        a = x._array
    elif isinstance(x, np.ndarray):
        a = x if x.dtype.kind not in "iu" or x.dtype == np.uint8 else x.astype(INT64)
    elif isinstance(x, (list, tuple, range)):
        items = [y._array if isinstance(y, Tensor) else y for y in x]
        a = np.array(items, None if items else INT64)
    else:
        return None
    if a.dtype not in INDEXES:
        raise IndexError(
            "tensors used as indices must be long, int, byte or bool tensors, got "
            f"{a.dtype}"
        )
    if a.dtype == np.uint8:
        return a.astype(bool)
    return a.copy() if kept and a.dtype.kind == "i" else a


def split_index(
    index: Any, shape: Any, kept: bool = False
) -> tuple[Any, list[tuple[int, Any]]]:
    """(basic index, [(dim of what that gives, index array)]). IndexErrors.

    `kept`: Note [Index arrays are kept].
    """
    items = items_of(index)
    arrays = [array_index(x, kept) for x in items]
    taken = sum(
        a.ndim if a is not None and a.dtype.kind == "b" else 1
        for x, a in zip(items, arrays, strict=True)
        if not (x is None or x is Ellipsis or isinstance(x, (bool, np.bool_)))
    )
    if taken > len(shape):
        raise too_many(items, shape)
    if not any(x is Ellipsis for x in items):
        items.append(Ellipsis)
        arrays.append(None)
    steps: list[Any] = []
    advanced: list[tuple[int, Any]] = []
    dim = out = 0  # of the tensor, and of what the basic index gives
    for x, a in zip(items, arrays, strict=True):
        if x is Ellipsis:
            steps.append(Ellipsis)
            dim, out = dim + len(shape) - taken, out + len(shape) - taken
        elif x is None:
            steps.append(None)
            out += 1
        elif isinstance(x, (bool, np.bool_)) or (
            a is not None and a.dtype.kind == "b" and not a.ndim
        ):
            steps.append(None)
            advanced.append((out, np.zeros(int(bool(x)), INT64)))
            out += 1
        elif a is not None and (a.ndim or a.dtype.kind == "b"):
            for one in expanded(a, shape, dim):
                steps.append(WHOLE)
                advanced.append((out, checked(one, shape[dim], dim)))
                dim, out = dim + 1, out + 1
        elif isinstance(x, slice):
            steps.append(whole_slice(x))
            dim, out = dim + 1, out + 1
        else:
            steps.append(in_range(x, shape[dim], dim))
            dim += 1
    check_together([a for _, a in advanced])
    return tuple(steps), advanced


def too_many(items: Any, shape: Any) -> IndexError:
    """The error for an index with more parts than the tensor has dims."""
    if not shape and len(items) == 1 and isinstance(items[0], slice):
        return IndexError("slice() cannot be applied to a 0-dim tensor.")
    if not shape and len(items) == 1 and array_index(items[0], False) is None:
        return IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim "
            "tensor to a number"
        )
    return IndexError(f"too many indices for tensor of dimension {len(shape)}")


def check_together(arrays: Any) -> None:
    """IndexError unless the index arrays broadcast."""
    shapes = [a.shape for a in arrays]
    if any(s != shapes[0] for s in shapes):
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise IndexError(
                "shape mismatch: indexing tensors could not be broadcast together with "
                f"shapes {', '.join(str(list(s)) for s in shapes)}"
            ) from None


def expanded(a: Any, shape: Any, dim: int) -> Any:
    """A mask as index arrays, one for each of its dims."""
    if a.dtype.kind != "b":
        return (a,)
    for i, n in enumerate(a.shape):
        if n != shape[dim + i]:
            raise IndexError(
                f"The shape of the mask {list(a.shape)} at index {i} does not match the "
                f"shape of the indexed tensor {list(shape)} at index {dim + i}"
            )
    return a.nonzero()


def checked(a: Any, size: int, dim: int) -> Any:
    """Index values from -size on; IndexError outside."""
    if a.size:
        low, high = int(a.min()), int(a.max())
        if low < -size or high >= size:
            bad = low if low < -size else high
            raise IndexError(
                f"index {bad} is out of bounds for dimension {dim} with size {size}"
            )
    return a


def in_range(x: Any, size: int, dim: int) -> int:
    """An int; IndexError outside, TypeError-like IndexError for what is none."""
    try:
        i = int(x.__index__())
    except (AttributeError, TypeError):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
            f"Variables are valid indices (got {type(x).__name__})"
        ) from None
    if not -size <= i < size:
        raise IndexError(
            f"index {i} is out of bounds for dimension {dim} with size {size}"
        )
    return i


def whole_slice(x: slice) -> slice:
    """A slice of ints; ValueError for steps that are not positive."""
    try:
        start, stop, step = (
            v if v is None or type(v) is int else operator.index(v)
            for v in (x.start, x.stop, x.step)
        )
    except TypeError:
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method"
        ) from None
    if step is not None and step <= 0:
        raise ValueError("step must be greater than zero")
    return slice(start, stop, step)


def basic_view(t: Tensor, steps: Any) -> Tensor:
    """The view for a basic index, under the name of torch's last step."""
    row = alias_row
    for x in steps:
        if x is None:
            row = newaxis_row
        elif isinstance(x, int):
            row = select_row
        elif isinstance(x, slice) and x != WHOLE:
            row = slice_row
    return row(t, steps)  # type: ignore[no-any-return]


def is_plain(x: Any) -> bool:
    """An int, None, or a slice of ints that goes forwards: nothing to convert?"""
    if type(x) is slice:
        step, start, stop = x.step, x.start, x.stop
        return (
            (step is None or (type(step) is int and step > 0))
            and (start is None or type(start) is int)
            and (stop is None or type(stop) is int)
        )
    return x is None or type(x) is int


def plain_steps(index: Any) -> Any:
    """The basic index for plain parts, ranges unchecked; None if others are among it."""
    if type(index) is not tuple:
        return (index, Ellipsis) if is_plain(index) else None
    dots = 0
    for x in index:
        if x is Ellipsis:
            dots += 1
        elif not is_plain(x):
            return None
    if dots > 1:
        return None
    return index if dots else (*index, Ellipsis)


# -- reading ---------------------------------------------------------------------------


def _index(a: Any, index: Any) -> Any:
    return a.take(index[0], 0) if len(index) == 1 else a[index]


def _index_back(g: Any, shape: Any, index: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    add_at(out, index, g)
    return out


op(
    "_index_back(self, shape, index)",
    _index_back,
    function=False,
    method=False,
    node="Index",
    self=lambda g, xp, index: xp._index(g, index),
)
index_row = op(
    "_index(self, index)",
    _index,
    function=False,
    method=False,
    node="Index",
    discards=True,
    self=lambda g, xp, self_shape, index: xp._index_back(g, self_shape, index),
).function


def array_part(advanced: Any) -> Any:
    """NumPy's index for the arrays, and whole slices before, between and after them."""
    last = advanced[-1][0]
    full: list[Any] = [WHOLE] * (last + 1)
    for dim, a in advanced:
        full[dim] = a
    return tuple(full)


def keeps(t: Tensor) -> bool:
    """Will a node be made for what is read from `t`?"""
    return bool(mode() & GRAD) and (t._grad_fn is not None or t._view is not None)


def one_array(t: Tensor, index: Any, kept: bool) -> Any:
    """The index arrays for one tensor of ints, or one mask; None if it is neither."""
    a = index._array
    if a.dtype is INT64 and a.ndim and t._array.ndim:
        return (a.copy() if kept else a,)
    if a.dtype.kind == "b" and a.ndim and a.shape == t._array.shape[: a.ndim]:
        return a.nonzero()
    return None


@method
def __getitem__(self: Tensor, index: Any) -> Any:
    """The part of the tensor at an index: a view, or a copy if arrays are among it.

    Ints, slices, None and Ellipsis give a view; tensors, arrays and lists of ints, and
    masks, a copy. IndexError for an index outside, ValueError for a negative step.
    """
    kind = type(index)
    shape = self._array.shape
    if kind is int and shape:
        if not -shape[0] <= index < shape[0]:
            in_range(index, shape[0], 0)
        return select_row(self, (index, Ellipsis))
    if kind is slice and shape:
        return slice_row(self, (whole_slice(index), Ellipsis))
    try:
        if kind is Tensor and (arrays := one_array(self, index, keeps(self))) is not None:
            return index_row(self, arrays)
        if (steps := plain_steps(index)) is not None:
            return basic_view(self, steps)
    except IndexError:
        pass  # split_index knows the error
    if mode() & TRANSFORMS and is_batched_index(index):
        from gradfn.func.indexing import read

        return read(self, index)
    steps, advanced = split_index(index, shape, keeps(self))
    view = self
    if not advanced or any(x is not Ellipsis and x != WHOLE for x in steps):
        view = basic_view(self, steps)
    return index_row(view, array_part(advanced)) if advanced else view


# -- writing ---------------------------------------------------------------------------


def _put(a: Any, values: Any, index: Any, accumulate: bool = False) -> Any:
    out = a.copy()
    _write(out, values, index, accumulate)
    return out


def _write(target: Any, values: Any, index: Any, accumulate: bool) -> None:
    values = cast(values, target.dtype)
    while values.ndim > target.ndim and values.shape[0] == 1:
        values = values[0]
    try:
        if accumulate:
            add_at(target, index, values)
        else:
            target[index] = values
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be "
            f"broadcast to indexing result of shape {list(target[index].shape)}"
        ) from None


def _put_grad(g: Any, xp: Any, index: Any, accumulate: bool) -> Any:
    return g if accumulate else xp._index_clear(g, index)


def _index_last(g: Any, index: Any) -> Any:
    """What stands at the index; 0 for places that a later one writes again."""
    out = g[index]
    number = np.arange(out.size).reshape(out.shape)
    last = np.empty(g.shape, np.int64)
    last[index] = number
    return np.where(last[index] == number, out, out.dtype.type(0))


def _index_last_back(g: Any, shape: Any, index: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    out[index] = g
    return out


op(
    "_index_last(self, index)",
    _index_last,
    function=False,
    method=False,
    self=lambda g, xp, self_shape, index: xp._index_last_back(g, self_shape, index),
)
op(
    "_index_last_back(self, shape, index)",
    _index_last_back,
    function=False,
    method=False,
    self=lambda g, xp, index: xp._index_last(g, index),
)


def _index_clear(g: Any, index: Any) -> Any:
    out = g.copy()
    out[index] = 0
    return out


op(
    "_index_clear(self, index)",
    _index_clear,
    function=False,
    method=False,
    self=lambda g, xp, index: xp._index_clear(g, index),
)
put_row = op(
    "_index_put(self, values, index, accumulate=False)",
    _put,
    function=False,
    method=False,
    inplace=True,
    node="IndexPut",
    discards=True,
    self=_put_grad,
    values=lambda g, xp, index, accumulate: (
        xp._index(g, index) if accumulate else xp._index_last(g, index)
    ),
).function


def is_batched_index(index: Any) -> bool:
    """Is a batched tensor of vmap among the parts of an index?"""
    from gradfn.func.indexing import has_batched

    return has_batched(index)


@method
def __setitem__(self: Tensor, index: Any, value: Any) -> None:
    """Writes a number or a tensor that broadcasts at an index.

    The value is cast to the tensor's dtype. IndexError for an index outside,
    RuntimeError for a value that does not fit or a history that would be spoilt.
    """
    if index is False:
        return
    if not isinstance(value, Tensor):
        value = wrap(number_array(value, self._array.dtype))
    flags = mode()
    plain = not flags & (GRAD | TRANSFORMS) or (
        not flags & TRANSFORMS and edge(self) is None and value._grad_fn is None
    )
    try:
        if plain and self._extra is None and write_quickly(self, index, value._array):
            return
    except IndexError:
        pass  # split_index knows the error
    if flags & TRANSFORMS and is_batched_index(index):
        from gradfn.func.indexing import put

        put(self, index, value)
        return
    steps, advanced = split_index(index, self._array.shape, kept=not plain)
    if plain and self._extra is None:
        write_plainly(self, steps, advanced, value._array)
        return
    view = self
    if any(x is not Ellipsis and x != WHOLE for x in steps):
        view = basic_view(self, steps)
    if advanced:
        value = trimmed(differentiable(self, value), view, array_part(advanced))
        view._index_put_(value, array_part(advanced), False)
    else:
        view.copy_(trimmed(value, view, Ellipsis))


def write_quickly(t: Tensor, index: Any, value: Any) -> bool:
    """A write where no history is concerned, if index and value are of the usual kind."""
    array = t._array
    if array.base is not None or not array.flags.writeable:
        return False
    if type(index) is Tensor:
        at = one_array(t, index, False)
    else:
        at = plain_steps(index)
    if at is None or value.ndim or value.dtype is not array.dtype:
        return False
    array[at] = value
    bump(t)
    return True


def trimmed(value: Tensor, view: Tensor, index: Any) -> Tensor:
    """`value` without leading dims of size 1 that the place it goes to has not."""
    shape = value._array.shape
    if shape and shape[0] == 1:
        array = view._array
        layout = array if type(array) is np.ndarray else array.layout  # type: ignore[attr-defined]
        ndim = layout[index].ndim
        while value._array.ndim > ndim and value._array.shape[0] == 1:
            value = value[0]
    if index is Ellipsis:
        check_expands(value._array, view._array)
    return value


def check_expands(value: Any, target: Any) -> None:
    """RuntimeError if a value does not broadcast to the place it is written to."""
    have, want = value.shape, target.shape
    sizes = f"Target sizes: {list(want)}.  Tensor sizes: {list(have)}"
    if len(have) > len(want):
        raise RuntimeError(
            f"expand({list(have)}, size={list(want)}): the number of sizes provided "
            f"({len(want)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(have)})"
        )
    first = len(want) - len(have)
    for d, (n, m) in enumerate(zip(have, want[first:], strict=True), first):
        if n not in (1, m):
            raise RuntimeError(
                f"The expanded size of the tensor ({m}) must match the existing size "
                f"({n}) at non-singleton dimension {d}.  {sizes}"
            )


def write_plainly(t: Tensor, steps: Any, advanced: Any, value: Any) -> None:
    """The write where no history is concerned."""
    check_memory(t, part=t._array[steps])
    own(t)
    target = t._array[steps]
    if advanced:
        index = array_part(advanced)
        _write(target, value, index, False)
    else:
        while value.ndim > target.ndim and value.shape[0] == 1:
            value = value[0]
        if value.shape != target.shape:
            check_expands(value, target)
        target[...] = cast(value, target.dtype)
    bump(t)
