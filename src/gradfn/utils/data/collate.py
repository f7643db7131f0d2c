"""Items put together to a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def default_convert(data: Any) -> Any:
    """Arrays in nested containers as tensors."""
    if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind in "biufc":
        return PUBLIC["as_tensor"](data)
    if isinstance(data, Mapping):
        return {k: default_convert(v) for k, v in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(v) for v in data))
    if isinstance(data, (list, tuple)):
        return [default_convert(v) for v in data]
    return data


def default_collate(batch: Any) -> Any:
    """Tensors stacked, numbers as tensors, containers by place and by name.

    TypeError for other things, RuntimeError for sequences of different length.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return PUBLIC["stack"](list(batch))
    if isinstance(first, np.ndarray) and first.dtype.kind in "biufc":
        return PUBLIC["stack"]([PUBLIC["as_tensor"](x) for x in batch])
    if isinstance(first, np.generic) and first.dtype.kind in "biufc":
        return PUBLIC["as_tensor"](np.array(batch))
    if isinstance(first, float):
        return PUBLIC["tensor"](list(batch)).double()
    if isinstance(first, int):
        return PUBLIC["tensor"](list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        if hasattr(first, "_fields"):
            return type(first)(*columns)
        return columns
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)}"
    )
