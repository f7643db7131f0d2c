"""Only some gradients are asked for, or come."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.check.audit import Finding, audit, fail, ok, skip
from gradfn.check.audits.derivatives import leaf_names
from gradfn.check.errors import raised, words
from gradfn.check.subject import Example, Subject, same


@audit("needs_input_grad", after=("gradients",))
def needs_input_grad(subject: Subject, example: Example) -> Finding:
    """Is each gradient the same when it is the only one that is asked for?"""
    if len(example.active) < 2:
        return skip("there is one differentiable argument")
    whole = subject.call(example)
    expected = subject.gradients(whole, subject.seeds(whole.live))
    names = leaf_names(subject, example)
    for i, place in enumerate(example.active):
        try:
            call = subject.call(example, active=[place])
            got = subject.gradients(call, subject.seeds(call.live))
        except Exception as error:
            return raised(
                error, f"with {names[i]} alone requiring grad it", "needs_input_grad"
            )
        if call.live and not same(got[0], expected[i]):
            return fail(
                "needs_input_grad",
                f"the gradient of {names[i]} is another one when the other arguments require "
                "none: look at the indices of ctx.needs_input_grad",
            )
    return ok()


@audit("unused outputs", after=("gradients",))
def unused_outputs(subject: Subject, example: Example) -> Finding:
    """Does backward do with outputs that nobody used, and with no gradient at all?"""
    call = subject.call(example)
    n = len(call.live)
    if not n:
        return skip("no output is differentiable")
    seeds = subject.seeds(call.live)
    zeros = [s * 0 for s in seeds]
    for k in range(n if n > 1 else 0):
        alone = [seeds[k] if i == k else z for i, z in enumerate(zeros)]
        expected = subject.gradients(call, alone)
        try:
            got = _only(subject, example, k, seeds[k])
        except Exception as error:
            return fail(
                "unused output",
                f"only output {k} is used, and backward raises {words(error)}: the gradients "
                "of the others are None (set_materialize_grads(False))",
            )
        if not all(same(a, b) for a, b in zip(got, expected, strict=True)):
            return fail("unused output", f"only output {k} is used, and gradients differ")
    return _undefined(subject, example)


def _only(subject: Subject, example: Example, k: int, seed: Any) -> list[Any]:
    call = subject.call(example)
    call.live = [call.live[k]]
    return subject.gradients(call, [seed])


def _undefined(subject: Subject, example: Example) -> Finding:
    """Behind a Function that returns None, the gradient is undefined."""

    base: Any = subject.base

    class Undefined(base):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    call = subject.call(example)
    call.live = [Undefined.apply(t) for t in call.live]
    try:
        got = subject.gradients(call, subject.seeds(call.live))
    except Exception as error:
        return fail(
            "unused output",
            f"grad_output may be None (set_materialize_grads(False)): {words(error)}",
        )
    if any(np.nan_to_num(g, nan=1.0).any() for g in got):
        return fail(
            "unused output", "gradients are not zero where grad_output is undefined"
        )
    return ok()
