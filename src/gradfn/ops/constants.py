"""0-d arrays for the numbers in kernels; NumPy takes twice as long for Python's own."""

from __future__ import annotations

from typing import Any

from gradfn.ops.admit import NUMBERS, number


def scalar(value: Any, dtype: Any) -> Any:
    """A read-only 0-d array for a number beside an array of `dtype`."""
    try:
        return NUMBERS[type(value)][value, dtype]._array
    except KeyError:
        return number(value, dtype)._array
