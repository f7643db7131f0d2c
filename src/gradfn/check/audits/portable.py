"""What PyTorch would refuse, or take otherwise, though gradfn does it."""

from __future__ import annotations

from gradfn.check.audit import Finding, audit, fail, ok
from gradfn.check.audits.contract import ran
from gradfn.check.spy import log
from gradfn.check.subject import Example, Subject


@audit("PyTorch")
def pytorch(subject: Subject, example: Example) -> Finding:
    """Would PyTorch take it as it is?"""
    for find in (_keyword_only, _containers, _outputs, _gradients):
        found = find(subject, example)
        if found:
            return found
    return ok()


def _keyword_only(subject: Subject, example: Example) -> Finding | None:
    names = [p.name for p in subject.parameters() if p.kind is p.KEYWORD_ONLY]
    if not names:
        return None
    return fail(
        "keyword-only arguments",
        f"forward has keyword-only arguments ({', '.join(names)}): PyTorch's apply takes "
        "positional ones only",
    )


def _containers(subject: Subject, example: Example) -> Finding | None:
    for i, arg in enumerate(example.args):
        inside = [] if subject.is_tensor(arg) else subject.tensors(arg)
        if inside:
            return fail(
                "containers",
                f"argument {i} is a {type(arg).__name__} of tensors: PyTorch sees no tensors "
                "in it, and gives them no gradient; pass them one by one (*tensors)",
            )
    return None


def _outputs(subject: Subject, example: Example) -> Finding | None:
    cls, seen = log(subject)
    subject.call(example, cls=cls)
    out = next(s.result for s in seen if s.method == "forward")
    if type(out) is tuple or subject.is_tensor(out):
        nested = () if subject.is_tensor(out) else out
        if any(isinstance(x, (list, tuple, dict)) and subject.tensors(x) for x in nested):
            return fail("containers", "an output is a container of tensors")
        return None
    return fail(
        "containers",
        f"forward returns a {type(out).__name__}: PyTorch wants a tensor or a tuple of them, "
        "and gives others no history",
    )


def _gradients(subject: Subject, example: Example) -> Finding | None:
    call, got, error = ran(subject, example)
    if error is not None or not call.live:
        return None
    for i, (x, g) in enumerate(zip(example.args, got, strict=False)):
        if g is not None and not subject.tensors(x):
            return fail(
                "gradient for a non-tensor",
                f"backward returns a gradient for argument {i}, which is a "
                f"{type(x).__name__}: PyTorch wants None there",
            )
    return None
