"""The door for arguments that are not plain tensors.

An op asks only `type(x) is not Tensor`; everything else is sorted here: numbers become
0-d tensors, parameters pass, subclasses with `__torch_function__` take over, and what
no op can use is refused. Each function returns the arguments, and `None` or a 1-tuple
with the result if somebody else has computed it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import number_dtype, on_default_change
from gradfn._kinds import MISSING, given, type_name, wrong_kind
from gradfn.ops.override import PLAIN, call_override
from gradfn.tensor import Tensor, from_array, wrap

# 0-d tensors for Python numbers, by (value, dtype beside which they stand). Float zeros
# are not kept: -0.0 == 0.0, and they differ. Making one takes 1 µs, finding it 0.1 µs.
NUMBERS: dict[type, dict[Any, Tensor]] = {float: {}, int: {}}
MANY = 1024  # more than that are not kept


def forget_numbers() -> None:
    """Empties the table, when the default dtype changes."""
    for table in NUMBERS.values():
        table.clear()


on_default_change.append(forget_numbers)


def number(value: Any, like: np.dtype[Any]) -> Tensor:
    """The 0-d tensor for a Python number that stands beside a tensor of dtype `like`."""
    kind: Any = type(value)
    if kind not in (float, int, bool, complex):
        kind = type(value.item())
        value = value.item()
    dtype = number_dtype(kind, like)
    try:
        array = np.array(value, dtype)
    except OverflowError:
        if kind is int and dtype.kind == "u":
            array = np.array(value & (256**dtype.itemsize - 1), dtype)
        else:
            raise RuntimeError(
                f"value cannot be converted to type {dtype} without overflow: {value}"
            ) from None
    array.flags.writeable = False
    t = wrap(array)
    if kind in NUMBERS and (value or kind is int) and len(NUMBERS[kind]) < MANY:
        NUMBERS[kind][value, like] = t
    return t


def admit_pair(op: Any, a: Any, b: Any, plain: tuple[Any, ...] = ()) -> Any:
    """Two operands as tensors."""
    try:
        if type(a) is Tensor:
            return a, NUMBERS[type(b)][b, a._array.dtype], None
        if type(b) is Tensor:
            return NUMBERS[type(a)][a, b._array.dtype], b, None
    except KeyError:
        pass
    return _pair(op, a, b, plain)


def admit_second(op: Any, a: Any, b: Any, plain: tuple[Any, ...] = ()) -> Any:
    """The same where only the second may be a number."""
    try:
        if type(a) is Tensor:
            return a, NUMBERS[type(b)][b, a._array.dtype], None
    except KeyError:
        pass
    return _pair(op, a, b, plain)


def admit_operator(op: Any, a: Any, b: Any, plain: tuple[Any, ...] = ()) -> Any:
    """The same for Python's operators, which leave strangers to the other operand."""
    try:
        if type(a) is Tensor:
            return a, NUMBERS[type(b)][b, a._array.dtype], None
        if type(b) is Tensor:
            return NUMBERS[type(a)][a, b._array.dtype], b, None
    except KeyError:
        pass
    if not (is_operand(a) and is_operand(b)):
        return a, b, (NotImplemented,)
    return _pair(op, a, b, plain)


def is_operand(x: Any) -> bool:
    """Can `x` stand beside a tensor in arithmetic?"""
    return isinstance(x, (Tensor, int, float, complex, np.number, np.bool_, np.ndarray))


def _pair(op: Any, a: Any, b: Any, plain: tuple[Any, ...]) -> Any:
    for x in (a, b):
        if isinstance(x, Tensor) and type(x) not in PLAIN:
            done = call_override(op, (a, b, *plain))
            if done is not None:
                return a, b, done
    for place, x in enumerate((a, b)):
        if not is_operand(x):
            raise wrong_type(op, place, x)
    if isinstance(a, np.ndarray):
        a = from_array(a)
    if isinstance(b, np.ndarray):
        b = from_array(b)
    if not isinstance(a, Tensor) and (
        op.numbers == "second" or (op.numbers == "one" and not isinstance(b, Tensor))
    ):
        raise wrong_types(op, a, b)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        a = number(a, np.dtype(bool))
    if not isinstance(a, Tensor):
        a = number(a, b._array.dtype)
    if not isinstance(b, Tensor):
        b = number(b, a._array.dtype)
    return a, b, None


def wrong_type(op: Any, place: int, x: Any) -> Exception:
    """The error for an argument that had to be a tensor."""
    if x is MISSING:
        return TypeError(
            f"{op.title}() missing 1 required positional argument: '{op.params[place]}'"
        )
    return wrong_kind(op.title, place, op.params[place], "Tensor", x)


def wrong_types(op: Any, a: Any, b: Any) -> TypeError:
    """The error for two operands that cannot both be what they are."""
    first, second = op.takes
    what = "Tensor" if op.numbers == "second" else "Tensor or Number"
    other = "one of them a Tensor" if op.numbers == "one" else "no Number first"
    return TypeError(
        f"{op.title}() received an invalid combination of arguments - got "
        f"({given((a, b))}), but expected ({what} {first}, Tensor or Number {second}), {other}"
    )


def admit(op: Any, args: tuple[Any, ...]) -> Any:
    """The tensors among `args` in order."""
    tensors = []
    for place, name in enumerate(op.params):
        if name not in op.takes:
            continue
        x = args[place]
        if x is None and name in op.optional:
            pass
        elif type(x) not in PLAIN:
            if isinstance(x, np.ndarray):
                x = from_array(x)
            elif not isinstance(x, Tensor):
                raise wrong_type(op, place, x)
            else:
                done = call_override(op, args)
                if done is not None:
                    return op.takes, done
        tensors.append(x)
    return tuple(tensors), None


def admit_many(op: Any, args: tuple[Any, ...]) -> Any:
    """The sequence of tensors that an op such as cat takes."""
    place = op.params.index(op.many)
    sequence = args[place]
    if isinstance(sequence, Tensor) or not hasattr(sequence, "__iter__"):
        raise TypeError(
            f"{op.title}(): argument '{op.many}' (position {place + 1}) must be tuple of "
            f"Tensors, not {type_name(sequence)}"
        )
    tensors = list(sequence)
    for i, t in enumerate(tensors):
        if type(t) is Tensor or type(t) in PLAIN:
            continue
        if not isinstance(t, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument {place}, but got "
                f"{type_name(t)}"
            )
        done = call_override(op, args)
        if done is not None:
            return tensors, done
    return tensors, None
