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

from collections.abc import Iterator
from contextlib import contextmanager
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
        return self.outer._replace(batches=(*self.outer.batches, self))


def work() -> Work:
    """What is at work."""
    return WORK.get() if mode() & TRANSFORMS else IDLE


def start(some: Work) -> None:
    """Puts transforms to work, until further notice."""
    WORK.set(some)
    set_mode(mode() & ~TRANSFORMS if some == IDLE else mode() | TRANSFORMS)


@contextmanager
def at_work(some: Work) -> Iterator[None]:
    """Has just these transforms at work, for a block."""
    token = WORK.set(some)
    flags = mode()
    mode_token = set_mode(flags & ~TRANSFORMS if some == IDLE else flags | TRANSFORMS)
    try:
        yield
    finally:
        reset_mode(mode_token)
        WORK.reset(token)


def outside(batch: Batch) -> Any:
    """Has at work what the layer within a batch sees."""
    now, outer = work(), batch.outer
    return at_work(outer._replace(levels=now.levels[: len(outer.levels)]))
