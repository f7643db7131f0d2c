"""Batched tensors: what a function that is vmapped sees in the place of all samples.

Note [Batched tensors]
    To the function a BatchedTensor is one sample: it has that shape and dtype, and no
    values. Its `_array` is a BatchedArray, which holds the tensor of all samples, with
    the batch in front. Whatever makes a tensor around an array (`wrap`) makes a
    BatchedTensor around this one, so that saving, sharing and unpacking need no special
    case; whatever wants the values of one sample is refused. `type(x) is not Tensor`
    sends every op through the door for unusual arguments, where gradfn.func takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from gradfn._state import TRANSFORMS, mode
from gradfn.graph.transforms import Batch, work
from gradfn.tensor import ARRAYS, Tensor, made_for, wrap


class NoRule(AttributeError, RuntimeError):
    """The RuntimeError for what asks for values; so that hasattr() says no, and no more."""


# Attributes by which memory or values would leave vmap.
MEMORY = ("tolist", "__array_interface__", "__dlpack__", "__dlpack_device__", "data")


class Flags:
    """What an ndarray's flags say, for one sample."""

    __slots__ = ("array",)
    writeable = True

    def __init__(self, array: BatchedArray) -> None:
        self.array = array

    @property
    def c_contiguous(self) -> bool:
        """Do the elements of a sample lie one after the other, the last dim fastest?"""
        return bool(self.array.layout.flags.c_contiguous)


class BatchedArray:
    """Stands for the array of one sample among those in `value`."""

    __slots__ = ("batch", "dtype", "shape", "value")
    base = None

    def __init__(self, value: Tensor, batch: Batch) -> None:
        self.value = value
        self.batch = batch
        self.shape = value._array.shape[1:]
        self.dtype: np.dtype[Any] = value._array.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of a sample."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of a sample."""
        total = 1
        for n in self.shape:
            total *= n
        return total

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of one sample."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of a sample."""
        return tuple(self.value._array.strides[1:])

    @property
    def layout(self) -> Any:
        """An ndarray that lies in memory as one sample does; its values mean nothing."""
        inner: Any = self.value._array
        array = inner if type(inner) is np.ndarray else inner.layout
        return array[0] if len(array) else np.empty(self.shape, self.dtype)

    @property
    def flags(self) -> Any:
        """What may be done with a sample's memory, and how it lies."""
        return Flags(self)

    def copy(self) -> BatchedArray:
        """The same for a copy of the values."""
        return BatchedArray(self.value.clone(), self.batch)

    def detached(self) -> BatchedArray:
        """The same for the values without history, at any level."""
        return BatchedArray(self.value.detach(), self.batch)

    def laid_out(self, order: list[int], back: list[int]) -> BatchedArray:
        """A copy in which each sample's memory is ordered by its dims in this order."""
        ordered = self.value.permute([0, *(d + 1 for d in order)]).contiguous().clone()
        return BatchedArray(ordered.permute([0, *(d + 1 for d in back)]), self.batch)

    def filled(self, fill: Any, shape: Any, kind: Any) -> BatchedArray:
        """A new array of `fill(shape, kind)` for each sample."""
        array = made_for(self.value, fill, (self.batch.size, *shape), kind)
        return BatchedArray(wrap(array), self.batch)

    def write(self, op: Any, args: Any) -> None:
        """Writes an op's result into the values; func/dispatch.py puts it here."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.shape[0]  # type: ignore[no-any-return]

    def item(self) -> Any:
        """Raises RuntimeError: samples have different values."""
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap "
            "over calling .item() on a Tensor, please try to rewrite what you're doing with "
            "other operations, or compute it outside of vmap."
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(
            "vmap: the values of a batched tensor are not to be had inside of vmap, for "
            "they differ from sample to sample (PyTorch says: Cannot access data pointer of "
            "Tensor that doesn't have storage); an op that NumPy computes can take part as "
            "a custom Function with a vmap staticmethod."
        )

    def __getattr__(self, name: str) -> Any:
        if name in MEMORY:
            self.__array__()
        raise NoRule(
            f"vmap: this operation has no rule for batches (it asks for `{name}` of the "
            "values). Compute it outside of vmap, or in a custom Function with a vmap "
            "staticmethod."
        )


def _refuse_operators() -> None:
    """Operators look for their methods in the class: the same answer for them."""
    names = (
        "getitem setitem lt le gt ge add radd sub rsub mul rmul truediv neg abs invert"
    )
    for name in names.split():

        def refused(self: BatchedArray, *_: Any, name: str = f"__{name}__") -> Any:
            return self.__getattr__(name)

        setattr(BatchedArray, f"__{name}__", refused)


_refuse_operators()


class BatchedTensor(Tensor):
    """A tensor whose values are those of all samples of a vmap."""

    __slots__ = ()

    @staticmethod
    def _take_op(op: Any, args: Any) -> Any:
        """The op on batched tensors; func/dispatch.py puts it here."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent "
            "control flow. We don't support that yet: choose by torch.where, or decide "
            "outside of vmap."
        )

    def item(self) -> Any:
        """Raises RuntimeError: samples have different values."""
        return self._array.item()

    def numpy(self, *, force: bool = False) -> Any:
        """Raises RuntimeError: samples have different values."""
        return self._array.__array__()

    def __repr__(self) -> str:
        array: Any = self._array
        level = len(array.batch.outer.batches) + 1
        return f"BatchedTensor(lvl={level}, bdim=0, value={array.value})"


ARRAYS[BatchedArray] = BatchedTensor

F = TypeVar("F", bound=Callable[..., Any])


def by_sample(function: F) -> F:
    """Makes a function that wants values run sample by sample on batched tensors.

    For functions without a derivative only: the results of vmap have no history.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if mode() & TRANSFORMS and work().batches:
            from gradfn.func.dispatch import take_function

            return take_function(function, args, kwargs)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def refuse_batched(message: str, *tensors: Any) -> None:
    """RuntimeError if one of the tensors is batched."""
    if any(isinstance(t, BatchedTensor) for t in tensors):
        raise RuntimeError(f"vmap: {message}")


def refuse_dynamic(name: str, *tensors: Any) -> None:
    """RuntimeError for what gives a result of another shape for each sample."""
    refuse_batched(
        "We do not support batching operators that can output dynamic shape. Attempted to "
        f"vmap over aten::{name}: samples may have results of different shapes. Use "
        "torch.where with three arguments, or compute it outside of vmap.",
        *tensors,
    )


def batched(value: Tensor, batch: Batch) -> Tensor:
    """The tensor that the function sees for `value`, which has the batch in front."""
    return wrap(BatchedArray(value, batch))  # type: ignore[arg-type]


def batch_of(t: Any) -> Batch | None:
    """The innermost batch over which `t` is a tensor; None if it is an ordinary one."""
    return getattr(t._array, "batch", None) if isinstance(t, BatchedTensor) else None


def is_recorded(t: Tensor) -> bool:
    """Has a tensor a history, in any of its layers?"""
    return t.requires_grad or is_recorded_beneath(t)


def is_recorded_beneath(t: Any) -> bool:
    """Has the tensor of all samples a history, in any of its layers?"""
    array = t._array if isinstance(t, BatchedTensor) else None
    return isinstance(array, BatchedArray) and is_recorded(array.value)


def beneath(tensors: list[Any]) -> list[Tensor]:
    """The tensors of all samples behind some batched ones, in all layers."""
    found = []
    for t in tensors:
        while isinstance(t, BatchedTensor):
            t = t._array.value  # type: ignore[attr-defined]
            found.append(t)
    return found


def batches_of(t: Tensor) -> set[Batch]:
    """The batches over which `t` is a tensor, in all layers."""
    array: Any = t._array
    found = set()
    while isinstance(array, BatchedArray):
        found.add(array.batch)
        array = array.value._array
    return found


def all_values(t: Tensor) -> Any:
    """The ndarray of all samples, through all layers: for checks of ranges."""
    return all_of(t._array)


def all_of(array: Any) -> Any:
    """The same for what stands for a tensor's array."""
    while isinstance(array, BatchedArray):
        array = array.value._array
    return array


def innermost(tensors: Any) -> Batch | None:
    """The innermost batch of some tensors. RuntimeError if its vmap is over."""
    running = work().batches
    found = -1
    for t in tensors:
        batch = None if t is None else batch_of(t)
        if batch is not None:
            if batch not in running:
                raise RuntimeError(
                    "vmap: your tensor may have escaped from inside a function being "
                    "vmapped: it is used outside of the vmap that made it. Return what is "
                    "needed from the function (see also `gen_vmap_plumbing` in PyTorch's "
                    "message for the same mistake)."
                )
            found = max(found, running.index(batch))
    return running[found] if found >= 0 else None
