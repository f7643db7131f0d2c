"""A line search by Wolfe's strong conditions.

Nocedal and Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6, with cubic
interpolation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class _Point(NamedTuple):
    """A place on the line: how far, the value, the gradient, its part along the line."""

    t: float
    f: float
    g: Any
    slope: float


def _cubic_interpolate(
    x1: float,
    f1: float,
    g1: float,
    x2: float,
    f2: float,
    g2: float,
    bounds: tuple[float, float] | None = None,
) -> float:
    """Where the cubic through two values with two slopes is least, within bounds.

    Without bounds, between the two; in the middle if the cubic has no minimum.
    """
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    if x1 <= x2:
        least = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        least = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(least, low), high)


def _between(a: _Point, b: _Point, bounds: Any = None) -> float:
    return _cubic_interpolate(a.t, a.f, a.slope, b.t, b.f, b.slope, bounds)


def _strong_wolfe(
    obj_func: Any,
    x: Any,
    t: float,
    d: Any,
    f: float,
    g: Any,
    gtd: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Any, float, int]:
    """(value, gradient, how far, evaluations) where both conditions hold.

    `obj_func(x, t, d)` gives value and gradient at x + t d; `f`, `g`, `gtd` are value,
    gradient and slope at x.
    """
    search = _Search(obj_func, x, d, _Point(0.0, f, g, gtd), c1, c2, max_ls)
    bracket, done = search.bracket(t)
    if not done:
        best = search.zoom(bracket, tolerance_change)
    else:
        best = bracket[0]
    return best.f, best.g, best.t, search.evaluations


class _Search:
    """The line, its beginning, and how many places have been tried."""

    def __init__(
        self,
        evaluate: Any,
        x: Any,
        d: Any,
        start: _Point,
        c1: float,
        c2: float,
        most: int,
    ) -> None:
        self.evaluate, self.x, self.d, self.start = evaluate, x, d, start
        self.c1, self.c2, self.most = c1, c2, most
        self.evaluations = self.rounds = 0

    def at(self, t: float) -> _Point:
        """Value and gradient there."""
        f, g = self.evaluate(self.x, t, self.d)
        self.evaluations += 1
        return _Point(t, f, g.clone(), float(g.dot(self.d)))

    def too_high(self, point: _Point) -> bool:
        """Is there no sufficient decrease (Armijo)?"""
        return point.f > self.start.f + self.c1 * point.t * self.start.slope

    def flat(self, point: _Point) -> bool:
        """Is the slope small enough?"""
        return abs(point.slope) <= -self.c2 * self.start.slope

    def bracket(self, t: float) -> tuple[list[_Point], bool]:
        """Goes outwards until a good place lies between two, or one is good."""
        before, here = self.start, self.at(t)
        while self.rounds < self.most:
            rising = self.rounds > 1 and here.f >= before.f
            if self.too_high(here) or rising:
                return [before, here], False
            if self.flat(here):
                return [here], True
            if here.slope >= 0:
                return [before, here], False
            bounds = here.t + 0.01 * (here.t - before.t), here.t * 10
            t = _between(before, here, bounds)
            before, here = here, self.at(t)
            self.rounds += 1
        return [self.start, here], False

    def zoom(self, bracket: list[_Point], tolerance: float) -> _Point:
        """Narrows a bracket down to its better end."""
        width = float(self.d.abs().max())
        stalled = False
        low = 0 if bracket[0].f <= bracket[1].f else 1
        while self.rounds < self.most:
            if abs(bracket[1].t - bracket[0].t) * width < tolerance:
                break
            t, stalled = _inside(bracket, stalled)
            here = self.at(t)
            self.rounds += 1
            if self.too_high(here) or here.f >= bracket[low].f:
                bracket[1 - low] = here
                low = 0 if bracket[0].f <= bracket[1].f else 1
                continue
            good = self.flat(here)
            if not good and here.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
                bracket[1 - low] = bracket[low]
            bracket[low] = here
            if good:
                break
        return bracket[low]


def _inside(bracket: list[_Point], stalled: bool) -> tuple[float, bool]:
    """The next place, not twice near the ends; and whether it was near one."""
    t = _between(*bracket)
    left, right = sorted(point.t for point in bracket)
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if not (stalled or t >= right or t <= left):
        return t, True
    return (right - margin if abs(t - right) < abs(t - left) else left + margin), False
