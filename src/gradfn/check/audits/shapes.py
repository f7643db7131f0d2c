"""Unusual memory and unusual shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradfn.check.audit import Finding, audit, fail, ok, skip
from gradfn.check.audits.derivatives import first_order
from gradfn.check.errors import cause_of, raised
from gradfn.check.subject import Call, Example, Subject, array, same

# -- memory ----------------------------------------------------------------------------

# Layouts of the same values: each takes a contiguous tensor. A trailing dim is added and
# one of two slices taken, so that any shape gets strides that are not contiguous.


def _strided(torch: Any, t: Any) -> Any:
    return torch.stack([t, t + 1], t.dim())[..., 0]


def _transposed(torch: Any, t: Any) -> Any:
    if t.dim() < 2:
        return _strided(torch, t)
    return t.transpose(0, -1).contiguous().transpose(0, -1)


def _offset(torch: Any, t: Any) -> Any:
    return torch.stack([t + 1, t], 0)[1]


LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "transposed": _transposed,
    "strided": _strided,
    "with an offset": _offset,
}


@audit("layouts", after=("gradients",))
def layouts(subject: Subject, example: Example) -> Finding:
    """Are results the same for non-contiguous inputs and grad_output?"""
    plain = subject.call(example)
    seeds = subject.seeds(plain.live)
    values = [array(t) for t in plain.outs]
    gradients = subject.gradients(plain, seeds)
    for name, layout in LAYOUTS.items():

        def laid(i: int, t: Any, layout: Any = layout) -> Any:
            return layout(subject.torch, t) if subject.floating(t) else t

        found = _laid_out(subject, example, name, laid, seeds, values, gradients)
        if found:
            return found
    for name, layout in LAYOUTS.items():
        strided = [layout(subject.torch, s) for s in seeds]
        found = _seeded(subject, plain, f"{name} grad_output", strided, gradients)
        if found:
            return found
    return _expanded(subject, example, plain)


def _laid_out(
    subject: Subject,
    example: Example,
    name: str,
    laid: Any,
    seeds: Any,
    values: Any,
    gradients: Any,
) -> Finding | None:
    try:
        call = subject.call(example, laid=laid)
    except Exception as error:
        return raised(error, f"forward with a {name} input", "layout")
    if not all(same(array(a), b) for a, b in zip(call.outs, values, strict=True)):
        return fail("layout", f"forward gives other values for a {name} input")
    return _seeded(subject, call, f"{name} input", seeds, gradients)


def _seeded(
    subject: Subject, call: Call, what: str, seeds: Any, expected: Any
) -> Finding | None:
    try:
        got = subject.gradients(call, seeds)
    except Exception as error:
        return raised(error, f"backward with a {what}", "layout")
    if all(same(a, b) for a, b in zip(got, expected, strict=True)):
        return None
    return fail("layout", f"backward gives other gradients with a {what}")


def _expanded(subject: Subject, example: Example, plain: Call) -> Finding:
    """grad_output with stride 0, as sum().backward() makes it, and an expanded input."""
    torch = subject.torch
    ones = [torch.ones((), dtype=t.dtype).expand(tuple(t.shape)) for t in plain.live]
    expected = subject.gradients(plain, [o.contiguous() for o in ones])
    found = _seeded(subject, plain, "expanded grad_output", ones, expected)
    if found or subject.writes:
        return found or ok()
    leaves = list(example.leaves)
    for i in example.active:
        x = leaves[i]
        if x.dim() and x.numel():
            leaves[i] = x[:1].expand(tuple(x.shape)).contiguous()
    alike = example.replaced(leaves)

    def laid(i: int, t: Any) -> Any:
        if i not in example.active or not t.dim() or not t.numel():
            return t
        return t[:1].expand(tuple(t.shape))

    try:
        base = subject.call(alike)
        seeds = subject.seeds(base.live)
        values, gradients = [array(t) for t in base.outs], subject.gradients(base, seeds)
    except Exception:  # equal rows are not what it is made for
        return ok()
    gradients = [_summed(g, t) for g, t in zip(gradients, base.active, strict=True)]
    try:
        call = subject.call(alike, laid=laid)
        if not all(same(array(a), b) for a, b in zip(call.outs, values, strict=True)):
            return fail("layout", "forward gives other values for an expanded input")
        got = subject.gradients(call, seeds)
    except Exception as error:
        return raised(error, "an expanded input:", "layout")
    if all(same(a, b) for a, b in zip(got, gradients, strict=True)):
        return ok()
    return fail("layout", "backward gives other gradients with an expanded input")


def _summed(g: Any, t: Any) -> Any:
    """The gradient of the first row alone, of which all others were copies."""
    if not t.dim() or not t.numel():
        return g
    out = np.zeros_like(g)
    out[:1] = g.sum(0, keepdims=True)
    return out


# -- shapes ----------------------------------------------------------------------------


def elementwise(subject: Subject, example: Example) -> bool:
    """Does each element of the output depend on one of each input, so that any shape is
    natural?"""
    outs = [array(t) for t in subject.call(example).live]
    shapes = {tuple(example.leaves[i].shape) for i in example.active}
    if len(shapes) != 1 or {a.shape for a in outs} != shapes or outs[0].size < 2:
        return False
    for place in example.active:
        leaves = list(example.leaves)
        moved = array(leaves[place]).copy()
        moved.reshape(-1)[0] *= 1.01
        leaves[place] = subject.tensor(moved, leaves[place])
        after = subject.call(example.replaced(leaves)).outs
        for a, b in zip(outs, after, strict=False):
            if not np.array_equal(a.reshape(-1)[1:], array(b).reshape(-1)[1:]):
                return False
    return True


def _reshaped(subject: Subject, example: Example, change: Any) -> Example:
    leaves = [
        subject.tensor(change(array(x)), x) if subject.is_tensor(x) else x
        for x in example.leaves
    ]
    return example.replaced(leaves)


def scalar(a: Any) -> Any:
    """The first element, 0-d."""
    return a.reshape(-1)[0] if a.size else np.zeros((), a.dtype)


def emptied(size: int) -> Callable[[Any], Any]:
    """Cuts every dim of that size to nothing."""
    return lambda a: a[tuple(slice(0) if n == size else slice(None) for n in a.shape)]


@audit("0-d and empty", after=("gradients", "first order"))
def zero_d_and_empty(subject: Subject, example: Example) -> Finding:
    """Are gradients right for 0-d and for empty inputs, where forward takes them?"""
    natural = elementwise(subject, example)
    tried = []
    for cause, other in unusual(subject, example):
        found = _at(subject, other, cause, natural)
        if found is not None:
            if found.level == "fail":
                return found
            tried.append(cause.partition(" ")[0])
    return ok(", ".join(dict.fromkeys(tried))) if tried else skip("refused by forward")


def unusual(subject: Subject, example: Example) -> Iterator[tuple[str, Example]]:
    """(cause, example) with tensors that are 0-d or empty."""
    sizes = {n for i in example.active for n in example.leaves[i].shape if n > 0}
    yield "0-d input", _reshaped(subject, example, scalar)
    for size in sorted(sizes):
        yield "empty input", _reshaped(subject, example, emptied(size))


def _at(subject: Subject, other: Example, cause: str, natural: bool) -> Finding | None:
    """None if forward refuses, or if the shape is not natural and backward refuses."""
    try:
        with np.errstate(all="ignore"):
            call = subject.call(other)
    except Exception:
        return None
    if not call.live:
        return None
    if not all(np.isfinite(array(t)).all() for t in call.live):
        return None  # the mean of nothing
    try:
        found = first_order(subject, other)
    except Exception as error:
        if not natural:
            return None
        return raised(error, f"backward of {cause.removesuffix(' input')} inputs", cause)
    if found.level != "fail":
        return Finding(*found)
    return fail(cause, f"with {cause.removesuffix(' input')} inputs {found.text}")


@audit("broadcasting", after=("gradients", "first order"))
def broadcasting(subject: Subject, example: Example) -> Finding:
    """Are gradients right where arguments are broadcast?"""
    if len(example.active) < 2 or not elementwise(subject, example):
        return skip("it does not take arguments of one shape")
    shape = tuple(example.leaves[example.active[0]].shape)
    tried = 0
    for place in example.active:
        for small in broadcastable(shape):
            leaves = list(example.leaves)
            x = array(leaves[place])
            cut = x[tuple(slice(0, n) for n in (1,) * (x.ndim - len(small)) + small)]
            leaves[place] = subject.tensor(cut.reshape(small), leaves[place])
            other = example.replaced(leaves)
            try:
                if not subject.call(other).live:
                    continue
            except Exception:
                continue
            tried += 1
            found = _broadcast(subject, other, shape, small)
            if found.level == "fail":
                return found
    return ok() if tried else skip("refused by forward")


def broadcastable(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Smaller shapes that broadcast to a shape."""
    found: list[tuple[int, ...]] = []
    if shape:
        found = [(), shape[1:], (1, *shape[1:]), (*shape[:-1], 1)]
    return [s for s in dict.fromkeys(found) if s != shape]


def _broadcast(subject: Subject, other: Example, shape: Any, small: Any) -> Finding:
    try:
        found = first_order(subject, other)
    except Exception as error:
        cause = cause_of(error)
        return fail(
            "broadcast sum" if cause in ("raises", "gradient shape") else cause,
            f"forward broadcasts {list(small)} to {list(shape)}, but backward raises "
            f"{type(error).__name__}: sum the gradient over what was broadcast",
        )
    if found.level != "fail":
        return Finding(*found)
    return fail(
        "broadcast sum", f"{list(small)} broadcast to {list(shape)}: {found.text}"
    )
