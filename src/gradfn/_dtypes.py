"""torch's dtype objects, and its promotion rules over NumPy arrays.

Note [Where NumPy and torch differ]
    torch sorts the operands into three ranks: tensors with dimensions, 0-d tensors, and
    Python numbers. A lower rank takes part only when its category (bool, integer, real,
    complex) is higher than that of the ranks above it. So f32[n] * f64[] is f32, and
    i32[n] * 2.5 is the default dtype. NumPy knows only arrays and Python numbers.
    Python numbers are turned into 0-d arrays first (`number_dtype`), which leaves two
    ranks to `result_dtype`; its answers are kept in a table.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np


class dtype:
    """A torch dtype. One object for each; compare with `is` or `==`."""

    __slots__ = ("is_complex", "is_floating_point", "is_signed", "name", "numpy")

    def __init__(self, name: str, numpy: str) -> None:
        self.name = name
        self.numpy = np.dtype(numpy)
        self.is_floating_point = self.numpy.kind == "f"
        self.is_complex = self.numpy.kind == "c"
        self.is_signed = self.numpy.kind in "ifc"
        BY_NUMPY[self.numpy] = self

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize

    def to_real(self) -> dtype:
        """The dtype of the real part: float32 for complex64; itself if real."""
        return BY_NUMPY[real_dtype(self.numpy)]

    def to_complex(self) -> dtype:
        """The complex dtype of this precision: complex64 for float32."""
        return BY_NUMPY[complex_dtype(self.numpy)]

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return by_name, (self.name,)


BY_NUMPY: Final[dict[Any, dtype]] = {}

bool_ = dtype("bool", "bool")
uint8 = dtype("uint8", "uint8")
uint16 = dtype("uint16", "uint16")
uint32 = dtype("uint32", "uint32")
uint64 = dtype("uint64", "uint64")
int8 = dtype("int8", "int8")
int16 = dtype("int16", "int16")
int32 = dtype("int32", "int32")
int64 = dtype("int64", "int64")
float16 = dtype("float16", "float16")
float32 = dtype("float32", "float32")
float64 = dtype("float64", "float64")
complex64 = dtype("complex64", "complex64")
complex128 = dtype("complex128", "complex128")


def by_name(name: str) -> dtype:
    """The dtype called `name`: unpickling needs it."""
    return next(d for d in BY_NUMPY.values() if d.name == name)


_CATEGORY: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_COMPLEX: Final[dict[Any, np.dtype[Any]]] = {
    np.dtype("float16"): np.dtype("complex64"),
    np.dtype("float32"): np.dtype("complex64"),
    np.dtype("float64"): np.dtype("complex128"),
}
_REAL: Final[dict[Any, np.dtype[Any]]] = {
    np.dtype("complex64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("float64"),
}
BOOL, INT64 = bool_.numpy, int64.numpy

_default = [float32.numpy]


def default_dtype() -> np.dtype[Any]:
    """The dtype of new real tensors (float32 unless set), as NumPy's object."""
    return _default[0]


def set_default_dtype(d: dtype, /) -> None:
    """Makes `d` the dtype of new real tensors and of integer/integer.

    Raises TypeError if `d` is not a floating-point dtype.
    """
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(
            "only floating-point types are supported as the default type, "
            f"got {d!r}; use torch.float32 or torch.float64"
        )
    _default[0] = d.numpy
    result_dtype.cache_clear()
    number_dtype.cache_clear()
    for forget in on_default_change:
        forget()


on_default_change: list[Any] = []


def get_default_dtype() -> dtype:
    """The dtype of new real tensors: torch.float32 unless set."""
    return BY_NUMPY[_default[0]]


def real_dtype(d: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for complex64, float64 for complex128, else `d`."""
    return _REAL.get(d, d)


def complex_dtype(d: np.dtype[Any]) -> np.dtype[Any]:
    """complex64 for float32, complex128 for float64, else `d`."""
    return _COMPLEX.get(d, d)


def to_numpy(d: Any) -> np.dtype[Any]:
    """NumPy's dtype for a torch dtype (or for Python's float, int, bool, complex)."""
    if isinstance(d, dtype):
        return d.numpy
    if isinstance(d, np.dtype):
        return d
    if d in (bool, int, float, complex):
        return number_dtype(d, BOOL)
    raise TypeError(f"dtype must be a torch.dtype such as torch.float32, not {d!r}")


def torch_dtype(d: np.dtype[Any]) -> dtype:
    """torch's dtype for NumPy's. TypeError if torch has none (str, object, …)."""
    found = BY_NUMPY.get(d) or BY_NUMPY.get(d.newbyteorder("="))
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {d}. The only supported types are: "
            "float64, float32, float16, complex64, complex128, int64, int32, int16, "
            "int8, uint64, uint32, uint16, uint8, and bool."
        )
    return found


@cache
def number_dtype(kind: type, like: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that a Python number of type `kind` takes beside a tensor."""
    category = 3 if kind is complex else {"f": 2, "i": 1}.get(np.dtype(kind).kind, 0)
    have = _CATEGORY[like.kind]
    if category <= have:
        return like
    if category == 1:
        return INT64
    if category == 2:
        return _default[0]
    return complex_dtype(like if have == 2 else _default[0])


@cache
def result_dtype(
    a: np.dtype[Any], a_scalar: Any, b: np.dtype[Any], b_scalar: Any
) -> np.dtype[Any]:
    """torch's promoted dtype of two tensors; `…_scalar`: is that one 0-d?"""
    if a == b:
        return a
    if a_scalar == b_scalar:
        return _promote(a, b)
    strong, weak = (b, a) if a_scalar else (a, b)
    if _CATEGORY[weak.kind] <= _CATEGORY[strong.kind]:
        return strong
    if weak.kind == "c" and strong.kind == "f":
        return _promote(strong, weak) if strong.itemsize == 2 else complex_dtype(strong)
    return weak


def _promote(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    low, high = sorted((a, b), key=lambda d: _CATEGORY[d.kind])
    if _CATEGORY[low.kind] < 2 <= _CATEGORY[high.kind]:
        return high  # f16 with i64 stays f16, where NumPy says float64
    if low.kind == "f" and high.kind == "c":
        return np.promote_types(complex_dtype(low), high)
    return np.promote_types(a, b)


def promote_arrays(a: Any, b: Any) -> tuple[Any, Any]:
    """Both arrays in torch's promoted dtype."""
    d = result_dtype(a.dtype, a.ndim == 0, b.dtype, b.ndim == 0)
    return a.astype(d, copy=False), b.astype(d, copy=False)


def promote_types(a: dtype, b: dtype, /) -> dtype:
    """The smallest dtype both convert to: promote_types(int64, float32) is float32."""
    return BY_NUMPY[result_dtype(a.numpy, False, b.numpy, False)]


def can_cast(source: dtype, target: dtype, /) -> bool:
    """May torch cast so without losing the category (float to int: no)?"""
    a, b = source.numpy, target.numpy
    return _CATEGORY[a.kind] <= _CATEGORY[b.kind]
