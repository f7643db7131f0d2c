"""torch.compiler: programs run as they are written."""

from __future__ import annotations

from typing import Any

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
]


def compile(model: Any = None, **options: Any) -> Any:
    """The function or module itself; without one, a decorator that gives it back."""
    return allow_in_graph if model is None else model


def allow_in_graph(fn: Any) -> Any:
    """The function itself."""
    return fn


assume_constant_result = allow_in_graph


def disable(fn: Any = None, recursive: bool = True, *, reason: Any = None) -> Any:
    """The function itself; without one, a decorator that gives it back."""
    return allow_in_graph if fn is None else fn


def is_compiling() -> bool:
    """False."""
    return False


def is_dynamo_compiling() -> bool:
    """False."""
    return False


def is_exporting() -> bool:
    """False."""
    return False


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """An empty list: nothing is compiled."""
    return []


def reset() -> None:
    """Forgets all compiled code, of which there is none."""


def cudagraph_mark_step_begin() -> None:
    """Marks a step for recordings on a GPU, of which there are none."""
