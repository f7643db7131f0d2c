"""Whether torch.jit compiles: it does not."""

from __future__ import annotations


class EnabledProxy:
    """torch's switch. It stays off."""

    enabled = False

    def __bool__(self) -> bool:
        return False


_enabled = EnabledProxy()


def disable() -> None:
    """Leaves the compiler off."""


def enable() -> None:
    """Leaves the compiler off: there is none."""
