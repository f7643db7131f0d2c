"""The usual trouble spots: zero, infinities, large numbers, ties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradfn.check import numeric
from gradfn.check.audit import Finding, audit, fail, ok, skip
from gradfn.check.audits.derivatives import leaf_names, values
from gradfn.check.errors import words
from gradfn.check.subject import Example, Subject, array

SPOTS = (0.0, np.inf, -np.inf, 1e3, -1e3)
STEP = 1e-6


@audit("trouble spots", after=("gradients", "first order"))
def trouble_spots(subject: Subject, example: Example) -> Finding:
    """Are gradients finite at 0, infinities and ties where the values are?"""
    tried = 0
    names = leaf_names(subject, example)
    for i, other, spot in spots(subject, example):
        with np.errstate(all="ignore"):
            found = _at(subject, other, i, names[i], spot)
        if found and found.level == "fail":
            return found
        tried += found is not None
    return ok() if tried else skip("values are not finite there")


def spots(subject: Subject, example: Example) -> Iterator[tuple[int, Example, str]]:
    """(number of the active input, example, what is peculiar to it)."""
    for i, place in enumerate(example.active):
        x = array(example.leaves[place])
        if not x.size or x.dtype.kind != "f":
            continue
        for spot in SPOTS:
            one, whole = x.copy(), np.full_like(x, spot)
            one[(0,) * x.ndim] = spot
            for changed in (one, whole)[: 1 + (x.size > 1)]:
                yield i, _with(subject, example, place, changed), f"{spot:g}"
        if x.size > 1:
            yield i, _with(subject, example, place, np.full_like(x, x.flat[0])), "ties"


def _with(subject: Subject, example: Example, place: int, a: Any) -> Example:
    leaves = list(example.leaves)
    leaves[place] = subject.tensor(a, leaves[place])
    return example.replaced(leaves)


def _at(subject: Subject, other: Example, i: int, name: str, spot: str) -> Finding | None:
    """None if there is nothing to compare with."""
    try:
        call = subject.call(other)
    except Exception:
        return None
    if not call.live or not all(np.isfinite(array(t)).all() for t in call.live):
        return None
    seeds = [
        subject.tensor(np.full(tuple(t.shape), 1 + 1j if t.is_complex() else 1), t)
        for t in call.live
    ]
    try:
        g = subject.gradients(call, seeds)[i]
    except Exception as error:
        return fail("raises", f"backward at {name} = {spot} raises {words(error)}")
    if spot not in ("0", "ties"):
        return _not_nan(g, name, spot)
    return _bounded(subject, other, i, g, name, spot)


def _not_nan(g: Any, name: str, spot: str) -> Finding:
    if np.isnan(g).any():
        return fail(
            "not finite",
            f"the gradient is NaN at {name} = {spot}, though the value is finite",
        )
    return ok()


def _bounded(
    subject: Subject, other: Example, i: int, g: Any, name: str, spot: str
) -> Finding | None:
    """The gradient against the derivatives to the right and to the left of the spot."""
    place = other.active[i]
    x = array(other.leaves[place])
    f = values(subject, other, place)
    rough = numeric.steps_for(f, x) is numeric.COARSE  # too few digits for such steps
    for direction in (*_units(x), np.ones_like(x)):
        right, left = (_slope(f, x, direction, s) for s in (STEP, -STEP))
        if right is None or left is None:
            continue
        mine = float((g * direction).sum())
        if not np.isfinite(mine):
            what = "NaN" if np.isnan(mine) else "infinite"
            return fail(
                "not finite",
                f"the gradient is {what} at {name} = {spot}, the derivative {right:.4g}",
            )
        if rough:
            continue
        low, high = sorted((left, right))
        slack = 1e-3 * (1 + abs(low) + abs(high))
        if not low - slack <= mine <= high + slack:
            cause = (
                "ties" if spot == "ties" or (high - low < slack and x.size > 1) else ""
            )
            between = f"{low:.4g}" if high - low < slack else f"{low:.4g} to {high:.4g}"
            return fail(
                cause or "not a subgradient",
                f"at {name} = {spot} the gradient along {_named(direction)} is {mine:.4g}, the "
                f"derivative {between}",
            )
    return ok()


def _units(x: Any) -> Iterator[Any]:
    for place in list(np.ndindex(x.shape))[:2]:
        unit = np.zeros_like(x)
        unit[place] = 1
        yield unit


def _named(direction: Any) -> str:
    if direction.size > 1 and direction.all():
        return "all elements together"
    return f"element {[int(k) for k in np.argwhere(direction)[0]]}"


def _slope(f: Any, x: Any, direction: Any, step: float) -> float | None:
    """The one-sided derivative of the sum of the outputs; None where it does not settle."""
    found = []
    for h in (step, step / 4):
        try:
            ahead, here = (
                sum(float(v.sum()) for v in f(p)) for p in (x + h * direction, x)
            )
        except Exception:
            return None
        found.append((ahead - here) / h)
    a, b = found
    if not (np.isfinite(a) and np.isfinite(b)):
        return None
    return b if abs(a - b) <= 1e-3 * (1 + abs(b)) and abs(b) < 1e6 else None
