"""Nothing else changes, and the same call gives the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradfn.check.audit import Finding, audit, fail, ok, skip, warn
from gradfn.check.audits.derivatives import first_order
from gradfn.check.errors import raised
from gradfn.check.spy import spied
from gradfn.check.subject import Call, Example, Subject, array, seeded


@audit("purity", after=("gradients",))
def purity(subject: Subject, example: Example) -> Finding:
    """Are inputs and grad_output left as they were?"""
    found: list[tuple[str, int, Any]] = []  # method, place, tensor

    def notice(method: str, args: tuple[Any, ...]) -> Callable[[Any], None]:
        given = subject.tensors(args)
        before = [array(t).copy() for t in given]

        def done(result: Any) -> None:
            for i, (t, old) in enumerate(zip(given, before, strict=True)):
                if not np.array_equal(array(t), old, equal_nan=True):
                    found.append((method, i, t))

        return done

    call = subject.call(example, cls=spied(subject, notice))
    # What is marked dirty is returned as the very object, what is not as a view of it.
    dirty = [t for _, _, t in found if any(t is y for y in call.outs)]
    inputs = [array(t).copy() for t in subject.tensors(call.args)]
    subject.grad(call.live, call.active, subject.seeds(call.live))
    after = [array(t) for t in subject.tensors(call.args)]
    if not all(np.array_equal(*pair, equal_nan=True) for pair in zip(inputs, after)):
        return fail("input modified", "backward writes into an input")
    unmarked = [(m, i) for m, i, t in found if all(t is not d for d in dirty)]
    return _changed(*unmarked[0]) if unmarked else ok()


def _changed(method: str, i: int) -> Finding:
    if method == "forward":
        return fail(
            "input modified",
            f"forward writes into tensor {i} of its arguments: write into a copy, or "
            "mark_dirty it and return it",
        )
    if method == "setup_context":
        return fail(
            "input modified", "setup_context writes into a tensor that it is given"
        )
    name = "grad_output" if method != "jvp" else "tangent"
    return fail(
        f"{name} modified",
        f"{method} writes into {name} {i}, which others may hold: make a new tensor",
    )


@audit("determinism", after=("gradients",))
def determinism(subject: Subject, example: Example) -> Finding:
    """Do the same inputs give the same values and gradients?"""
    first, second = subject.call(example), subject.call(example)
    for a, b in zip(first.outs, second.outs, strict=False):
        if not np.array_equal(array(a), array(b), equal_nan=True):
            return fail(
                "not deterministic",
                "forward gives different values for the same input though manual_seed was the "
                "same: it keeps a state, or has a generator of its own",
            )
    if not first.live:
        return skip("no output is differentiable")
    return _backward_repeats(subject, first, second)


def _backward_repeats(subject: Subject, first: Call, second: Call) -> Finding:
    seeds = subject.seeds(first.live)
    one = subject.gradients(first, seeds)
    try:
        again = subject.gradients(first, seeds)
    except Exception as error:
        return raised(
            error, "a second backward (retain_graph=True)", "changes its context"
        )
    if not _equal(one, again):
        return fail(
            "changes its context",
            "a second backward through the same graph (retain_graph=True) gives something "
            "else: backward changes what ctx keeps, or state elsewhere",
        )
    if not _equal(one, subject.gradients(second, seeds)):
        return fail(
            "not deterministic", "backward gives different gradients for the same input"
        )
    with seeded(subject.torch):
        other = subject.torch.autograd.grad(
            second.live, second.active, seeds, retain_graph=True, allow_unused=True
        )
        later = subject.torch.autograd.grad(
            second.live, second.active, seeds, retain_graph=True, allow_unused=True
        )
    if not _equal(*([array(g) for g in gs if g is not None] for gs in (other, later))):
        return fail(
            "random backward",
            "backward draws random numbers: draw them in forward and save them",
        )
    return ok()


def _equal(a: list[Any], b: list[Any]) -> bool:
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))


@audit("integers", after=("gradients",))
def integers(subject: Subject, example: Example) -> Finding:
    """Do integers and bools give what the same numbers as floats give?"""
    torch = subject.torch
    tried = 0
    places = [i for i, x in enumerate(example.leaves) if subject.floating(x)]
    for place in places:
        x = example.leaves[place]
        if x.is_complex():
            continue
        for kind in (torch.int64, torch.bool):
            numbers = np.random.default_rng(3).integers(1, 5, tuple(x.shape))
            whole = numbers % 2 == 0 if kind is torch.bool else numbers
            found = _with_integers(subject, example, place, kind, whole)
            if isinstance(found, Finding):
                return found
            tried += found
    return ok() if tried else skip("refused, or none to give")


def _with_integers(
    subject: Subject, example: Example, place: int, kind: Any, whole: Any
) -> Finding | int:
    """A Finding, or 1 if the Function takes integers at that place, 0 if it does not."""
    leaves = list(example.leaves)
    x = leaves[place]
    others = tuple(i for i in example.active if i != place)
    leaves[place] = subject.tensor(whole).to(kind)
    try:
        call = subject.call(example.replaced(leaves), active=others)
    except Exception:
        return 0
    leaves[place] = subject.tensor(whole.astype(np.float64), x)
    try:
        expected = subject.call(example.replaced(leaves), active=())
    except Exception:
        return 0
    what = str(kind).rpartition(".")[2]
    for a, b in zip(call.outs, expected.outs, strict=False):
        if a.dtype == b.dtype or not subject.floating(b):
            continue
        if tuple(a.shape) == tuple(b.shape) and _truncated(array(a), array(b)):
            say = fail if example.searched else warn
            return say(
                "integers",
                f"with {what} in argument {place} the result is {a.dtype} and rounded: make "
                "it floating, or refuse integers",
            )
    if call.live:
        try:
            subject.grad(call.live, call.active, subject.seeds(call.live))
        except Exception as error:
            return raised(error, f"backward with {what} in argument {place}", "integers")
    return 1


def _truncated(a: Any, b: Any) -> bool:
    """Are these integers where the others have fractions?"""
    if a.dtype.kind not in "iu" or b.dtype.kind != "f":
        return False
    finite = np.isfinite(b)
    return bool((np.abs(b - np.round(b)) > 1e-2)[finite].any())


@audit("complex", after=("gradients", "first order"), once=True)
def complex_numbers(subject: Subject, example: Example) -> Finding:
    """Is the gradient right for complex arguments too, if they are taken?"""
    if any(x.is_complex() for x in subject.tensors(example.args)):
        return skip("the examples are complex already")
    rng = np.random.default_rng(4)
    leaves = [
        subject.tensor(array(x) + 1j * rng.uniform(0.2, 0.9, tuple(x.shape)))
        if i in example.active
        else x
        for i, x in enumerate(example.leaves)
    ]
    other = example.replaced(leaves)
    try:
        if not subject.call(other).live:
            return skip("no output is differentiable")
        found = first_order(subject, other)
    except Exception:
        return skip("refused")
    if found.level != "fail":
        return Finding(*found)
    why = found.text.partition(" (d")[0]  # without the numbers
    return skip(f"real only; with complex arguments {why}")
