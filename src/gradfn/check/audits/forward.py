"""Forward mode: is a Function's jvp the directional derivative?"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.autograd.causes import Jacobians, likely_cause
from gradfn.check import numeric
from gradfn.check.audit import Finding, audit, fail, ok, skip
from gradfn.check.audits.derivatives import leaf_names
from gradfn.check.errors import raised
from gradfn.check.subject import Example, Subject, array


@audit("forward mode")
def forward_mode(subject: Subject, example: Example) -> Finding:
    """Does jvp give the directional derivatives of the values?"""
    if not subject.overrides("jvp") and not getattr(
        subject.cls, "generate_jvp_rule", False
    ):
        return skip("it has no jvp")
    points = [array(example.leaves[i]) for i in example.active]
    rng = np.random.default_rng(9)
    directions = [
        rng.normal(size=p.shape)
        + (1j * rng.normal(size=p.shape) if p.dtype.kind == "c" else 0)
        for p in points
    ]
    everywhere = list(range(len(points)))
    for chosen in [everywhere, *([i] for i in everywhere if len(points) > 1)]:
        try:
            mine = tangents(subject, example, {i: directions[i] for i in chosen})
        except Exception as error:
            return raised(error, "jvp", "jvp raises")
        found = _compared(subject, example, points, directions, chosen, mine)
        if found:
            return found
    return ok()


def tangents(subject: Subject, example: Example, directions: dict[int, Any]) -> list[Any]:
    """The outputs' tangents as real vectors, for tangents of some active inputs."""
    forward_ad = subject.torch.autograd.forward_ad
    given = {example.active[i]: d for i, d in directions.items()}

    def dual(place: int, t: Any) -> Any:
        if place not in given:
            return t
        return forward_ad.make_dual(t, subject.tensor(given[place], t))

    live = [t.requires_grad for t in subject.call(example).outs]
    with forward_ad.dual_level():
        outs = subject.call(example, laid=dual).outs
        parts = [
            forward_ad.unpack_dual(t) for t, on in zip(outs, live, strict=True) if on
        ]
        return [
            numeric.reals(
                np.zeros(tuple(p.primal.shape)) if p.tangent is None else array(p.tangent)
            )
            for p in parts
        ]


def _compared(
    subject: Subject,
    example: Example,
    points: Any,
    directions: Any,
    chosen: Any,
    mine: Any,
) -> Finding | None:
    """A Finding if the tangents are not the derivative along the directions."""
    leaves = list(example.leaves)

    def along(t: Any) -> list[Any]:
        for i in chosen:
            place = example.active[i]
            leaves[place] = subject.tensor(points[i] + t * directions[i], leaves[place])
        call = subject.call(example.replaced(leaves))
        return [numeric.reals(array(y)) for y in call.live]

    origin = np.zeros(())
    steps = numeric.steps_for(along, origin)
    true = numeric.jacobian(along, origin, steps)
    names = leaf_names(subject, example)
    by = ", ".join(names[i] for i in chosen)
    for k, (a, b) in enumerate(zip(mine, true, strict=True)):
        if numeric.differ(a[:, None], b, steps):
            shape = (len(a),)
            pair = Jacobians(a[:, None], b, shape, ())
            found = likely_cause(pair)
            why = found.text if found else "the tangent is wrong"
            return fail(
                found.name if found else "wrong jvp",
                f"jvp, output {k}, tangents of {by}: "
                + why.replace("gradient", "tangent").replace("backward", "jvp"),
            )
    return None
