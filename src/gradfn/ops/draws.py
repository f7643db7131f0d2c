"""Random draws with parameters for each element, beyond those in random.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.random import drawing, source
from gradfn.ops.world import public
from gradfn.tensor import Tensor, wrap


@public
@drawing
def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`; count's dtype.

    Both broadcast. RuntimeError for tensors of integers, or of two dtypes.
    """
    a, p = count._array, prob._array
    if a.dtype != p.dtype or a.dtype.kind != "f":
        raise RuntimeError(
            "binomial: count and prob must have the same floating-point dtype, got "
            f"{count.dtype} and {prob.dtype}"
        )
    likely = np.clip(p.astype(np.float64), 0.0, 1.0)
    drawn = source(generator).binomial(np.maximum(a, 0).astype(np.int64), likely)
    return wrap(np.asarray(drawn).astype(a.dtype))
