"""0-d arrays for the numbers in kernels; NumPy takes twice as long for Python's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn.ops.admit import NUMBERS, number


def scalar(value: Any, dtype: Any) -> Any:
    """A read-only 0-d array for a number beside an array of `dtype`."""
    try:
        return NUMBERS[type(value)][value, dtype]._array
    except KeyError:
        return number(value, dtype)._array


# From this size on the method clip pays, though it takes longer to call: the loops of
# np.maximum and np.minimum for a 0-d bound are three times slower.
_LONG = 4096


def _is_long(a: Any) -> bool:
    return a.size >= _LONG and a.dtype.kind == "f"


def at_least(a: Any, bound: Any) -> Any:
    """np.maximum(a, bound)."""
    if _is_long(a):
        return a.clip(bound, math.inf)
    return np.maximum(a, scalar(bound, a.dtype))


def at_most(a: Any, bound: Any) -> Any:
    """np.minimum(a, bound)."""
    if _is_long(a):
        return a.clip(-math.inf, bound)
    return np.minimum(a, scalar(bound, a.dtype))


def between(a: Any, low: Any, high: Any) -> Any:
    """at_most(at_least(a, low), high)."""
    return a.clip(low, high) if _is_long(a) else at_most(at_least(a, low), high)
