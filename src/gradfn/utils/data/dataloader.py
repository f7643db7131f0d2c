"""DataLoader: batches of a data set."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from gradfn.utils.data.collate import default_collate, default_convert
from gradfn.utils.data.dataset import IterableDataset
from gradfn.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler


def get_worker_info() -> None:
    """None: items are made in this very process."""
    return None


class DataLoader:
    """Iterates over batches of a data set.

    Items are made in this process whatever `num_workers` says. ValueError for settings
    that contradict each other.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        **options: Any,
    ) -> None:
        for name in options.keys() - _IGNORED:
            raise TypeError(
                f"DataLoader.__init__() got an unexpected keyword argument '{name}'"
            )
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative")
        self.dataset, self.num_workers, self.generator = dataset, num_workers, generator
        self.pin_memory, self.timeout = pin_memory, timeout
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable and (
            shuffle or sampler is not None or batch_sampler is not None
        ):
            raise ValueError(
                "DataLoader with IterableDataset: expected unspecified shuffle, sampler and "
                "batch_sampler options"
            )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None and not self._iterable:
            sampler = (
                RandomSampler(dataset, generator=generator)
                if shuffle
                else SequentialSampler(dataset)
            )
        if batch_size is not None and batch_sampler is None and not self._iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        batches = batch_sampler is not None or batch_size is not None
        usual = default_collate if batches else default_convert
        self.collate_fn = usual if collate_fn is None else collate_fn

    def __iter__(self) -> Iterator[Any]:
        if self._iterable:
            yield from self._of_iterable()
        elif self.batch_sampler is None:
            for i in self.sampler:
                yield self.collate_fn(self.dataset[i])
        else:
            for batch in self.batch_sampler:
                yield self.collate_fn(self._items(batch))

    def _items(self, indices: Any) -> Any:
        many = getattr(self.dataset, "__getitems__", None)
        return many(indices) if many else [self.dataset[i] for i in indices]

    def _of_iterable(self) -> Iterator[Any]:
        items = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, items)
            return
        while batch := list(islice(items, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def __len__(self) -> int:
        if not self._iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        whole, rest = divmod(n, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


# Settings of PyTorch's that matter to other processes only.
_IGNORED = frozenset(
    {"prefetch_factor", "persistent_workers", "pin_memory_device", "in_order"}
)
