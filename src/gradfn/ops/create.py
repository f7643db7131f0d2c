"""New tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._device import check_device
from gradfn._dtypes import default_dtype, to_numpy, complex_dtype
from gradfn.ops.world import public
from gradfn.tensor import LEAF, Tensor, from_array, wrap


@public
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor with a copy of `data`: numbers, nested sequences, an ndarray."""
    if device is not None:
        check_device(device)
    array = np.array(data, None if dtype is None else to_numpy(dtype))
    if dtype is None and array.dtype == np.float64 and not isinstance(data, np.ndarray):
        array = array.astype(default_dtype())
    t = from_array(array)
    if requires_grad:
        t.requires_grad_()
    return t
