"""Other names of arguments, and `out=`: Note [Other names] in rule.py."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradfn._kinds import MISSING, type_name
from gradfn._state import GRAD, TRANSFORMS, mode
from gradfn.graph.batched import refuse_batched
from gradfn.graph.tangent import is_dual
from gradfn.ops.inplace import bump, check_cast, check_memory, own
from gradfn.tensor import Tensor

NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x1": "self", "x2": "other"}


def renamed(
    function: Callable[..., Any], op: Any, more: dict[str, Any], values: tuple[Any, ...]
) -> Any:
    """Calls an op again with the arguments in their places; TypeError for unknown ones."""
    given = dict(zip(op.params, values, strict=True))
    out = more.pop("out", None)
    for name, value in more.items():
        own_name = op.params[0] if name in ("input", "x") else NUMPY_NAMES.get(name, name)
        if own_name not in given:
            raise TypeError(f"{op.title}() got an unexpected keyword argument '{name}'")
        given[own_name] = value
    result = function(**{k: v for k, v in given.items() if v is not MISSING})
    return result if out is None else into(op.title, out, result)


def missing(op: Any, name: str) -> TypeError:
    """The error for an argument that was not given."""
    return TypeError(f"{op.title}() missing 1 required positional argument: '{name}'")


def into(name: str, out: Any, result: Any) -> Any:
    """Writes a result into `out=`, or several into a tuple of them; returns `out`."""
    several = isinstance(result, (tuple, list))
    if several != isinstance(out, (tuple, list)) or not (
        several or isinstance(out, Tensor)
    ):
        raise TypeError(
            f"{name}(): argument 'out' must be {'tuple of Tensors' if several else 'Tensor'}, "
            f"not {type_name(out)}"
        )
    if several:
        if len(out) != len(result):
            raise TypeError(
                f"{name}(): argument 'out': expected tuple of {len(result)} elements but got "
                f"{len(out)}"
            )
        for target, value in zip(out, result, strict=True):
            into(name, target, value)
        return out
    if mode() & TRANSFORMS and (is_dual(result) or is_dual(out)):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it "
            "is an out= function"
        )
    if mode() & GRAD and (result.requires_grad or out.requires_grad):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    if mode() & TRANSFORMS:
        refuse_batched(
            f"Batching rule not implemented for aten::{name}.out; the fallback path doesn't "
            "work on out= or view ops. Use the result that is returned.",
            result,
            out,
        )
    check_cast(result._array.dtype, out._array.dtype)
    check_memory(out)
    if out._array.shape != result._array.shape:
        resize(name, out, result)
    own(out)
    np.copyto(out._array, result._array, casting="unsafe")
    bump(out)
    return out


def resize(name: str, out: Tensor, result: Tensor) -> None:
    """Gives `out` the shape of the result; warns unless it was empty."""
    if out._array.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(out.shape)}, which does not match the required output shape "
            f"{list(result.shape)}. This behavior is deprecated ({name}).",
            UserWarning,
            stacklevel=4,
        )
    out._array = np.empty(result._array.shape, out._array.dtype)
