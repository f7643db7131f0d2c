"""Memory: where the elements of a tensor lie, and views with any strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.rule import op
from gradfn.ops.sizes import wrapped
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method

# -- any strides -----------------------------------------------------------------------


def owner(a: Any) -> Any:
    """The array that owns the memory of `a`."""
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def offset_of(a: Any) -> int:
    """How many elements `a` begins after the memory it lies in."""
    begin = owner(a).__array_interface__["data"][0]
    return int(a.__array_interface__["data"][0] - begin) // a.itemsize


def places(size: Any, stride: Any, offset: int) -> Any:
    """The place in memory of each element, in elements."""
    out = np.asarray(offset)
    for n, step in zip(size, stride, strict=True):
        out = out[..., None] + np.arange(n) * step
    return out


def _as_strided(a: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    flat = owner(a)
    start = offset_of(a) if storage_offset is None else storage_offset
    last = start + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if 0 not in size and last >= flat.size:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset "
            f"{start}, and itemsize {a.itemsize} requiring a storage size of "
            f"{(last + 1) * a.itemsize} are out of bounds for storage of size {flat.nbytes}"
        )
    # Not by NumPy's as_strided, which would hide whose memory it is.
    strides = tuple(s * a.itemsize for s in stride)
    memory = flat.reshape(-1, order="A")
    return np.ndarray(tuple(size), a.dtype, memory, start * a.itemsize, strides)


def _strided_back(g: Any, own: Any, size: Any, stride: Any, offset: int) -> Any:
    """The gradient of as_strided: through memory, where elements may meet."""
    own_size, own_stride, own_offset = own
    mine, theirs = places(own_size, own_stride, own_offset), places(size, stride, offset)
    memory = np.zeros(1 + max(mine.max(initial=0), theirs.max(initial=0)), g.dtype)
    np.add.at(memory, theirs, g)
    return memory[mine]


def _strided_again(a: Any, own: Any, size: Any, stride: Any, offset: int) -> Any:
    mine, theirs = places(*own), places(size, stride, offset)
    memory = np.zeros(1 + max(mine.max(initial=0), theirs.max(initial=0)), a.dtype)
    memory[mine] = a
    return memory[theirs]


op(
    "_strided_back(self, own, size, stride, offset)",
    _strided_back,
    function=False,
    method=False,
    self=lambda g, xp, own, size, stride, offset: xp._strided_again(
        g, own, size, stride, offset
    ),
)
op(
    "_strided_again(self, own, size, stride, offset)",
    _strided_again,
    function=False,
    method=False,
    self=lambda g, xp, own, size, stride, offset: xp._strided_back(
        g, own, size, stride, offset
    ),
)


def _as_strided_grad(
    g: Any, xp: Any, self: Any, size: Any, stride: Any, storage_offset: Any
) -> Any:
    a = self._array if isinstance(self, Tensor) else self
    own = (a.shape, tuple(s // a.itemsize for s in a.strides), offset_of(a))
    start = own[2] if storage_offset is None else storage_offset
    return xp._strided_back(g, own, tuple(size), tuple(stride), start)


op(
    "as_strided(self, size, stride, storage_offset=None)",
    _as_strided,
    view=True,
    self=_as_strided_grad,
)

# -- facts about memory ----------------------------------------------------------------


@method
def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self._array.ndim


@method
def ndimension(self: Tensor) -> int:
    """The number of dimensions."""
    return self._array.ndim


@method
def size(self: Tensor, dim: Any = None) -> Any:
    """The shape, or its entry for `dim`."""
    if dim is None:
        return self.shape
    if not self._array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return self._array.shape[wrapped(dim, self._array.ndim)]


@public
@method
def numel(self: Tensor) -> int:
    """The number of elements."""
    return self._array.size


@method
def nelement(self: Tensor) -> int:
    """The number of elements."""
    return self._array.size


@method
def element_size(self: Tensor) -> int:
    """Bytes of one element."""
    return self._array.itemsize


@method
def stride(self: Tensor, dim: Any = None) -> Any:
    """Elements to step over for the next index of each dim, or of one."""
    array = self._array
    if array.flags.c_contiguous:  # NumPy's strides of dims of size 1 are arbitrary
        steps: list[int] = []
        step = 1
        for n in reversed(array.shape):
            steps.insert(0, step)
            step *= max(n, 1)
    else:
        steps = [s // array.itemsize for s in array.strides]
        for i in reversed(range(array.ndim)):
            if not steps[i] and array.shape[i] == 1:  # NumPy's stride of a new dim
                inner = (
                    (array.shape[i + 1], steps[i + 1]) if i + 1 < array.ndim else (1, 1)
                )
                steps[i] = inner[0] * inner[1]
    return tuple(steps) if dim is None else steps[wrapped(dim, array.ndim)]


@method
def storage_offset(self: Tensor) -> int:
    """Elements of the memory before the first one of this tensor."""
    return offset_of(self._array)


@method
def data_ptr(self: Tensor) -> int:
    """The address of the first element."""
    return int(self._array.__array_interface__["data"][0])


@method
def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Do the elements lie in memory one after the other, the last dim fastest?"""
    return bool(self._array.flags.c_contiguous)


@method
def contiguous(self: Tensor, memory_format: Any = None) -> Any:
    """The tensor itself if it is contiguous, else a copy that is."""
    if self._array.flags.c_contiguous:
        return self
    from gradfn._device import contiguous_format

    return self.clone(memory_format=contiguous_format)


@method
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Have both the same shape?"""
    return self._array.shape == other._array.shape


@method
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Are both the same memory with the same shape and strides?"""
    return (
        data_ptr(self) == data_ptr(tensor)
        and self._array.shape == tensor._array.shape
        and self._array.strides == tensor._array.strides
    )
