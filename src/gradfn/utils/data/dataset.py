"""Data sets: things with a length and items, or things to iterate over."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Base of data sets: write `__getitem__` and `__len__`."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Base of data sets that are only iterated over: write `__iter__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(
            "Subclasses of IterableDataset should implement __iter__."
        )

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[Any]):
    """Tuples of rows of tensors. AssertionError unless they have the same number."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise AssertionError(
                f"Size mismatch between tensors, which have {[len(t) for t in tensors]} rows"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> Any:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Items of several data sets side by side: as tuples, or as dicts by keyword."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "Supported either tuple- (via args) or dict- (via kwargs) like input, and one "
                "data set at least"
            )
        self.datasets: Any = args or kwargs
        parts = list(args or kwargs.values())
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {k: part[index] for k, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Several data sets, one behind the other."""

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        at = index + len(self) if index < 0 else index
        if at < 0:
            raise ValueError("absolute value of index should not exceed dataset length")
        part = bisect_right(self.cumulative_sizes, at)
        begin = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][at - begin]


class ChainDataset(IterableDataset[Any]):
    """Several iterable data sets, one after the other."""

    def __init__(self, datasets: Any) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(part) for part in self.datasets)


class Subset(Dataset[Any]):
    """Some items of a data set."""

    def __init__(self, dataset: Any, indices: Any) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Any, generator: Any = None) -> list[Subset]:
    """Parts of given lengths, or fractions of 1, drawn without replacement.

    ValueError if the lengths are not all that there is.
    """
    sizes = list(lengths)
    n = len(dataset)
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1:
        if any(not 0 <= part <= 1 for part in sizes):
            raise ValueError("Fractions must be between 0 and 1")
        sizes = [math.floor(n * part) for part in sizes]
        for i in range(n - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != n:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! They are "
            f"{sizes}, for {n} items"
        )
    order = PUBLIC["randperm"](n, generator=generator).tolist()
    ends = accumulate(sizes)
    return [Subset(dataset, order[e - s : e]) for s, e in zip(sizes, ends, strict=True)]
