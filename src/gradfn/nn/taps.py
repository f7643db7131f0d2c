"""Windows along one dim, as pairs of places: where from, where to.

Note [Taps]
    What a window of up to k places takes from is, one offset after the other, k slices (or
    index arrays where there is no regular step). An op over windows is then k array
    operations, and one over windows in several dims goes dim by dim.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

Array = Any


class Tap(NamedTuple):
    """Output places `to` take from input places `at`."""

    to: Any  # a slice or an index array
    at: Any


def progression(index: Array) -> Any:
    """A rising arithmetic progression as a slice; other indices as they are."""
    if len(index) == 1:
        return slice(int(index[0]), int(index[0]) + 1)
    steps = np.diff(index)
    if steps.size and steps[0] > 0 and (steps == steps[0]).all():
        return slice(int(index[0]), int(index[-1]) + 1, int(steps[0]))
    return index


def tap(to: Array, at: Array) -> Tap:
    """A tap from two index arrays of one length."""
    return Tap(progression(to), progression(at))


def at_places(a: Array, axis: int, places: Any) -> Array:
    """`a` at some places along an axis that is counted from behind (-1, -2, …)."""
    if isinstance(places, slice):
        return a[(..., places, *(slice(None),) * (-1 - axis))]
    return a.take(places, axis)


def is_whole(places: Any, size: int) -> bool:
    """Are these all places of a dim?"""
    return isinstance(places, slice) and (places.start, places.stop) == (0, size)


class Windows:
    """Windows over a dim of `size`: windows [start, end) with a spacing, cut at the edges."""

    def __init__(self, size: int, starts: Array, ends: Array, dilation: int = 1) -> None:
        self.size, self.count = size, len(starts)
        width = int((ends - starts).max(initial=0))
        self.taps = []
        rows = np.arange(self.count)
        for k in range(0, width, dilation):
            at = starts + k
            good = (at >= 0) & (at < size) & (at < ends)
            if good.any():
                self.taps.append(tap(rows[good], at[good]))
        # The first place of each that is inside.
        self.first = starts + dilation * np.maximum(-(starts // dilation), 0)
        self.apart = bool((ends[:-1] <= starts[1:]).all())
        self.starts, self.ends = starts, ends


@lru_cache(256)
def moving(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool
) -> Windows:
    """The windows of a pooling."""
    span = dilation * (kernel - 1) + 1
    room = size + 2 * padding - span
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= size + padding:
        count -= 1
    starts = np.arange(count) * stride - padding
    return Windows(size, starts, starts + span, dilation)


@lru_cache(256)
def adaptive(size: int, count: int) -> Windows:
    """`count` windows that cover the dim evenly."""
    i = np.arange(count)
    return Windows(size, i * size // max(count, 1), -(-(i + 1) * size // max(count, 1)))
