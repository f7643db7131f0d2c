"""Writing values everywhere: copy_, fill_, zero_; and Python's numbers as values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn._dtypes import torch_dtype
from gradfn._state import quiet
from gradfn.graph.saved import legacy_type
from gradfn.ops.rare import broadcast_error
from gradfn.ops.rule import op
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method, wrap

SINGLE = float(np.finfo(np.float32).max)


def number_array(value: Any, dtype: Any) -> Any:
    """A number (or what NumPy makes of a list) as an array of a tensor's dtype.

    RuntimeError if the dtype cannot hold it, TypeError if it is no number.
    """
    if type(value) is float and dtype.kind == "f" and abs(value) <= SINGLE:
        return np.array(value, dtype)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc" and type(value) is not int:
        name = legacy_type(torch_dtype(dtype).name)
        raise TypeError(f"can't assign a {type(value).__name__} to a {name}")
    if array.ndim:
        return cast(array, dtype)
    number = array.item()
    if not holds(dtype, number):
        raise RuntimeError(
            f"value cannot be converted to type {dtype} without overflow: {value}"
        )
    if dtype.kind in "iu":
        number = int(number.real)
    if dtype.kind == "u":
        number %= 256**dtype.itemsize
    return np.array(number.real if dtype.kind in "bf" else number, dtype)


def holds(dtype: Any, number: Any) -> bool:
    """Can the dtype hold the number? Fractions may be lost; negatives wrap."""
    if dtype.kind != "c" and number.imag:
        return False
    size = max(abs(number.real), abs(number.imag))
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return (
            math.isfinite(size)
            and -info.max - (dtype.kind == "i") <= int(number.real) <= info.max
        )
    if dtype.itemsize == 4 * (1 + (dtype.kind == "c")) and math.isfinite(size):
        return bool(size <= np.finfo(dtype).max)
    return True


def cast(a: Any, dtype: Any) -> Any:
    """The array in another dtype, of complex numbers the real part."""
    if a.dtype is dtype:
        return a
    a = a.real if a.dtype.kind == "c" != dtype.kind else a
    return quiet(lambda: a.astype(dtype, copy=False))


def _copy(a: Any, src: Any, non_blocking: bool = False) -> Any:
    if src.shape != a.shape:
        if src.ndim > a.ndim or any(
            n not in (1, m) for n, m in zip(src.shape[::-1], a.shape[::-1], strict=False)
        ):
            raise broadcast_error([a.shape, src.shape]) or RuntimeError(
                f"output with shape {list(a.shape)} doesn't match the broadcast shape "
                f"{list(np.broadcast_shapes(a.shape, src.shape))}"
            )
        src = np.broadcast_to(src, a.shape)
    return cast(src, a.dtype)


def _zeros(g: Any, xp: Any) -> Any:
    return xp._zeros_like(g)


op(
    "_copy(self, src, non_blocking=False)",
    _copy,
    function=False,
    method=False,
    inplace=True,
    node="torch::autograd::CopyBackwards",
    discards=True,
    self=_zeros,
    src=lambda g: g,
)
op(
    "_fill_tensor(self, value)",
    _copy,
    function=False,
    method=False,
    inplace=True,
    node="FillBackward3",
    self=_zeros,
    value=lambda g, xp: xp.sum(g),
)
op(
    "_fill(self, value)",
    lambda a, value: np.full(a.shape, value, a.dtype),
    function=False,
    method=False,
    inplace=True,
    node="FillBackward2",
    constant=True,
    self=_zeros,
)
op(
    "_zero(self)",
    lambda a: np.zeros(a.shape, a.dtype),
    function=False,
    method=False,
    inplace=True,
    node="Zero",
    constant=True,
    self=_zeros,
)


_fill_row = op(
    "_filled_with(self, value)",
    lambda a, value: np.full(a.shape, value, a.dtype),
    function=False,
    method=False,
    node="FillBackward0",
    self=_zeros,
).function
_fill_tensor_row = op(
    "_filled_with_tensor(self, value)",
    _copy,
    function=False,
    method=False,
    node="FillBackward1",
    self=_zeros,
    value=lambda g, xp: xp.sum(g),
).function


def differentiable(t: Tensor, src: Tensor) -> Tensor:
    """`src`, without its history where `t` has a dtype that can have none."""
    if src._grad_fn is None or t._array.dtype.kind in "fc":
        return src
    return src.detach()  # type: ignore[no-any-return]


@method
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Writes the values of another tensor, broadcast and cast, into this one.

    A number is written everywhere. RuntimeError if the shapes don't fit.
    """
    if isinstance(src, (int, float, complex)):
        src = wrap(number_array(src, self._array.dtype))
    if not isinstance(src, Tensor):
        raise TypeError(
            "copy_(): argument 'other' (position 1) must be Tensor, not "
            f"{type(src).__name__}"
        )
    return self._copy_(differentiable(self, src))  # type: ignore[no-any-return]


def one_value(t: Tensor, value: Any) -> Any:
    """The value for fill: a 0-d tensor, or a number that fits the tensor's dtype."""
    if not isinstance(value, Tensor):
        if not isinstance(value, (int, float, complex, np.generic)):
            raise TypeError(
                "fill_(): argument 'value' (position 1) must be a number or a 0-d Tensor, "
                f"not {type(value).__name__}"
            )
        return number_array(value, t._array.dtype).item()
    if value._array.ndim:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value._array.ndim} dimensions."
        )
    return differentiable(t, value)


@method
def fill_(self: Tensor, value: Any) -> Tensor:
    """Writes one value (a number or 0-d tensor) everywhere."""
    value = one_value(self, value)
    if isinstance(value, Tensor):
        return self._fill_tensor_(value)  # type: ignore[no-any-return]
    return self._fill_(value)  # type: ignore[no-any-return]


@public
def fill(input: Tensor, value: Any) -> Any:
    """A tensor of the same shape and dtype with one value everywhere."""
    value = one_value(input, value)
    row = _fill_tensor_row if isinstance(value, Tensor) else _fill_row
    return row(input, value)


@method
def zero_(self: Tensor) -> Tensor:
    """Writes zeros."""
    return self._zero_()  # type: ignore[no-any-return]
