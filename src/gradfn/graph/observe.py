"""Observers: who is told of each node that is recorded and of each that runs.

Note [Observers]
    The drawing of graphs and the profiler want to know what happens without costing
    anything when they are away. The mode bit OBSERVED sends ops and backward passes
    through the door of the rare modes; behind it, each observer in `OBSERVERS` is told.
    Observers belong to the context that turned them on, as every mode does, so other
    threads are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from gradfn._state import OBSERVED, switch

OBSERVERS: ContextVar[tuple[Observer, ...]] = ContextVar("observers", default=())


class Observer:
    """Does nothing at each occasion; override what is wanted."""

    def made(self, node: Any, out: Any) -> None:
        """`node` was recorded; `out` is its result, a tensor or several."""

    def began(self, roots: Sequence[Any]) -> None:
        """A backward pass starts from these nodes and leaves."""

    def ended(self, roots: Sequence[Any]) -> None:
        """It is over, or has failed."""

    def ran(self, node: Any, g: Any, needs: int, apply: Callable[..., Any]) -> Any:
        """Must return `apply(node, g, needs)`, the gradients that `node` makes of `g`."""
        return apply(node, g, needs)

    def arrived(self, leaf: Any, grad: Any, keep: Callable[[], None]) -> None:
        """A gradient has come to a leaf; must call `keep()`, which adds it to .grad."""
        keep()


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Tells `observer` of all that this context does in the block."""
    token = OBSERVERS.set((*OBSERVERS.get(), observer))
    try:
        with switch(on=OBSERVED):
            yield
    finally:
        OBSERVERS.reset(token)


def unobserved() -> switch:
    """A block of which no observer is told: what they compute themselves."""
    return switch(off=OBSERVED)


def made(node: Any, out: Any) -> None:
    """Tells the observers of a new node."""
    for observer in OBSERVERS.get():
        observer.made(node, out)


def run_node(node: Any, g: Any, needs: int, apply: Callable[..., Any]) -> Any:
    """Runs a node before the eyes of the observers, the first one outermost."""
    for observer in reversed(OBSERVERS.get()):
        apply = _told(observer, apply)
    return apply(node, g, needs)


def _told(observer: Observer, apply: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, g, needs: observer.ran(node, g, needs, apply)


def arrive_at(leaf: Any, grad: Any, keep: Callable[[], None]) -> None:
    """Hands a leaf's gradient over before their eyes."""
    for observer in reversed(OBSERVERS.get()):
        keep = _told_of_leaf(observer, leaf, grad, keep)
    keep()


def _told_of_leaf(
    observer: Observer, leaf: Any, grad: Any, keep: Callable[[], None]
) -> Callable[[], None]:
    return lambda: observer.arrived(leaf, grad, keep)
