"""What kind of thing each argument of a function must be, and errors that say so.

Note [Kinds of arguments]
    PyTorch looks at the types of all arguments before anything else, and refuses with a
    TypeError that names the function, the argument and its place. Looking costs time, so
    gradfn mostly looks once something has failed: whatever NumPy or Python said then, an
    argument of a wrong kind is the cause. Only where a wrong kind would be taken in
    silence (a number for a flag, True for a dim) is it looked for in time.
    The kind of an argument is read off its annotation, else its default, else its name.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter
from typing import Any

import numpy as np

_BEYOND = 1 << 63

# -- kinds -----------------------------------------------------------------------------


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What names mean. Numbers are integers by default, and may be others.
_NUMBERS = _names(
    "alpha beta correction dx eps fill_value max max_norm maxnorm min nan neginf ord p posinf "
    "spacing start end step value weight"
)
_INTS = _names(
    "dims dilation kernel_size normalized_shape output_padding output_size repeats shape "
    "shifts size split_sizes stride"
)
_WHOLE = _names("dim0 dim1 dim2 dimension k n")
_FLAGS = _names(
    "adjoint align_corners hermitian left return_complex stable transpose unbiased "
    "unitriangular upper"
)
_TENSORS = _names("bias running_mean running_var")
_STRINGS = _names(
    "approximate driver indexing interpolation norm reduce rounding_mode side"
)
# Of these, other things pass, or have errors of their own.
_FREE = _names(
    "antialias center full inplace padding swap sym mode padding_mode reduction"
)
_UNSAID = ("Any", "", Parameter.empty)
_ANNOTATED = {
    "Tensor": "Tensor",
    "bool": "bool",
    "float": "Number",
    "int": "int",
    "str": "str",
}
MISSING: Any = type("Missing", (), {"__slots__": ()})()  # an argument not given


def kind_of(name: str, annotation: Any, default: Any) -> str:
    """The kind of one argument; "" for any. `default` is MISSING where there is none."""
    kind = _ANNOTATED.get(annotation, "")
    if name in _FREE or not (kind or annotation in _UNSAID):
        return ""
    if not kind:
        if isinstance(default, bool) or name in _FLAGS:
            kind = "bool"
        elif name in _TENSORS:
            return "Tensor?"
        elif name in ("dtype", "dim") or name in _STRINGS:
            kind = {"dtype": "torch.dtype", "dim": "tuple of ints"}.get(name, "str")
            if name == "dim" and type(default) is int:
                kind = "int"
        elif name in _INTS:
            kind = "tuple of ints"
        elif name in _WHOLE:
            kind = "int"
        elif isinstance(default, (int, float)):
            plain = type(default) is int and name not in _NUMBERS
            kind = "int" if plain else "Number"
    return f"{kind}?" if kind and default is None else kind


def fits(kind: str, x: Any) -> bool:
    """Is `x` of that kind?"""
    if not kind or x is MISSING:
        return True
    if kind.endswith("?"):
        return x is None or fits(kind[:-1], x)
    return _TESTS[kind](x)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, (_tensor(), np.ndarray))


def _tensor() -> Any:
    from gradfn.tensor import Tensor

    return Tensor


def _is_flag(x: Any) -> bool:
    return isinstance(x, (bool, np.bool_))


def _is_int(x: Any) -> bool:
    if isinstance(x, (bool, np.bool_)):
        return False
    if type(x) is int:
        return -_BEYOND <= x < _BEYOND
    if isinstance(x, _tensor()):  # PyTorch takes integers of no dims
        return not x._array.ndim and x._array.dtype.kind in "iu"
    if isinstance(x, np.ndarray):
        return not x.ndim and x.dtype.kind in "iu"
    return hasattr(x, "__index__")


def _is_ints(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return all(_is_int(n) for n in x)
    return _is_int(x)


def _is_number(x: Any) -> bool:
    if isinstance(x, _tensor()):
        return not x._array.ndim
    return isinstance(x, (int, float, complex, np.number, np.bool_))


def _is_dtype(x: Any) -> bool:
    from gradfn._dtypes import dtype

    return isinstance(x, (dtype, type, np.dtype))


_TESTS: dict[str, Callable[[Any], bool]] = {
    "Number": _is_number,
    "Tensor": _is_tensor,
    "bool": _is_flag,
    "int": _is_int,
    "str": lambda x: isinstance(x, str),
    "torch.dtype": _is_dtype,
    "tuple of ints": _is_ints,
}


# -- errors ----------------------------------------------------------------------------


def type_name(x: Any) -> str:
    """How PyTorch's errors call the type of an argument."""
    if isinstance(x, _tensor()):
        return "Tensor"
    if isinstance(x, np.ndarray):
        return "numpy.ndarray"
    kind = type(x)
    return kind.__name__ if kind.__module__ == "builtins" else _full_name(kind)


def _full_name(kind: type) -> str:
    module = kind.__module__.partition(".")[0].replace("gradfn", "torch")
    return f"{module}.{kind.__qualname__}"


def wrong_kind(title: str, place: int, name: str, kind: str, x: Any) -> Exception:
    """The error for an argument of a wrong kind; ValueError for an integer too large."""
    name = "input" if name == "self" else name
    if too_large(kind, x):
        return ValueError(
            f"{title}(): argument '{name}' (position {place + 1}): Overflow when unpacking "
            f"long long, {x} has more than 64 bits"
        )
    return TypeError(
        f"{title}(): argument '{name}' (position {place + 1}) must be {kind.rstrip('?')}, "
        f"not {type_name(x)}"
    )


def first_wrong(title: str, kinds: dict[str, str], values: Any) -> Exception | None:
    """The error for the first argument that is of a wrong kind; None if there is none."""
    for place, (name, x) in enumerate(values.items()):
        kind = kinds.get(name, "")
        if not fits(kind, x):
            return wrong_kind(title, place, name, kind, x)
    return None


def too_large(kind: str, x: Any) -> bool:
    """Is it an integer where one is due, but none that an int64 can hold?"""
    if kind.rstrip("?") not in ("int", "tuple of ints") or type(x) is not int:
        return False
    return not -_BEYOND <= x < _BEYOND


def given(values: Any) -> str:
    """The types of arguments, as PyTorch lists them."""
    return ", ".join(type_name(x) for x in values if x is not MISSING)
