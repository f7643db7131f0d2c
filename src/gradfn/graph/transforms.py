"""What transforms are at work: levels of forward mode, and batches of vmap.

Note [Layers]
    A vmapped tensor is a stack of layers: outermost the BatchedTensor that the function
    sees, within it the tensor of all samples, which may be a BatchedTensor of an outer
    vmap in turn. An op runs at each layer in turn, and each layer has its own history
    and its own levels of forward mode: those that were entered inside of that vmap.
    `Work` is all there is; a `Batch` remembers what there was when it began, which is
    what the layer within sees.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

from gradfn._state import TRANSFORMS, mode, reset_mode, set_mode


class Work(NamedTuple):
    """The transforms that the running code is in, the outer ones first."""

    levels: tuple[Any, ...] = ()  # of forward mode
    batches: tuple[Any, ...] = ()  # of vmap
    depth: int = 0  # how many derivatives of gradfn.func there are


IDLE = Work()
WORK: ContextVar[Work] = ContextVar("gradfn_work", default=IDLE)


class Batch:
    """One vmap that is running."""

    __slots__ = ("outer", "randomness", "size")

    def __init__(self, size: int, randomness: str, outer: Work) -> None:
        self.size = size
        self.randomness = randomness
        self.outer = outer

    def inside(self) -> Work:
        """What is at work in the function that is vmapped."""
        outer = self.outer
        return Work(outer.levels, (*outer.batches, self), outer.depth)


def work() -> Work:
    """What is at work."""
    return WORK.get() if mode() & TRANSFORMS else IDLE


def start(some: Work) -> None:
    """Puts transforms to work, until further notice."""
    WORK.set(some)
    set_mode(mode() & ~TRANSFORMS if some == IDLE else mode() | TRANSFORMS)


class at_work:
    """Has just these transforms at work, for one block."""

    __slots__ = ("_flags", "_some", "_token")

    def __init__(self, some: Work) -> None:
        self._some = some

    def __enter__(self) -> None:
        some, flags = self._some, mode()
        self._token = WORK.set(some)
        some_are = some.levels or some.batches or some.depth
        self._flags = set_mode(flags | TRANSFORMS if some_are else flags & ~TRANSFORMS)

    def __exit__(self, *error: object) -> None:
        reset_mode(self._flags)
        WORK.reset(self._token)


def outside(batch: Batch) -> at_work:
    """Has at work what the layer within a batch sees."""
    outer = batch.outer
    if not outer.levels:
        return at_work(outer)
    levels = work().levels[: len(outer.levels)]
    return at_work(Work(levels, outer.batches, outer.depth))
