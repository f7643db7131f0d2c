"""Indexing, and writing through an index.

Note [Indexing]
    Ints, slices, None and Ellipsis make a view, in one row whatever the index; its name
    is that of the last step that torch would take. Masks and integer arrays copy. Where
    both occur, the view is taken first: each array is left as a whole slice there. Then
    the arrays index what remains, by NumPy's rules, which are torch's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import INT64
from gradfn._state import GRAD, mode
from gradfn.graph.view import edge
from gradfn.ops.inplace import bump, check_memory, own
from gradfn.ops.rule import op
from gradfn.ops.shape import alias_row, newaxis_row, select_row, slice_row
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method, wrap

WHOLE = slice(None)

# -- what the index means --------------------------------------------------------------


def array_index(x: Any) -> Any:
    """A list, tensor or array as an index array; None for ints, slices and the like."""
    if isinstance(x, Tensor):
        a = x._array
    elif isinstance(x, np.ndarray):
        a = x
    elif isinstance(x, (list, tuple, range)):
        items = [y._array if isinstance(y, Tensor) else y for y in x]
        a = np.array(items, None if items else INT64)
    else:
        return None
    if a.dtype.kind not in "biu":
        raise IndexError(
            "tensors used as indices must be long, int, byte or bool tensors, got "
            f"{a.dtype}"
        )
    return a.astype(bool) if a.dtype == np.uint8 else a


def split_index(index: Any, shape: Any) -> tuple[Any, list[tuple[int, Any]]]:
    """(basic index, [(dim of what that gives, index array)]). IndexErrors."""
    items = list(index) if isinstance(index, tuple) else [index]
    arrays = [array_index(x) for x in items]
    taken = sum(
        a.ndim if a is not None and a.dtype.kind == "b" else 1
        for x, a in zip(items, arrays, strict=True)
        if not (x is None or x is Ellipsis or isinstance(x, (bool, np.bool_)))
    )
    if taken > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
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
            advanced.append((out, np.atleast_1d(np.asarray(x if a is None else a))))
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
    return tuple(steps), advanced


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
    """Index values from 0 on; IndexError outside."""
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
    start, stop, step = (None if v is None else int(v) for v in (x.start, x.stop, x.step))
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


# -- reading ---------------------------------------------------------------------------


def _index(a: Any, index: Any) -> Any:
    return a[index]


def _index_back(g: Any, shape: Any, index: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    np.add.at(out, index, g)
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
    self=lambda g, xp, self_shape, index: xp._index_back(g, self_shape, index),
).function


def array_part(advanced: Any) -> Any:
    """NumPy's index for the arrays, and whole slices before, between and after them."""
    last = advanced[-1][0]
    full: list[Any] = [WHOLE] * (last + 1)
    for dim, a in advanced:
        full[dim] = a
    return tuple(full)


@method
def __getitem__(self: Tensor, index: Any) -> Any:
    """The part of the tensor at an index: a view, or a copy if arrays are among it."""
    kind = type(index)
    shape = self._array.shape
    if kind is int and shape:
        if not -shape[0] <= index < shape[0]:
            in_range(index, shape[0], 0)
        return select_row(self, (index, Ellipsis))
    if kind is slice and shape:
        return slice_row(self, (whole_slice(index), Ellipsis))
    steps, advanced = split_index(index, shape)
    view = self
    if not advanced or any(x is not Ellipsis and x != WHOLE for x in steps):
        view = basic_view(self, steps)
    return index_row(view, array_part(advanced)) if advanced else view


# -- writing ---------------------------------------------------------------------------


def _copy(a: Any, src: Any, non_blocking: bool = False) -> Any:
    try:
        return np.broadcast_to(src, a.shape)
    except ValueError:
        raise RuntimeError(
            f"The size of tensor a {list(a.shape)} must match the size of tensor b "
            f"{list(src.shape)}: output with shape {list(a.shape)} doesn't match the "
            "broadcast shape"
        ) from None


def _zeros(g: Any, xp: Any) -> Any:
    return xp._zeros_like(g)


op(
    "_copy(self, src, non_blocking=False)",
    _copy,
    function=False,
    method=False,
    inplace=True,
    node="torch::autograd::CopyBackwards",
    self=_zeros,
    src=lambda g: g,
)
op(
    "_fill_tensor(self, value)",
    _copy,
    function=False,
    method=False,
    inplace=True,
    node="FillBackward3",
    self=_zeros,
    value=lambda g, xp: xp.sum(g),
)
op(
    "_fill(self, value)",
    lambda a, value: np.full(a.shape, value, a.dtype),
    function=False,
    method=False,
    inplace=True,
    node="FillBackward2",
    self=_zeros,
)
op(
    "_zero(self)",
    lambda a: np.zeros(a.shape, a.dtype),
    function=False,
    method=False,
    inplace=True,
    node="Zero",
    self=_zeros,
)


@method
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Writes the values of another tensor, broadcast and cast, into this one."""
    if not isinstance(src, Tensor):
        raise TypeError(
            "copy_(): argument 'other' (position 1) must be Tensor, not "
            f"{type(src).__name__}"
        )
    if src._array.dtype != self._array.dtype:
        src = src.to(self.dtype)
    return self._copy_(src)  # type: ignore[no-any-return]


@method
def fill_(self: Tensor, value: Any) -> Tensor:
    """Writes one value (a number or 0-d tensor) everywhere."""
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value._array.ndim} dimensions."
            )
        return self._fill_tensor_(value.to(self.dtype))  # type: ignore[no-any-return]
    return self._fill_(value)  # type: ignore[no-any-return]


@public
@method
def fill(self: Tensor, value: Any) -> Tensor:
    """A tensor of the same shape and dtype with one value everywhere."""
    return self.clone().fill_(value)  # type: ignore[no-any-return]


@method
def zero_(self: Tensor) -> Tensor:
    """Writes zeros."""
    return self._zero_()  # type: ignore[no-any-return]


def _put(a: Any, values: Any, index: Any, accumulate: bool = False) -> Any:
    out = a.copy()
    _write(out, values, index, accumulate)
    return out


def _write(target: Any, values: Any, index: Any, accumulate: bool) -> None:
    values = values.astype(target.dtype, copy=False)
    try:
        if accumulate:
            np.add.at(target, index, values)
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
op(
    "_index_put(self, values, index, accumulate=False)",
    _put,
    function=False,
    method=False,
    inplace=True,
    node="IndexPut",
    self=_put_grad,
    values=lambda g, xp, index, accumulate: (
        xp._index(g, index) if accumulate else xp._index_last(g, index)
    ),
)


@method
def index_put_(
    self: Tensor, indices: Any, values: Tensor, accumulate: bool = False
) -> Tensor:
    """Writes values at index tensors; adds them, also repeatedly, if `accumulate`."""
    _, advanced = split_index(tuple(indices), self._array.shape)
    index = array_part(advanced)
    return self._index_put_(values.to(self.dtype), index, accumulate)  # type: ignore[no-any-return]


@public
@method
def index_put(
    self: Tensor, indices: Any, values: Tensor, accumulate: bool = False
) -> Tensor:
    """`index_put_` on a copy."""
    _, advanced = split_index(tuple(indices), self._array.shape)
    from gradfn.ops.rule import TABLE

    row = TABLE["_index_put"].function
    return row(self, values.to(self.dtype), array_part(advanced), accumulate)  # type: ignore[no-any-return]


@method
def __setitem__(self: Tensor, index: Any, value: Any) -> None:
    """Writes a number or a tensor that broadcasts at an index."""
    if not isinstance(value, Tensor):
        value = wrap(np.asarray(value).astype(self._array.dtype))
    steps, advanced = split_index(index, self._array.shape)
    plain = not mode() & GRAD or (edge(self) is None and value._grad_fn is None)
    if plain and self._extra is None:
        write_plainly(self, steps, advanced, value._array)
        return
    view = self
    if any(x is not Ellipsis and x != WHOLE for x in steps) or not advanced:
        view = basic_view(self, steps)
    if advanced:
        view._index_put_(value.to(self.dtype), array_part(advanced), False)
    else:
        view.copy_(trimmed(value, view))


def trimmed(value: Tensor, view: Tensor) -> Tensor:
    """`value` without leading dims of size 1 that the place it goes to has not."""
    while value._array.ndim > view._array.ndim and value._array.shape[0] == 1:
        value = value[0]
    return value


def write_plainly(t: Tensor, steps: Any, advanced: Any, value: Any) -> None:
    """The write where no history is concerned."""
    check_memory(t)
    own(t)
    target = t._array[steps]
    while value.ndim > target.ndim and value.shape[0] == 1:
        value = value[0]
    if advanced:
        _write(target, value, array_part(advanced), False)
    else:
        value = value.real if value.dtype.kind == "c" != target.dtype.kind else value
        try:
            np.copyto(target, value, casting="unsafe")
        except ValueError:
            raise RuntimeError(
                f"The expanded size of the tensor {list(value.shape)} must match the "
                f"existing size {list(target.shape)} of what is written"
            ) from None
    bump(t)
