"""Indexing by batched tensors: each sample is indexed by numbers of its own.

Note [Batched indices]
    The row of indexing keeps its index arrays as plain arguments, which have no batch. So
    with a batched one among them the indexed dims are made one dim, of which single rows
    are taken by `gather` or replaced by `scatter`; these take tensors, and do the rest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn.graph.batched import BatchedTensor, all_values
from gradfn.ops.fill import differentiable
from gradfn.ops.index import (
    WHOLE,
    basic_view,
    checked,
    items_of,
    split_index,
)
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor, wrap


def has_batched(index: Any) -> bool:
    """Is there a batched tensor among the parts of an index?"""
    if isinstance(index, (tuple, list)):
        return any(isinstance(x, BatchedTensor) for x in index)
    return isinstance(index, BatchedTensor)


class Place:
    """What an index means for a tensor: rows of a table."""

    def __init__(self, t: Tensor, index: Any) -> None:
        items = items_of(index)
        stand_ins: dict[int, Tensor] = {}
        for k, x in enumerate(items):
            if isinstance(x, BatchedTensor):
                items[k] = stand_in(x)
                stand_ins[id(items[k]._array)] = x
        steps, advanced = split_index(tuple(items), t._array.shape)
        self.view = t
        if any(x is not Ellipsis and x != WHOLE for x in steps):
            self.view = basic_view(t, steps)
        self.dims = [d for d, _ in advanced]
        shape = self.view._array.shape
        self.sizes = [shape[d] for d in self.dims]
        self.rest = [n for d, n in enumerate(shape) if d not in self.dims]
        indices = [stand_ins.get(id(a), wrap(a)) for _, a in advanced]
        self.shape = np.broadcast_shapes(*(x._array.shape for x in indices))
        self.at = self.flat(indices)

    def flat(self, indices: list[Tensor]) -> Any:
        """The rows' numbers, one for each element of the indices."""
        total: Any = None
        for x, n, d in zip(indices, self.sizes, self.dims, strict=True):
            checked(all_values(x), n, d)
            x = PUBLIC["where"](x < 0, x + n, x)
            total = x if total is None else total * n + x
        width = math.prod(self.rest)
        return total.expand(self.shape).reshape(-1, 1).expand(-1, width)

    def table(self) -> Any:
        """The tensor with the indexed dims as one, and all others as another."""
        moved = self.view.movedim(self.dims, list(range(len(self.dims))))
        return moved.reshape(math.prod(self.sizes), math.prod(self.rest))

    def first(self) -> int:
        """The dim of the result at which those of the index arrays begin."""
        low, high = self.dims[0], self.dims[-1]
        return low if high - low == len(self.dims) - 1 else 0

    def arranged(self, rows: Any) -> Any:
        """Rows as the result of indexing."""
        n, first = len(self.shape), self.first()
        out = rows.reshape((*self.shape, *self.rest))
        return out.movedim(list(range(n)), list(range(first, first + n))) if n else out

    def rows(self, value: Any) -> Any:
        """What is written at the index as rows."""
        n, first = len(self.shape), self.first()
        wide = value.expand((*self.rest[:first], *self.shape, *self.rest[first:]))
        if n:
            wide = wide.movedim(list(range(first, first + n)), list(range(n)))
        return wide.reshape(math.prod(self.shape), math.prod(self.rest))

    def with_rows(self, rows: Any, accumulate: bool) -> Any:
        """The tensor with other rows at the index, or with them added."""
        table = self.table()
        done = (table.scatter_add if accumulate else table.scatter)(0, self.at, rows)
        moved = done.reshape((*self.sizes, *self.rest))
        return moved.movedim(list(range(len(self.dims))), self.dims)


def stand_in(x: Tensor) -> Tensor:
    """An index of zeros in the place of a batched one. RuntimeError for a mask."""
    if x._array.dtype.kind == "b":
        raise RuntimeError(
            "vmap: We do not support batching operators that can support dynamic shape. "
            "Attempting to batch over indexing with a boolean mask. Use torch.where or "
            "masked_fill."
        )
    if x._array.dtype.kind not in "iu":
        raise IndexError(
            "tensors used as indices must be long, int, byte or bool tensors, got "
            f"{x.dtype}"
        )
    return wrap(np.zeros(x._array.shape or (1,), np.int64))


def read(t: Tensor, index: Any) -> Any:
    """`t[index]`, where there is a batched tensor in the index."""
    place = Place(t, index)
    return place.arranged(place.table().gather(0, place.at))


def put(t: Tensor, index: Any, value: Tensor, accumulate: bool = False) -> None:
    """`t[index] = value`, where there is a batched tensor in the index."""
    place = Place(t, index)
    rows = place.rows(fitting(t, value, place))
    place.view.copy_(place.with_rows(rows, accumulate))


def fitting(t: Tensor, value: Tensor, place: Place) -> Tensor:
    """The value in the tensor's dtype, without leading dims of size 1 too many."""
    value = differentiable(t, value).to(t.dtype)
    while value.dim() > len(place.shape) + len(place.rest) and value.shape[0] == 1:
        value = value[0]
    return value
