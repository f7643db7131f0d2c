"""Names that gradfn knows but loads late, and its answer to those it has not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from gradfn._guard import guarded, needs_guard


def late(
    module: str, names: Iterable[str], functions: dict[str, str] | None = None
) -> Callable[[str], Any]:
    """A module's `__getattr__`: imports its submodules `names` on first use.

    `functions` says of names that are no modules in which submodule they are.
    """
    known = frozenset(names)
    elsewhere = functions or {}

    def get(name: str) -> Any:
        if name in known:
            return importlib.import_module(f"{module}.{name}")
        if name in elsewhere:
            found = getattr(importlib.import_module(f"{module}.{elsewhere[name]}"), name)
            if elsewhere[name].startswith("nn.") and needs_guard(found):
                found = guarded(found, name)
            setattr(sys.modules[module], name, found)
            return found
        raise AttributeError(
            f"module {module!r} (gradfn, not PyTorch) has no attribute {name!r}",
            name=name,
        )

    return get


def callable_as(module: str, function: Callable[..., Any]) -> None:
    """Lets a module be called as a function that has its name.

    So `gradfn.check(...)` and `autograd.gradcheck(...)` work whichever of the two the
    name was bound to last: importing a submodule binds the name in its parent.
    """

    class Called(ModuleType):
        """A module that is called as its function."""

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

    Called.__call__.__doc__ = function.__doc__
    sys.modules[module].__class__ = Called
