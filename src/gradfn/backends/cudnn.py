"""torch.backends.cudnn: not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """False."""
    return False


def version() -> None:
    """None: there is no cuDNN."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """False: no tensor is on a GPU."""
    return False


@contextmanager
def flags(**settings: Any) -> Iterator[None]:
    """Sets switches for a while. AttributeError for unknown ones."""
    space = globals()
    for name in settings:
        if name not in space:
            raise AttributeError(f"torch.backends.cudnn has no switch {name!r}")
    before = {name: space[name] for name in settings}
    space.update(settings)
    try:
        yield
    finally:
        space.update(before)
