"""Arithmetic of two operands, element by element, and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import BY_NUMPY, INT64, default_dtype, promote_arrays
from gradfn.ops.admit import is_operand
from gradfn.ops.constants import scalar
from gradfn.ops.rule import TABLE, alias, op, operator
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method, wrap

# -- helpers of formulas ---------------------------------------------------------------

op(
    "_zeros_like(self)",
    lambda a: np.zeros(a.shape, a.dtype),
    takes="self",
    function=False,
    method=False,
)


def _keep(a: Any, mask: Any) -> Any:
    return np.where(mask, a, scalar(0, a.dtype))


# `self` where the mask is true and 0 elsewhere, also where self is nan.
op(
    "_keep(self, mask)",
    _keep,
    takes="mask",
    function=False,
    method=False,
    node="Where",
    self=lambda g, xp, mask: xp._keep(g, mask),
)


def zero(g: Any, xp: Any) -> Any:
    """The gradient of a step function."""
    return xp._zeros_like(g)


# -- sums ------------------------------------------------------------------------------


def _scaled(b: Any, alpha: Any) -> Any:
    if b.dtype.kind in "iu" and isinstance(alpha, float):
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a float"
        )
    return b if alpha == 1 else b * scalar(alpha, b.dtype)


def _add(a: Any, b: Any, alpha: Any = 1) -> Any:
    return np.add(a, b if alpha == 1 else _scaled(b, alpha))


def _sub(a: Any, b: Any, alpha: Any = 1) -> Any:
    if a.dtype.kind == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use "
            "the `^` or `logical_xor()` operator instead."
        )
    return np.subtract(a, b if alpha == 1 else _scaled(b, alpha))


op(
    "add(self, other, *, alpha=1)",
    _add,
    numbers=True,
    inplace=True,
    self=lambda g: g,
    other=lambda g, alpha: g if alpha == 1 else g * alpha,
)
op(
    "sub(self, other, *, alpha=1)",
    _sub,
    numbers=True,
    inplace=True,
    self=lambda g: g,
    other=lambda g, alpha: -g if alpha == 1 else g * -alpha,
)
op(
    "rsub(self, other, *, alpha=1)",
    lambda a, b, alpha=1: _sub(b, a, alpha),
    numbers=True,
    method=False,
    overload="True",
    self=lambda g, alpha: -g if alpha == 1 else g * -alpha,
    other=lambda g: g,
)
alias("subtract", "sub")

# -- products --------------------------------------------------------------------------

op(
    "mul(self, other)",
    np.multiply,
    numbers=True,
    inplace=True,
    self=lambda g, other: g * other.conj(),
    other=lambda g, self: g * self.conj(),
)
alias("multiply", "mul")


def _refuse_zero(b: Any) -> None:
    if b.dtype.kind in "biu" and not b.all():
        raise RuntimeError("ZeroDivisionError")


def _div(a: Any, b: Any, rounding_mode: Any = None) -> Any:
    if rounding_mode is None:
        if a.dtype.kind in "biu":
            a, b = a.astype(default_dtype()), b.astype(default_dtype())
        return np.divide(a, b)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    _refuse_zero(b)
    if rounding_mode == "floor":
        return np.floor_divide(a, b)
    if a.dtype.kind in "biu":
        return ((a - np.fmod(a, b)) // b).astype(a.dtype)
    return np.trunc(np.divide(a, b))


op(
    "div(self, other, *, rounding_mode=None)",
    _div,
    numbers=True,
    inplace=True,
    self=lambda g, xp, other, rounding_mode: (
        g / other.conj() if rounding_mode is None else zero(g, xp)
    ),
    other=lambda g, xp, self, other, rounding_mode: (
        -g * (self / other / other).conj() if rounding_mode is None else zero(g, xp)
    ),
)
alias("divide", "div")


@public
@method
def true_divide(self: Any, other: Any) -> Any:
    """The quotient; of integers in the default dtype."""
    return self.div(other)


Tensor.true_divide_ = Tensor.div_  # type: ignore[attr-defined]


def _floor_divide(a: Any, b: Any) -> Any:
    _refuse_zero(b)
    return np.floor_divide(a, b)


op(
    "floor_divide(self, other)",
    _floor_divide,
    takes="self other",
    numbers=True,
    inplace=True,
)


def _remainder(a: Any, b: Any) -> Any:
    _refuse_zero(b)
    return np.remainder(a, b)


def _fmod(a: Any, b: Any) -> Any:
    _refuse_zero(b)
    return np.fmod(a, b)


op(
    "remainder(self, other)",
    _remainder,
    numbers=True,
    inplace=True,
    self=lambda g: g,
    other=lambda g, xp, self, other: -g * xp.floor_divide(self, other),
)
op(
    "fmod(self, other)",
    _fmod,
    numbers=True,
    inplace=True,
    self=lambda g: g,
    other=lambda g, xp, self, other: -g * xp.trunc(self / other),
)

# -- powers ----------------------------------------------------------------------------

_PRODUCTS: dict[Any, Any] = {
    2: lambda a: a * a,
    3: lambda a: a * a * a,
    4: lambda a: np.square(a * a),
    1: lambda a: a.copy(),
    0: lambda a: np.ones(a.shape, a.dtype),
    0.5: np.sqrt,
    -1: np.reciprocal,
    -2: lambda a: np.reciprocal(a * a),
    -0.5: lambda a: np.reciprocal(np.sqrt(a)),
}


def _power(a: Any, exponent: Any) -> Any:
    kind = a.dtype.kind
    if kind in "biu":
        if type(exponent) is float:
            a = a.astype(default_dtype())
        elif kind == "b":
            a = a.astype(INT64)
        if type(exponent) is int and exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
    product = _PRODUCTS.get(exponent)
    if product is not None:
        return product(a)
    return np.power(a, scalar(exponent, a.dtype))


def _power_grad(g: Any, xp: Any, self: Any, exponent: Any) -> Any:
    if exponent == 0:
        return zero(g, xp)
    if exponent == 2:
        return g * (self + self).conj()
    return g * (xp._pow_number(self, exponent - 1) * exponent).conj()


_pow_number = op(
    "_pow_number(self, exponent)",
    _power,
    function=False,
    method=False,
    inplace=True,
    node="Pow",
    self=_power_grad,
).function


def _base_grad(g: Any, xp: Any, self: Any, exponent: Any) -> Any:
    slope = g * (exponent * xp._pow_tensor(self, exponent - 1)).conj()
    return xp._keep(slope, exponent != 0)


def _flat_power(a: Any, exponent: Any) -> Any:
    flat = a == 0
    return flat if exponent.dtype.kind == "c" else flat & (exponent >= 0)


# Where 0 ** y is constant in y, and log(0) would make nan of the derivative.
op(
    "_flat_power(self, exponent)",
    _flat_power,
    takes="self exponent",
    function=False,
    method=False,
)


def _exponent_grad(g: Any, xp: Any, self: Any, exponent: Any, result: Any) -> Any:
    slope = g * (result * xp.log(self)).conj()
    return xp._keep(slope, ~xp._flat_power(self, exponent))


_pow_tensor = op(
    "_pow_tensor(self, exponent)",
    np.power,
    numbers=True,
    function=False,
    method=False,
    inplace=True,
    node="Pow",
    overload="True",
    self=_base_grad,
    exponent=_exponent_grad,
).function


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex, np.number)) and not isinstance(
        x, np.ndarray
    )


def _plain_number(x: Any) -> Any:
    """Python's number for NumPy's, and 0 or 1 for a bool."""
    x = x.item() if isinstance(x, np.number) else x
    return int(x) if isinstance(x, bool) else x


@public
@method
def pow(self: Any, exponent: Any) -> Any:  # noqa: A001 - torch's name
    """`self` to the power of `exponent`; either may be a number.

    RuntimeError for integers to negative powers.
    """
    kind = type(exponent)
    if kind is int or kind is float:
        if isinstance(self, Tensor):
            return _pow_number(self, exponent)
    elif _is_number(exponent) and isinstance(self, Tensor):
        return _pow_number(self, _plain_number(exponent))
    return _pow_tensor(self, exponent)


@method
def pow_(self: Any, exponent: Any) -> Any:
    """`self` to the power of `exponent`, in place."""
    if _is_number(exponent):
        return self._pow_number_(_plain_number(exponent))
    return self._pow_tensor_(exponent)


@public
@method
def float_power(self: Any, exponent: Any) -> Any:
    """`pow` in double precision, whatever the dtypes are."""

    def wide(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        return x.to(_C128 if x.is_complex() else _F64)

    if not isinstance(self, Tensor):
        self = wrap(np.array(self, np.float64))
    return pow(wide(self), wide(exponent))


_F64, _C128 = BY_NUMPY[np.dtype("float64")], BY_NUMPY[np.dtype("complex128")]

# -- extremes of two -------------------------------------------------------------------


def _half_at_ties(g: Any, xp: Any, loses: Any, ties: Any) -> Any:
    return xp._keep(g, ~loses) - xp._keep(g, ties) * 0.5


op(
    "maximum(self, other)",
    np.maximum,
    numbers=True,
    self=lambda g, xp, self, other: _half_at_ties(g, xp, self < other, self == other),
    other=lambda g, xp, self, other: _half_at_ties(g, xp, other < self, self == other),
)
op(
    "minimum(self, other)",
    np.minimum,
    numbers=True,
    self=lambda g, xp, self, other: _half_at_ties(g, xp, self > other, self == other),
    other=lambda g, xp, self, other: _half_at_ties(g, xp, other > self, self == other),
)
op(
    "fmax(self, other)",
    np.fmax,
    numbers=True,
    self=lambda g, xp, self, other: xp._keep(g, (self >= other) | (other != other)),
    other=lambda g, xp, self, other: xp._keep(g, ~((self >= other) | (other != other))),
)
op(
    "fmin(self, other)",
    np.fmin,
    numbers=True,
    self=lambda g, xp, self, other: xp._keep(g, (self <= other) | (other != other)),
    other=lambda g, xp, self, other: xp._keep(g, ~((self <= other) | (other != other))),
)

# -- others ----------------------------------------------------------------------------

op(
    "atan2(self, other)",
    np.arctan2,
    numbers=True,
    floats=True,
    inplace=True,
    self=lambda g, self, other: g * other / (self * self + other * other),
    other=lambda g, self, other: -g * self / (self * self + other * other),
)
alias("arctan2", "atan2")
op(
    "hypot(self, other)",
    np.hypot,
    numbers=True,
    inplace=True,
    self=lambda g, self, result: g * (self / result),
    other=lambda g, other, result: g * (other / result),
)
op(
    "logaddexp(self, other)",
    np.logaddexp,
    numbers=True,
    self=lambda g, xp, self, other: g / (xp.exp(other - self) + 1),
    other=lambda g, xp, self, other: g / (xp.exp(self - other) + 1),
)
op(
    "logaddexp2(self, other)",
    np.logaddexp2,
    numbers=True,
    self=lambda g, xp, self, other: g / (xp.exp2(other - self) + 1),
    other=lambda g, xp, self, other: g / (xp.exp2(self - other) + 1),
)


def _xlogy(a: Any, b: Any) -> Any:
    return np.where((a == 0) & (b == b), scalar(0, a.dtype), a * np.log(b))


op(
    "xlogy(self, other)",
    _xlogy,
    numbers=True,
    floats=True,
    inplace=True,
    self=lambda g, xp, self, other: xp._keep(
        g * xp.log(other), (self != 0) | ~(other > 0)
    ),
    other=lambda g, self, other: g * self / other,
)
op(
    "copysign(self, other)",
    np.copysign,
    numbers=True,
    floats=True,
    inplace=True,
    self=lambda g, xp, self, result: xp._keep(g * result / self, self != 0),
    other=zero,
)
op(
    "heaviside(self, values)",
    np.heaviside,
    takes="self values",
    numbers=True,
    inplace=True,
)
op(
    "nextafter(self, other)",
    np.nextafter,
    numbers=True,
    inplace=True,
    self=lambda g: g,
    other=zero,
)
op("gcd(self, other)", np.gcd, takes="self other", numbers=True, inplace=True)
op("lcm(self, other)", np.lcm, takes="self other", numbers=True, inplace=True)


def _together(*arrays: Any) -> Any:
    """Several arrays in torch's promoted dtype."""
    first = arrays[0]
    for other in arrays[1:]:
        if other.dtype is not first.dtype:
            first = promote_arrays(first, other)[0]
    return [a.astype(first.dtype, copy=False) for a in arrays]


def _addcmul(a: Any, b: Any, c: Any, value: Any = 1) -> Any:
    a, b, c = _together(a, b, c)
    return a + (b * c if value == 1 else b * c * scalar(value, b.dtype))


def _addcdiv(a: Any, b: Any, c: Any, value: Any = 1) -> Any:
    a, b, c = _together(a, b, c)
    return a + (b / c if value == 1 else b / c * scalar(value, b.dtype))


op(
    "addcmul(self, tensor1, tensor2, *, value=1)",
    _addcmul,
    inplace=True,
    self=lambda g: g,
    tensor1=lambda g, tensor2, value: g * (tensor2 * value).conj(),
    tensor2=lambda g, tensor1, value: g * (tensor1 * value).conj(),
)
op(
    "addcdiv(self, tensor1, tensor2, *, value=1)",
    _addcdiv,
    inplace=True,
    self=lambda g: g,
    tensor1=lambda g, tensor2, value: g * (value / tensor2).conj(),
    tensor2=lambda g, tensor1, tensor2, value: (
        -g * (tensor1 / tensor2 / tensor2 * value).conj()
    ),
)


def _lerp(a: Any, b: Any, weight: Any) -> Any:
    small = np.abs(weight) < 0.5
    return np.where(small, a + weight * (b - a), b - (b - a) * (1 - weight)).astype(
        a.dtype
    )


_lerp_number = op(
    "_lerp_number(self, end, weight)",
    _lerp,
    function=False,
    method=False,
    inplace=True,
    node="Lerp",
    self=lambda g, weight: g * (1 - weight).conjugate(),
    end=lambda g, weight: g * weight.conjugate(),
).function
_lerp_tensor = op(
    "_lerp_tensor(self, end, weight)",
    _lerp,
    function=False,
    method=False,
    inplace=True,
    node="Lerp",
    overload="True",
    self=lambda g, weight: g * (1 - weight).conj(),
    end=lambda g, weight: g * weight.conj(),
    weight=lambda g, self, end: g * (end - self).conj(),
).function


@public
@method
def lerp(self: Tensor, end: Tensor, weight: Any) -> Any:
    """`self + weight * (end - self)`; weight is a number or a tensor."""
    row = _lerp_tensor if isinstance(weight, Tensor) else _lerp_number
    return row(self, end, weight)


@method
def lerp_(self: Tensor, end: Tensor, weight: Any) -> Any:
    """`lerp` in place."""
    if isinstance(weight, Tensor):
        return self._lerp_tensor_(end, weight)
    return self._lerp_number_(end, weight)


# -- Python's operators ----------------------------------------------------------------


def reflected(name: str) -> Any:
    """The operator for a stranger on the left, from a row whose operands don't commute."""
    function = TABLE[name].function

    def swapped(self: Tensor, other: Any) -> Any:
        return function(other, self) if is_operand(other) else NotImplemented

    return swapped


def _reversed_div(self: Any, other: Any) -> Any:
    return self.reciprocal() * other


def _reversed_pow(self: Any, other: Any) -> Any:
    usable = _is_number(other) or isinstance(other, Tensor)
    return _pow_tensor(other, self) if usable else NotImplemented


for _name, _row in {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
}.items():
    operator(f"__{_name}__", _row)
    setattr(Tensor, f"__i{_name}__", getattr(Tensor, f"{_row}_"))
operator("__radd__", "add", reflected=True)
operator("__rsub__", "rsub")
operator("__rmul__", "mul")
Tensor.__rfloordiv__ = reflected("floor_divide")  # type: ignore[attr-defined]
Tensor.__rmod__ = reflected("remainder")  # type: ignore[attr-defined]
Tensor.__rtruediv__ = _reversed_div  # type: ignore[attr-defined]
Tensor.__rdiv__ = _reversed_div  # type: ignore[attr-defined]
Tensor.__pow__ = pow  # type: ignore[attr-defined]
Tensor.__rpow__ = _reversed_pow  # type: ignore[attr-defined]
Tensor.__ipow__ = pow_  # type: ignore[attr-defined]
