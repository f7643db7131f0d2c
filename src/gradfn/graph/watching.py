"""Backward passes that are watched: by anomaly mode, by observers, or by both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from gradfn._state import ANOMALY, OBSERVED
from gradfn.graph.anomaly import watched
from gradfn.graph.engine import Run
from gradfn.graph.observe import OBSERVERS, arrive_at, run_node
from gradfn.tensor import Tensor


class Watched(Run):
    """A pass whose nodes all go through `apply`."""

    nested = Run.nested // 3  # each takes more of the stack

    def straight(self, node: Any, g: Any) -> tuple[Any, Any]:
        return node, g


class AnomalyRun(Watched):
    """A pass in anomaly mode."""

    def apply(self, node: Any, g: Any, needs: int) -> Any:
        return watched(node, g, needs, super().apply)


class ObservedRun(Watched):
    """A pass that observers are told of."""

    def go(self, roots: Sequence[Any], grads: Sequence[Tensor]) -> None:
        observers = OBSERVERS.get()
        for observer in observers:
            observer.began(roots)
        try:
            super().go(roots, grads)
        finally:
            for observer in reversed(observers):
                observer.ended(roots)

    def apply(self, node: Any, g: Any, needs: int) -> Any:
        return run_node(node, g, needs, super().apply)

    def arrive(self, leaf: Tensor, grad: Any, callers: int) -> None:
        keep = super().arrive
        arrive_at(leaf, grad, lambda: keep(leaf, grad, callers))


def watched_kind(kind: type[Run], mode: int) -> type[Run]:
    """`kind` with the watching that the mode asks for."""
    return _kinds(kind, mode & (OBSERVED | ANOMALY))  # type: ignore[arg-type]


@cache
def _kinds(kind: type[Run], mode: int) -> type[Run]:
    watchers = [
        watcher
        for bit, watcher in ((OBSERVED, ObservedRun), (ANOMALY, AnomalyRun))
        if mode & bit
    ]
    name = "".join(watcher.__name__.removesuffix("Run") for watcher in watchers)
    return type(name + kind.__name__, (*watchers, kind), {})
