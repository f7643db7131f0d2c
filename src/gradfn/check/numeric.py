"""Derivatives from values alone, with what can be known of their error.

Note [Steps]
    Central differences with steps h and h/2 are combined (Richardson), which is exact to
    some twelve digits where the function is smooth. A much smaller step tells where it is
    not: if the two disagree, the small one is believed; if its left and right halves
    disagree, there is a kink or a jump, and the entry is NaN: not known. Functions that
    compute in single precision, whatever they are given, get larger steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

MOST = 48  # elements of an input, or of an output, that are looked at one by one


class Steps(NamedTuple):
    """How far an element is moved, and how well the result is known."""

    wide: float
    narrow: float
    rtol: float
    kink: float  # relative difference of left and right at which it is one


FINE = Steps(1e-3, 1e-6, 1e-4, 1e-3)
COARSE = Steps(2e-2, 4e-3, 2e-2, 0.3)

Values = Callable[[Any], list[Any]]  # an array to real vectors, one for each output


def reals(a: Any) -> Any:
    """An array as a vector of real numbers: real parts, then imaginary ones."""
    flat = np.asarray(a).reshape(-1)
    parts = [flat.real, flat.imag] if flat.dtype.kind == "c" else [flat]
    return np.concatenate(parts).astype(np.float64)


def steps_for(f: Values, point: Any) -> Steps:
    """Large steps if all values that change fit into single precision."""
    if point.dtype in (np.float32, np.complex64, np.float16):
        return COARSE
    rng = np.random.default_rng(5)
    moved = f(point + 1e-4 * rng.normal(size=point.shape))
    changed = [b[b != a] for a, b in zip(f(point), moved, strict=True)]
    found = np.concatenate([np.zeros(0), *changed])
    found = found[np.isfinite(found)]
    single = found.astype(np.float32).astype(np.float64) == found
    return COARSE if found.size and single.all() else FINE


def directions(point: Any) -> list[tuple[Any, complex]]:
    """(place, unit) of each real number in an array, at most MOST places drawn at random."""
    places = list(np.ndindex(point.shape))
    if len(places) > MOST:
        rng = np.random.default_rng(6)
        places = [places[i] for i in sorted(rng.choice(len(places), MOST, replace=False))]
    units = (1, 1j) if point.dtype.kind == "c" else (1,)
    return [(place, unit) for unit in units for place in places]


def jacobian(f: Values, point: Any, steps: Steps) -> list[Any]:
    """For each output a matrix: a row a value, a column a direction. NaN: not known."""
    middle = f(point)
    columns = [
        _column(f, point, place, unit, middle, steps) for place, unit in directions(point)
    ]
    if not columns:
        return [np.zeros((len(v), 0)) for v in middle]
    return [np.stack(part, 1) for part in zip(*columns, strict=True)]


def _column(
    f: Values, point: Any, place: Any, unit: complex, middle: Any, steps: Steps
) -> list[Any]:
    size = max(1.0, float(np.abs(point[place])))

    def at(step: float) -> list[Any]:
        moved = point.copy()
        moved[place] = point[place] + step * size * unit
        return f(moved)

    wide = [at(h) for h in (steps.wide, -steps.wide, steps.wide / 2, -steps.wide / 2)]
    near = [at(steps.narrow), at(-steps.narrow)]
    return [
        _derivative([w[k] for w in wide], [v[k] for v in near], middle[k], size, steps)
        for k in range(len(middle))
    ]


def _derivative(
    wide: list[Any], near: list[Any], y: Any, size: float, steps: Steps
) -> Any:
    """From values at the wide step and half of it, at the narrow one, and in the middle."""
    (a, b, c, d), (p, q) = wide, near
    if any(len(v) != len(y) for v in (*wide, *near)):
        return np.full(len(y), np.nan)  # the number of values depends on the input
    h, n = steps.wide * size, steps.narrow * size
    with np.errstate(all="ignore"):
        whole, half = (a - b) / (2 * h), (c - d) / h
        exact = (4 * half - whole) / 3
        plain = (p - q) / (2 * n)
        right, left = (p - y) / n, (y - q) / n
        noise = 1e-9 * np.maximum(1.0, np.abs(y)) / size + 1e-7 * np.abs(plain)
        good = np.abs(exact - plain) <= steps.rtol / 3 * np.abs(plain) + noise
        kink = np.abs(right - left) > steps.kink * (np.abs(right) + np.abs(left)) + noise
        found = np.where(good, exact, np.where(kink, np.nan, plain))
    return np.where(np.isfinite(found), found, np.nan)


def differ(mine: Any, true: Any, steps: Steps) -> bool:
    """Do two Jacobians differ where the numerical one is known, by more than its error?"""
    known = np.isfinite(true)
    a, b = mine[known], true[known]
    if not np.isfinite(a).all():
        return True
    scale = np.abs(b).max(initial=0.0)
    bound = steps.rtol * (np.abs(b) + 1e-2 * scale) + 1e-7 * max(1.0, scale)
    return bool((np.abs(a - b) > bound).any())
