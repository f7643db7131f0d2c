"""The form of backward's answer: how many gradients, of what shape, kind and dtype."""

from __future__ import annotations

from typing import Any

from gradfn._pytree import tree_flatten
from gradfn.check.audit import Finding, audit, fail, ok, skip, warn
from gradfn.check.errors import raised
from gradfn.check.spy import log
from gradfn.check.subject import Call, Example, Subject


def ran(subject: Subject, example: Example) -> tuple[Call, Any, Any]:
    """A call, what backward returned for it (a tuple or list), and the error it led to."""
    cls, seen = log(subject)
    call = subject.call(example, cls=cls)
    error = None
    try:
        subject.grad(call.live, call.active, subject.seeds(call.live))
    except Exception as e:
        error = e
    given = [s.result for s in seen if s.method == subject.backward_name]
    got = given[-1] if given else ()
    return call, got if isinstance(got, (tuple, list)) else (got,), error


@audit("gradients")
def gradients(subject: Subject, example: Example) -> Finding:
    """Is there one gradient for each argument, of its shape?"""
    call, got, error = ran(subject, example)
    if error is not None:
        return _why(call, got, error)
    if not call.live:
        if not subject.overrides(subject.backward_name):
            return skip("it has no backward")
        return fail(
            "not differentiable",
            "no output requires grad: forward returns no floating tensor, or marks all as "
            "non-differentiable, or hides them in a container",
        )
    return ok(f"{len(example.args)} of {len(example.args)}")


def _why(call: Call, got: Any, error: Exception) -> Finding:
    """The Finding for what backward, or the engine after it, raised."""
    if isinstance(got, list):
        return fail(
            "gradient type", "backward returns a list: return a tuple of gradients"
        )
    found = raised(error, "backward")
    shapes = {tuple(t.shape) for t in call.active}
    broadcast = len(shapes) > 1 and any(tuple(y.shape) in shapes for y in call.live)
    if found.cause in ("raises", "gradient shape") and broadcast:
        return found._replace(cause="broadcast sum")
    return found


@audit("dtypes", after=("gradients",))
def dtypes(subject: Subject, example: Example) -> Finding:
    """Do outputs and gradients keep the precision of the arguments?"""
    torch = subject.torch
    tried = 0
    for kinds in ((torch.float64, torch.complex128), (torch.float32, torch.complex64)):
        leaves = [
            x.to(kinds[x.is_complex()]) if subject.floating(x) else x
            for x in example.leaves
        ]
        try:
            call, got, error = ran(subject, example.replaced(leaves))
        except Exception:  # it takes one precision only, and says so
            continue
        if error is not None:
            return raised(error, f"backward in {kinds[0]}")
        found = _precision(subject, call, got)
        if found:
            return found
        tried += 1
    return ok("float32, float64") if tried == 2 else ok()


def _precision(subject: Subject, call: Call, got: Any) -> Finding | None:
    given = [x for x in call.leaves if subject.floating(x)]
    finest = max((_digits(x) for x in given), default=0)
    least = min((_digits(x) for x in given), default=0)
    for x, g in zip(call.args, got, strict=False):
        for t, d in zip(tree_flatten(x)[0], tree_flatten(g)[0], strict=False):
            if not (subject.floating(t) and subject.floating(d)):
                continue
            if _digits(d) < _digits(t):
                return fail(
                    "precision lost",
                    f"the gradient of a {t.dtype} argument is {d.dtype}: digits are lost",
                )
    for y in call.live:
        if not least <= _digits(y) <= finest:
            return warn(
                "dtype",
                f"the output is {y.dtype} though the arguments are {given[0].dtype}",
            )
    return None


def _digits(t: Any) -> int:
    """The bits of a real number of its dtype."""
    return int(t.element_size() * 8 // (2 if t.is_complex() else 1))
