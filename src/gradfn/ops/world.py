"""The two worlds in which a formula runs; `xp` is one of them.

`xp.name` is the row called `name`: on RAW its kernel, from ndarrays to ndarrays; on
RECORDED the op itself, from tensors to tensors. Rows put themselves here.
"""

from __future__ import annotations

from typing import Any


class World:
    """A namespace of ops."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name} ops>"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no op is called {name!r}")


RAW, RECORDED = World("raw"), World("recorded")
