"""0-d arrays for the numbers in kernels; NumPy takes twice as long for Python's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.admit import NUMBERS, number


def scalar(value: Any, dtype: Any) -> Any:
    """A read-only 0-d array for a number beside an array of `dtype`."""
    try:
        return NUMBERS[type(value)][value, dtype]._array
    except KeyError:
        return number(value, dtype)._array


# From this size on a row of bounds pays: the loops of np.maximum and np.minimum for a 0-d
# bound are three times slower.
_LONG = 4096


def _row(bound: Any, a: Any) -> Any:
    row = np.empty(a.shape[-1:], a.dtype)
    row.fill(bound)
    return row


def at_least(a: Any, bound: Any) -> Any:
    """np.maximum(a, bound)."""
    long = a.size >= _LONG and a.dtype.kind == "f"
    return np.maximum(a, _row(bound, a) if long else scalar(bound, a.dtype))


def at_most(a: Any, bound: Any) -> Any:
    """np.minimum(a, bound)."""
    long = a.size >= _LONG and a.dtype.kind == "f"
    return np.minimum(a, _row(bound, a) if long else scalar(bound, a.dtype))
