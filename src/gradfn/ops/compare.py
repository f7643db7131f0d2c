"""Comparisons, logic and choices, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import promote_arrays
from gradfn.graph.batched import refuse_batched, refuse_dynamic
from gradfn.graph.saved import legacy_type
from gradfn.ops.admit import number
from gradfn.ops.constants import at_least, at_most, between
from gradfn.ops.elementwise import choose, reflected
from gradfn.ops.outs import into
from gradfn.ops.rule import alias, op, operator
from gradfn.ops.unary import not_for
from gradfn.ops.world import PUBLIC, RAW, RECORDED, public
from gradfn.tensor import Tensor, method

# -- comparisons -----------------------------------------------------------------------

for _name, _kernel, _long in (
    ("eq", np.equal, ""),
    ("ne", np.not_equal, "not_equal"),
    ("lt", np.less, "less"),
    ("le", np.less_equal, "less_equal"),
    ("gt", np.greater, "greater"),
    ("ge", np.greater_equal, "greater_equal"),
):
    if _name in ("lt", "le", "gt", "ge"):
        _kernel = not_for(_name, "c", _kernel)
    op(
        f"{_name}(self, other)",
        _kernel,
        takes="self other",
        numbers="second",
        inplace=True,
    )
    operator(f"__{_name}__", _name)
    if _long:
        alias(_long, _name)

# -- logic -----------------------------------------------------------------------------

for _name in ("and", "or", "xor"):
    op(
        f"logical_{_name}(self, other)",
        getattr(np, f"logical_{_name}"),
        takes="self other",
        numbers="no",
        inplace=True,
    )
op("logical_not(self)", np.logical_not, takes="self", inplace=True)


def _bits(name: str) -> Any:
    kernel = getattr(np, name)

    def checked(*arrays: Any) -> Any:
        if arrays[0].dtype.kind not in "biu":
            raise NotImplementedError(
                f'"{name}_cpu" not implemented for {arrays[0].dtype}'
            )
        return kernel(*arrays)

    return checked


for _name, _kernel, _sign in (
    ("bitwise_and", _bits("bitwise_and"), "and"),
    ("bitwise_or", _bits("bitwise_or"), "or"),
    ("bitwise_xor", _bits("bitwise_xor"), "xor"),
    ("bitwise_left_shift", _bits("left_shift"), "lshift"),
    ("bitwise_right_shift", _bits("right_shift"), "rshift"),
):
    op(f"{_name}(self, other)", _kernel, takes="self other", numbers="one", inplace=True)
    operator(f"__{_sign}__", _name)
    setattr(Tensor, f"__r{_sign}__", reflected(_name))
    setattr(Tensor, f"__i{_sign}__", getattr(Tensor, f"{_name}_"))
op("bitwise_not(self)", _bits("bitwise_not"), takes="self", inplace=True)


@method
def __invert__(self: Tensor) -> Any:
    """`bitwise_not`, as Python's `~`. TypeError for floats."""
    if self._array.dtype.kind not in "biu":
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return self.bitwise_not()


# -- predicates ------------------------------------------------------------------------

op("isnan(self)", np.isnan, takes="self")
op("isinf(self)", np.isinf, takes="self")
op("isfinite(self)", np.isfinite, takes="self")
op("isposinf(self)", not_for("isposinf", "c", np.isposinf), takes="self")
op("isneginf(self)", not_for("isneginf", "c", np.isneginf), takes="self")
op("isreal(self)", np.isreal, takes="self")


def _isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    if a.dtype != b.dtype:
        first, second = (legacy_type(d.name)[6:-6] for d in (a.dtype, b.dtype))
        raise RuntimeError(f"{first} did not match {second}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(
                f"{name} must be greater than or equal to zero, but got {value}"
            )
    close = a == b
    if equal_nan:
        close |= (a != a) & (b != b)
    if a.dtype.kind in "fc":
        close |= np.isfinite(b - a) & (np.abs(a - b) <= atol + np.abs(rtol * b))
    else:
        wide = a.astype(np.float64) - b.astype(np.float64)
        close |= np.abs(wide) <= atol + np.abs(rtol * b)
    return close


op(
    "isclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False)",
    _isclose,
    takes="self other",
)


@public
@method
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Is each element within `atol + rtol * |other|`? RuntimeError if dtypes differ."""
    refuse_batched(
        "vmap over torch.allclose isn't supported yet: use isclose().all()", input, other
    )
    return bool(input.isclose(other, rtol, atol, equal_nan)._array.all())


@public
@method
def equal(input: Tensor, other: Tensor) -> bool:
    """Have both the same shape and the same values?"""
    refuse_batched("Batching rule not implemented for aten::equal", input, other)
    a, b = input._array, other._array
    return a.shape == b.shape and bool((a == b).all())


def _kind(name: str, kinds: str, doc: str) -> None:
    def test(self: Tensor) -> bool:
        return self._array.dtype.kind in kinds

    test.__name__, test.__doc__ = name, doc
    public(method(test))


def _is_complex(x: Any) -> bool:
    return bool(getattr(x, "_array", x).dtype.kind == "c")


_kind("is_floating_point", "f", "Is the dtype a real floating-point one?")
_kind("is_complex", "c", "Is the dtype complex?")
_kind("is_signed", "ifc", "Can the dtype hold negative numbers?")
for _world in (RAW, RECORDED):  # arrays and tensors alike
    _world.__dict__["is_complex"] = _is_complex


@public
def is_tensor(obj: Any) -> bool:
    """Is it a Tensor?"""
    return isinstance(obj, Tensor)


@public
@method
def is_nonzero(self: Tensor) -> bool:
    """Is the one element not zero? RuntimeError if there are more or none."""
    return bool(self)


@public
@method
def is_conj(self: Tensor) -> bool:
    """False: conjugation is not put off here."""
    return False


@public
@method
def is_neg(self: Tensor) -> bool:
    """False: negation is not put off here."""
    return False


# -- choices ---------------------------------------------------------------------------


def _where(condition: Any, a: Any, b: Any) -> Any:
    if a.dtype is not b.dtype:
        a, b = promote_arrays(a, b)
    return choose(condition, a, b)


_where_row = op(
    "_where(condition, self, other)",
    _where,
    takes="condition",
    function=False,
    method=False,
    node="Where",
    discards=True,
    self=lambda g, xp, condition: xp._keep(g, condition),
    other=lambda g, xp, condition: xp._keep(g, ~condition),
)


def _beside(x: Any, other: Any) -> Any:
    """A number as a 0-d tensor beside another operand; tensors as they are."""
    if isinstance(x, Tensor):
        return x
    like = other._array.dtype if isinstance(other, Tensor) else np.dtype(bool)
    return number(x, like)


@public
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition holds, else `other`; either may be a number.

    With the condition alone: the indices where it holds, one tensor a dimension.
    """
    if input is None and other is None:
        refuse_dynamic("where", condition)
        return condition.nonzero(as_tuple=True)
    if not isinstance(condition, Tensor):
        raise TypeError(
            "where(): argument 'condition' (position 1) must be Tensor, not "
            f"{type(condition).__name__}"
        )
    if condition._array.dtype.kind not in "bu":
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with "
            f"dtype {condition.dtype}"
        )
    a = _beside(input, other)
    return _where_row.function(condition.bool(), a, _beside(other, a))


@method
def _where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    """The tensor where the condition holds, else `other`."""
    return where(condition, self, other)


Tensor.where = _where_method  # type: ignore[attr-defined]


def _filled(a: Any, mask: Any, value: Any) -> Any:
    if mask.dtype.kind != "b":
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{mask.dtype}"
        )
    if not isinstance(value, np.ndarray):
        value = number(value, a.dtype)._array
    if value.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
            f"with {value.ndim} dimension(s)."
        )
    if value.dtype.kind == "c" != a.dtype.kind:
        raise RuntimeError(
            f"value cannot be converted to type {a.dtype} without overflow: {value}"
        )
    return choose(mask, value.astype(a.dtype), a)


_fill_number = op(
    "_masked_fill(self, mask, value)",
    _filled,
    takes="mask",
    function=False,
    method=False,
    inplace=True,
    node="MaskedFill",
    discards=True,
    self=lambda g, xp, mask: xp._keep(g, ~mask),
)
_fill_tensor = op(
    "_masked_fill_tensor(self, mask, value)",
    _filled,
    takes="mask",
    function=False,
    method=False,
    inplace=True,
    node="MaskedFill",
    overload="True",
    discards=True,
    self=lambda g, xp, mask: xp._keep(g, ~mask),
    value=lambda g, xp, mask: xp._keep(g, mask),
)


@public
@method
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Any:
    """`value` (a number or 0-d tensor) where the bool mask is true.

    RuntimeError for other masks, and for complex values in a real tensor.
    """
    row = _fill_tensor if isinstance(value, Tensor) else _fill_number
    return row.function(input, mask, value)


@method
def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Any:
    """`masked_fill` in place."""
    if isinstance(value, Tensor):
        return self._masked_fill_tensor_(mask, value)
    return self._masked_fill_(mask, value)


# -- bounds ----------------------------------------------------------------------------


def _refuse_complex(a: Any) -> None:
    if a.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")


def _clamp(a: Any, min: Any = None, max: Any = None) -> Any:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    _refuse_complex(a)
    for bound in (min, max):
        if type(bound) is float and a.dtype.kind in "iu":
            a = a.astype(number(bound, a.dtype)._array.dtype)
    if min is None:
        return at_most(a, max)
    return at_least(a, min) if max is None else between(a, min, max)


def _clamp_grad(g: Any, xp: Any, self: Any, min: Any, max: Any) -> Any:
    if max is None:
        return xp._keep(g, self >= min)
    if min is None:
        return xp._keep(g, self <= max)
    return xp._keep(g, (self >= min) & (self <= max))


_clamp_numbers = op(
    "_clamp(self, min=None, max=None)",
    _clamp,
    function=False,
    method=False,
    inplace=True,
    node="Clamp",
    overload="True",
    discards=True,
    self=_clamp_grad,
)


def _bounded(a: Any, min: Any, max: Any) -> Any:
    _refuse_complex(a)
    if min is not None:
        a, min = promote_arrays(a, min)
        a = np.maximum(a, min)
    if max is not None:
        a, max = promote_arrays(a, max)
        a = np.minimum(a, max)
    return a


def _inside(xp: Any, self: Any, min: Any, max: Any) -> Any:
    if max is None:
        return self >= min
    return self <= max if min is None else (self >= min) & (self <= max)


def _at_min(g: Any, xp: Any, self: Any, min: Any, max: Any) -> Any:
    low = self < min
    return xp._keep(g, low if max is None else low & (min < max))


def _at_max(g: Any, xp: Any, self: Any, min: Any, max: Any) -> Any:
    high = self > max
    return xp._keep(g, high if min is None else high | (max < min))


_clamp_tensors = op(
    "_clamp_tensors(self, min=None, max=None)",
    _bounded,
    function=False,
    method=False,
    inplace=True,
    node="Clamp",
    discards=True,
    self=lambda g, xp, self, min, max: xp._keep(g, _inside(xp, self, min, max)),
    min=_at_min,
    max=_at_max,
)


def _as_tensor(bound: Any, like: Tensor) -> Any:
    return bound if bound is None or isinstance(bound, Tensor) else _beside(bound, like)


@public
@method
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """The values, at least `min` and at most `max` (numbers or tensors).

    RuntimeError if both are None. Where the bounds cross, the result is `max`.
    """
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        low, high = _as_tensor(min, input), _as_tensor(max, input)
        result = _clamp_tensors.function(input, low, high)
    else:
        result = _clamp_numbers.function(input, min, max)
    return result if out is None else into("clamp", out, result)


@method
def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Any:
    """`clamp` in place."""
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return self._clamp_tensors_(_as_tensor(min, self), _as_tensor(max, self))
    return self._clamp_(min, max)


@public
@method
def clamp_min(input: Tensor, min: Any, *, out: Any = None) -> Any:
    """The values, at least `min`."""
    return clamp(input, min, out=out)


@public
@method
def clamp_max(input: Tensor, max: Any, *, out: Any = None) -> Any:
    """The values, at most `max`."""
    return clamp(input, None, max, out=out)


@method
def clamp_min_(self: Tensor, min: Any) -> Any:
    """`clamp_min` in place."""
    return clamp_(self, min)


@method
def clamp_max_(self: Tensor, max: Any) -> Any:
    """`clamp_max` in place."""
    return clamp_(self, None, max)


PUBLIC["clip"] = clamp
Tensor.clip, Tensor.clip_ = clamp, clamp_  # type: ignore[attr-defined]
