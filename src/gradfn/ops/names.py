"""Other names of arguments: Note [Other names] in rule.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradfn._kinds import MISSING
from gradfn.ops.outs import into as into  # where most look for it

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
    if out is None:
        return result
    return into(op.title, out, result, given.values())


def missing(op: Any, name: str) -> TypeError:
    """The error for an argument that was not given."""
    return TypeError(f"{op.title}() missing 1 required positional argument: '{name}'")
