"""Powers, and their derivatives in the base and in the exponent."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import BY_NUMPY, INT64, default_dtype
from gradfn.ops.admit import is_operand
from gradfn.ops.constants import scalar
from gradfn.ops.elementwise import zero
from gradfn.ops.outs import into
from gradfn.ops.rule import op
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method

_PRODUCTS: dict[Any, Any] = {
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
    if exponent == 2:
        return a * a
    product = _PRODUCTS.get(exponent)
    if product is not None:
        return product(a)
    return np.power(a, scalar(exponent, a.dtype))


def _power_grad(g: Any, xp: Any, self: Any, exponent: Any) -> Any:
    if exponent == 0:
        return zero(g, xp)
    if exponent == 2:
        return (g + g) * self.conj()
    return g * (xp._pow_number(self, exponent - 1) * exponent).conj()


def _tensor_power(a: Any, exponent: Any) -> Any:
    if a.dtype.kind == "b":
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    if a.dtype.kind != "i" or not (exponent < 0).any():
        return np.power(a, exponent)
    # 1 / a ** n is 0 for integers, unless a is 1 or -1: then a ** -n is a ** n.
    up = np.power(a, np.maximum(exponent, 0))
    unit = np.where(exponent & 1, a, 1)
    return np.where(exponent >= 0, up, np.where(np.abs(a) == 1, unit, 0)).astype(a.dtype)


_pow_number = op(
    "_pow_number(self, exponent)",
    _power,
    function=False,
    method=False,
    inplace=True,
    node="Pow",
    uniform=True,
    singular=True,
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


def _exponent_grad(
    g: Any, xp: Any, self: Any, exponent: Any, exponent_dtype: Any, result: Any
) -> Any:
    # A negative base has a logarithm where the power is complex.
    base = xp._to_copy(self, exponent_dtype) if exponent_dtype.kind == "c" else self
    slope = g * (result * xp.log(base)).conj()
    return xp._keep(slope, ~xp._flat_power(self, exponent))


_pow_tensor = op(
    "_pow_tensor(self, exponent)",
    _tensor_power,
    numbers="one",
    function=False,
    method=False,
    inplace=True,
    node="Pow",
    overload="True",
    singular=True,
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
def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """`input` to the power of `exponent`; either may be a number.

    RuntimeError for integers to a negative number's power.
    """
    if out is not None:
        return into("pow", out, pow(input, exponent))
    kind = type(exponent)
    if kind is int or kind is float:
        if isinstance(input, Tensor):
            return _pow_number(input, exponent)
    elif _is_number(exponent) and isinstance(input, Tensor):
        return _pow_number(input, _plain_number(exponent))
    return _pow_tensor(input, exponent)


@method
def pow_(self: Any, exponent: Any) -> Any:
    """`self` to the power of `exponent`, in place."""
    if _is_number(exponent):
        return self._pow_number_(_plain_number(exponent))
    return self._pow_tensor_(exponent)


def _wide(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    return x.to(_C128 if x.is_complex() else _F64)


@method
def float_power_(self: Tensor, exponent: Any) -> Any:
    """`float_power` in place; RuntimeError unless the tensor has its dtype."""
    result = float_power(self.detach(), exponent)
    if result.dtype is not self.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype} but the operation's "
            f"result requires dtype {result.dtype}"
        )
    return self.pow_(_wide(exponent))


@public
@method
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """`pow` in double precision, whatever the dtypes are."""
    return pow(_wide(input), _wide(exponent), out=out)


_F64, _C128 = BY_NUMPY[np.dtype("float64")], BY_NUMPY[np.dtype("complex128")]


# -- Python's operators ----------------------------------------------------------------


def _pow_operator(self: Any, exponent: Any) -> Any:
    return pow(self, exponent) if is_operand(exponent) else NotImplemented


def _reversed_pow(self: Any, other: Any) -> Any:
    usable = _is_number(other) or isinstance(other, Tensor)
    return _pow_tensor(other, self) if usable else NotImplemented


for _name, _operator in {
    "__pow__": _pow_operator,
    "__rpow__": _reversed_pow,
    "__ipow__": pow_,
}.items():
    setattr(Tensor, _name, _operator)
