"""What a node has saved for the backward pass, and how many bytes that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradfn._dtypes import torch_dtype
from gradfn.graph.batched import BatchedArray
from gradfn.graph.packing import Packed
from gradfn.graph.saved import RELEASED
from gradfn.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved tensor; `memory` tells which ones share theirs."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    memory: int
    tensor: int = 0  # the id of the tensor, where it was saved as one


def saved_by(node: Any) -> Iterator[Saved]:
    """All tensors that a node keeps alive, also those put on `ctx` directly."""
    if hasattr(type(node), "_saved"):
        yield from _by_function(node)
        return
    row = getattr(type(node), "op", None)
    for slot in row.saved if row is not None else ():
        yield from _described(slot.removeprefix("_"), _slot(node, slot))


def _by_function(node: Any) -> Iterator[Saved]:
    saved = node._saved
    for i, value in enumerate(saved if isinstance(saved, tuple) else ()):
        yield from _described(f"saved_tensors[{i}]", value)
    for name, value in vars(node).items():
        if not name.startswith("_"):
            yield from _described(f"ctx.{name}", value)


def _slot(node: Any, slot: str) -> Any:
    try:
        return object.__getattribute__(node, slot)
    except AttributeError:
        return None


def _described(name: str, value: Any) -> Iterator[Saved]:
    if value is RELEASED or value is None:
        return
    if isinstance(value, (list, tuple)):
        for i, x in enumerate(value):
            yield from _described(f"{name}[{i}]", x)
        return
    if isinstance(value, Packed):  # hooks hold it: in what form, they alone know
        yield from _described(name, value.packed)
        return
    tensor = value if isinstance(value, Tensor) else getattr(value, "tensor", None)
    array = values_of(getattr(value, "array", value))
    if isinstance(array, np.ndarray):
        known = id(tensor) if isinstance(tensor, Tensor) else 0
        yield Saved(
            name,
            array.shape,
            torch_dtype(array.dtype).name,
            array.nbytes,
            _owner(array),
            known,
        )


def _owner(array: Any) -> int:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return id(array)


def values_of(x: Any) -> Any:
    """The array of a tensor; under vmap that of all samples."""
    array = x._array if isinstance(x, Tensor) else x
    while isinstance(array, BatchedArray):
        array = array.value._array
    return array


def bytes_of(saved: Iterable[Saved]) -> int:
    """How many bytes they keep alive: memory that several share counts once."""
    largest: dict[int, int] = {}
    for s in saved:
        largest[s.memory] = max(largest.get(s.memory, 0), s.bytes)
    return sum(largest.values())
