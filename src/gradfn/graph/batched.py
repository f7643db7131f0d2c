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

from types import SimpleNamespace
from typing import Any

import numpy as np

from gradfn.graph.transforms import Batch, work
from gradfn.tensor import ARRAYS, Tensor, made_for, wrap


class BatchedArray:
    """Stands for the array of one sample among those in `value`."""

    __slots__ = ("batch", "dtype", "shape", "value")
    base = None
    flags = SimpleNamespace(writeable=True, c_contiguous=True)

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

    def copy(self) -> BatchedArray:
        """The same for a copy of the values."""
        return BatchedArray(self.value.clone(), self.batch)

    def filled(self, fill: Any, shape: Any, kind: Any) -> BatchedArray:
        """A new array of `fill(shape, kind)` for each sample."""
        array = made_for(self.value, fill, (self.batch.size, *shape), kind)
        return BatchedArray(wrap(array), self.batch)

    def write(self, op: Any, args: Any) -> None:
        """Writes an op's result into the values; func/dispatch.py puts it here."""
        raise NotImplementedError

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
            "they differ from sample to sample; an op that NumPy computes can take part as "
            "a custom Function with a vmap staticmethod."
        )

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(
            f"vmap: this operation has no rule for batches (it asks for `{name}` of the "
            "values). Compute it outside of vmap, or in a custom Function with a vmap "
            "staticmethod."
        )


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
        return f"BatchedTensor(lvl={len(array.batch.outer.batches) + 1}, value={array.value})"


ARRAYS[BatchedArray] = BatchedTensor


def batched(value: Tensor, batch: Batch) -> Tensor:
    """The tensor that the function sees for `value`, which has the batch in front."""
    return wrap(BatchedArray(value, batch))  # type: ignore[arg-type]


def batch_of(t: Any) -> Batch | None:
    """The innermost batch over which `t` is a tensor; None if it is an ordinary one."""
    return getattr(t._array, "batch", None) if isinstance(t, BatchedTensor) else None


def innermost(tensors: Any) -> Batch | None:
    """The innermost batch of some tensors. RuntimeError if its vmap is over."""
    running = work().batches
    found = -1
    for t in tensors:
        batch = None if t is None else batch_of(t)
        if batch is not None:
            if batch not in running:
                raise RuntimeError(
                    "vmap: a batched tensor is used outside of the vmap that made it. "
                    "Return what is needed from the function that is vmapped."
                )
            found = max(found, running.index(batch))
    return running[found] if found >= 0 else None
