"""Hooks on several tensors at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from gradfn.graph.engine import current_run
from gradfn.graph.hooks import RemovableHandle
from gradfn.graph.node import target_of
from gradfn.tensor import Tensor


class Handles(RemovableHandle):
    """Removes several hooks."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        super().__init__({})
        self.handles = handles

    def remove(self) -> None:
        """Takes all of them out."""
        for handle in self.handles:
            handle.remove()


def all_hook(tensors: list[Tensor], fn: Callable[..., Any]) -> RemovableHandle:
    """Calls `fn(grads)` when all that will come in a pass have come."""
    lock = threading.Lock()
    # for each pass: [gradients, how many are to come]
    passes: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()

    def hook(place: int, grad: Tensor) -> None:
        run = current_run()
        with lock:
            if run not in passes:
                wanted = sum(run.reaches(target_of(t)) for t in tensors)
                passes[run] = [[None] * len(tensors), wanted]
            entry = passes[run]
            entry[0][place] = grad
            entry[1] -= 1
            done = not entry[1]
            if done:
                del passes[run]
        if done:
            fn(entry[0])

    return Handles([_on(t, hook, i) for i, t in enumerate(tensors)])


def any_hook(tensors: list[Tensor], fn: Callable[..., Any]) -> RemovableHandle:
    """Calls `fn(grad)` for the first gradient that comes in a pass."""
    lock = threading.Lock()
    passes: WeakSet[Any] = WeakSet()  # in which one has come

    def hook(place: int, grad: Tensor) -> None:
        run = current_run()
        with lock:
            first = run not in passes
            passes.add(run)
        if first:
            fn(grad)

    return Handles([_on(t, hook, i) for i, t in enumerate(tensors)])


def _on(t: Tensor, hook: Any, place: int) -> RemovableHandle:
    return t.register_hook(lambda grad: hook(place, grad))  # type: ignore[no-any-return]
