"""Names that gradfn knows but loads late, and its answer to those it has not."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any


def late(module: str, names: Iterable[str]) -> Callable[[str], Any]:
    """A module's `__getattr__`: imports its submodules `names` on first use."""
    known = frozenset(names)

    def get(name: str) -> Any:
        if name in known:
            return importlib.import_module(f"{module}.{name}")
        raise AttributeError(
            f"module {module!r} (gradfn, not PyTorch) has no attribute {name!r}",
            name=name,
        )

    return get
