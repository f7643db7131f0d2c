"""Arithmetic of two operands, element by element, and its derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn._dtypes import default_dtype, promote_arrays
from gradfn.ops.admit import is_operand
from gradfn.ops.constants import scalar
from gradfn.ops.outs import into
from gradfn.ops.rule import TABLE, alias, op, operator
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method

# -- helpers of formulas ---------------------------------------------------------------

op(
    "_zeros_like(self)",
    lambda a: np.zeros(a.shape, a.dtype),
    takes="self",
    function=False,
    method=False,
)


# From this size on np.where, which branches at each element, takes up to ten times as
# long as integer arithmetic on the bits, which is exact for nan and inf too.
_BRANCHY = 4096
_BITS = {np.dtype(f"float{n}"): np.dtype(f"int{n}") for n in (16, 32, 64)}


def _keep(a: Any, mask: Any) -> Any:
    if a.size < _BRANCHY or a.dtype not in _BITS:
        return np.where(mask, a, scalar(0, a.dtype))
    if mask.dtype.kind != "b":
        mask = mask != scalar(0, mask.dtype)
    return (a.view(_BITS[a.dtype]) * mask).view(a.dtype)


def choose(mask: Any, a: Any, b: Any) -> Any:
    """`a` where the mask (of bools) is true, else `b`; both have one dtype."""
    bits = _BITS.get(a.dtype)
    if bits is None or mask.size < _BRANCHY:
        return np.where(mask, a, b)
    b = b.view(bits)
    return ((a.view(bits) ^ b) * mask ^ b).view(a.dtype)


# `self` where the mask is true (or not 0) and 0 elsewhere, also where self is nan.
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
    if b.dtype.kind in "biu" and isinstance(alpha, (float, complex)):
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point "
            "number."
        )
    return b * scalar(bool(alpha) if b.dtype.kind == "b" else alpha, b.dtype)


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
    ufunc=np.add,
    direct=np.add,
    numbers="any",
    inplace=True,
    self=lambda g: g,
    other=lambda g, alpha: g if alpha == 1 else g * alpha.conjugate(),
)
op(
    "sub(self, other, *, alpha=1)",
    _sub,
    ufunc=np.subtract,
    numbers="any",
    inplace=True,
    self=lambda g: g,
    other=lambda g, alpha: -g if alpha == 1 else g * -alpha.conjugate(),
)
op(
    "rsub(self, other, *, alpha=1)",
    lambda a, b, alpha=1: _sub(b, a, alpha),
    numbers="second",
    method=False,
    overload="True",
    self=lambda g, alpha: -g if alpha == 1 else g * -alpha.conjugate(),
    other=lambda g: g,
)
alias("subtract", "sub")

# -- products --------------------------------------------------------------------------

op(
    "mul(self, other)",
    np.multiply,
    numbers="any",
    inplace=True,
    uniform=True,
    singular=True,
    self=lambda g, other: g * other.conj(),
    other=lambda g, self: g * self.conj(),
)
alias("multiply", "mul")


def _refuse_zero(b: Any) -> None:
    if b.dtype.kind == "b":
        raise NotImplementedError("division is not implemented for 'Bool'")
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
    ufunc=np.divide,
    numbers="any",
    inplace=True,
    singular=True,
    self=lambda g, xp, other, rounding_mode: (
        g / other.conj() if rounding_mode is None else zero(g, xp)
    ),
    other=lambda g, xp, self, other, rounding_mode: (
        -(g * (self / other / other).conj()) if rounding_mode is None else zero(g, xp)
    ),
)
alias("divide", "div")
_divided: Any = TABLE["div"].function


@public
@method
def true_divide(self: Any, other: Any) -> Any:
    """The quotient; of integers in the default dtype."""
    return _divided(self, other)


Tensor.true_divide_ = Tensor.div_  # type: ignore[attr-defined]


def _floor_divide(a: Any, b: Any) -> Any:
    _refuse_zero(b)
    return np.floor_divide(a, b)


op(
    "floor_divide(self, other)",
    _floor_divide,
    takes="self other",
    numbers="any",
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
    numbers="one",
    inplace=True,
    self=lambda g: g,
    other=lambda g, xp, self, other: -g * xp.floor_divide(self, other),
)
op(
    "fmod(self, other)",
    _fmod,
    numbers="second",
    inplace=True,
    self=lambda g: g,
    other=lambda g, xp, self, other: -g * xp.trunc(self / other),
)

# -- extremes of two -------------------------------------------------------------------


def _ordered(ufunc: Any) -> Any:
    """The ufunc, but not for complex numbers, which NumPy orders and torch does not."""

    def kernel(a: Any, b: Any) -> Any:
        if a.dtype.kind == "c":
            raise RuntimeError(f"{ufunc.__name__} not implemented for complex tensors.")
        return ufunc(a, b)

    return kernel


def _half_at_ties(g: Any, xp: Any, loses: Any, ties: Any) -> Any:
    return xp._keep(g, ~loses) - xp._keep(g, ties) * 0.5


op(
    "maximum(self, other)",
    _ordered(np.maximum),
    numbers="no",
    discards=True,
    self=lambda g, xp, self, other: _half_at_ties(g, xp, self < other, self == other),
    other=lambda g, xp, self, other: _half_at_ties(g, xp, other < self, self == other),
)
op(
    "minimum(self, other)",
    _ordered(np.minimum),
    numbers="no",
    discards=True,
    self=lambda g, xp, self, other: _half_at_ties(g, xp, self > other, self == other),
    other=lambda g, xp, self, other: _half_at_ties(g, xp, other > self, self == other),
)
op(
    "fmax(self, other)",
    _ordered(np.fmax),
    numbers="no",
    self=lambda g, xp, self, other: xp._keep(g, (self >= other) | (other != other)),
    other=lambda g, xp, self, other: xp._keep(g, ~((self >= other) | (other != other))),
)
op(
    "fmin(self, other)",
    _ordered(np.fmin),
    numbers="no",
    self=lambda g, xp, self, other: xp._keep(g, (self <= other) | (other != other)),
    other=lambda g, xp, self, other: xp._keep(g, ~((self <= other) | (other != other))),
)

# -- others ----------------------------------------------------------------------------

op(
    "atan2(self, other)",
    np.arctan2,
    numbers="no",
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, self, other: g * other / (self * self + other * other),
    other=lambda g, self, other: -g * self / (self * self + other * other),
)
alias("arctan2", "atan2")
op(
    "hypot(self, other)",
    np.hypot,
    numbers="no",
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, self, result: g * (self / result),
    other=lambda g, other, result: g * (other / result),
)


def _logaddexp(a: Any, b: Any) -> Any:
    if a.dtype.kind != "c":
        return np.logaddexp(a, b)
    first = a.real >= b.real
    big, small = np.where(first, a, b), np.where(first, b, a)
    return big + np.log1p(np.exp(small - big))


def _share(g: Any, xp: Any, one: Any, other: Any, exp: Any) -> Any:
    """The gradient of `one`, of two that are summed as exponentials; -inf has no share."""
    there = one != -np.inf
    return xp._keep(g / (exp(xp._keep(other - one, there)) + 1).conj(), there)


op(
    "logaddexp(self, other)",
    _logaddexp,
    numbers="no",
    floats=True,
    self=lambda g, xp, self, other: _share(g, xp, self, other, xp.exp),
    other=lambda g, xp, self, other: _share(g, xp, other, self, xp.exp),
)
op(
    "logaddexp2(self, other)",
    np.logaddexp2,
    numbers="no",
    floats=True,
    self=lambda g, xp, self, other: _share(g, xp, self, other, xp.exp2),
    other=lambda g, xp, self, other: _share(g, xp, other, self, xp.exp2),
)


def _xlogy(a: Any, b: Any) -> Any:
    return np.where((a == 0) & (b == b), scalar(0, a.dtype), a * np.log(b))


op(
    "xlogy(self, other)",
    _xlogy,
    numbers="one",
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, xp, self, other: xp._keep(
        g * xp.log(other), (self != 0) | ~(other > 0)
    ),
    other=lambda g, self, other: g * self / other,
)
op(
    "copysign(self, other)",
    np.copysign,
    numbers="second",
    floats=True,
    inplace=True,
    self=lambda g, xp, self, result: xp._keep(g * result / self, self != 0),
    other=zero,
)


def _heaviside(a: Any, values: Any) -> Any:
    # NumPy has it for floats alone, and gives nan for nan, where torch gives 0.
    return np.where(a == 0, values, (a > 0).astype(a.dtype))


op(
    "ldexp(self, other)",
    lambda a, b: a * np.exp2(b),
    numbers="no",
    floats=True,
    inplace=True,
    self=lambda g, xp, other: g * xp.exp2(other).conj(),
    other=lambda g, result: g * (result * math.log(2)).conj(),
)
op(
    "heaviside(self, values)",
    _heaviside,
    takes="self values",
    numbers="no",
    inplace=True,
)
op(
    "nextafter(self, other)",
    np.nextafter,
    numbers="no",
    inplace=True,
    self=lambda g: g,
    other=zero,
)


def _no_integers(error: Exception, a: Any, b: Any) -> Exception | None:
    if not isinstance(error, TypeError):
        return None
    return NotImplementedError(f"gcd and lcm are for integers, not for {a.dtype}")


for _name in ("gcd", "lcm"):
    op(
        f"{_name}(self, other)",
        getattr(np, _name),
        takes="self other",
        numbers="no",
        inplace=True,
        explain=_no_integers,
    )


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
    if a.dtype.kind in "biu":
        raise RuntimeError(
            "Integer division with addcdiv is not supported; use true_divide and add, "
            "or floats"
        )
    return a + (b / c if value == 1 else b / c * scalar(value, b.dtype))


op(
    "addcmul(self, tensor1, tensor2, *, value=1)",
    _addcmul,
    inplace=True,
    singular=True,
    self=lambda g: g,
    tensor1=lambda g, tensor2, value: g * (tensor2 * value).conj(),
    tensor2=lambda g, tensor1, value: g * (tensor1 * value).conj(),
)
op(
    "addcdiv(self, tensor1, tensor2, *, value=1)",
    _addcdiv,
    inplace=True,
    singular=True,
    self=lambda g: g,
    tensor1=lambda g, tensor2, value: g * (value / tensor2).conj(),
    tensor2=lambda g, tensor1, tensor2, value: (
        -g * (tensor1 / tensor2 / tensor2 * value).conj()
    ),
)


def _lerp(a: Any, b: Any, weight: Any) -> Any:
    for x, name in ((b, "end"), (weight, "weight")):
        if isinstance(x, np.ndarray) and x.dtype != a.dtype:
            raise RuntimeError(f"expected dtype {a.dtype} for `{name}` but got {x.dtype}")
    if a.dtype.kind in "biu":
        raise NotImplementedError(f"lerp is not implemented for {a.dtype}")
    # From the nearer end, so that both ends are met exactly.
    step = b - a
    if isinstance(weight, np.ndarray):
        small = np.abs(weight) < 0.5
        return np.where(small, a + weight * step, b - step * (1 - weight))
    if abs(weight) < 0.5:
        return a + weight * step
    return b - step * (1 - weight)


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
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Any = None) -> Any:
    """`input + weight * (end - input)`; weight is a number or a tensor.

    RuntimeError if the dtypes differ.
    """
    row = _lerp_tensor if isinstance(weight, Tensor) else _lerp_number
    result = row(input, end, weight)
    return result if out is None else into("lerp", out, result)


@method
def lerp_(self: Tensor, end: Tensor, weight: Any) -> Any:
    """`lerp` in place."""
    if isinstance(weight, Tensor):
        return self._lerp_tensor_(end, weight)
    return self._lerp_number_(end, weight)


# -- Python's operators ----------------------------------------------------------------


def reflected(name: str) -> Any:
    """The operator for a stranger on the left, from a row that doesn't commute."""
    function = TABLE[name].function

    def swapped(self: Tensor, other: Any) -> Any:
        return function(other, self) if is_operand(other) else NotImplemented

    return swapped


def _reversed_div(self: Any, other: Any) -> Any:
    return self.reciprocal() * other


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
Tensor.__rtruediv__ = _reversed_div  # type: ignore[method-assign]
Tensor.__idiv__ = Tensor.div_  # type: ignore[attr-defined]
Tensor.__rdiv__ = _reversed_div  # type: ignore[attr-defined]
