"""The two worlds in which a formula runs, and the names that gradfn shows its users.

`xp` in a formula is one of the worlds: `xp.name` is the row called `name`; on RAW its
kernel, from ndarrays to ndarrays; on RECORDED the op itself, from tensors to tensors.
Rows put themselves here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class World:
    """A namespace of ops."""

    def __init__(self, name: str) -> None:
        self._name = name

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None: ...

    def __repr__(self) -> str:
        return f"<{self._name} ops>"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no op is called {name!r}")


RAW, RECORDED = World("raw"), World("recorded")

LATE: Final[dict[str, str]] = {}  # in which module of gradfn.ops a name is, if not loaded


class Names(dict[str, Any]):
    """Functions by name, of which some are loaded when they are asked for: see late.py."""

    def __missing__(self, name: str) -> Any:
        if name not in LATE:
            raise KeyError(name)
        importlib.import_module(f"gradfn.ops.{LATE[name]}")
        return self[name]


PUBLIC: Final = Names()  # what `gradfn.<name>` is, for each op


def public(function: F) -> F:
    """Makes a function an attribute of gradfn under its own name."""
    PUBLIC[function.__name__] = function
    return function
