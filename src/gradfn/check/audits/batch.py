"""The Function under vmap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gradfn.check.audit import Finding, audit, fail, ok, skip
from gradfn.check.errors import raised
from gradfn.check.subject import Example, Subject, array, same, seeded

SIZE = 3


class Info(NamedTuple):
    """What a vmap staticmethod is told."""

    batch_size: int
    randomness: str


@audit("vmap", after=("gradients",))
def batches(subject: Subject, example: Example) -> Finding:
    """Does vmap give what a loop over the samples gives?"""
    own = subject.overrides("vmap")
    if not own and not getattr(subject.cls, "generate_vmap_rule", False):
        return skip("it has no vmap rule")
    if own and getattr(subject.cls, "generate_vmap_rule", False):
        return fail(
            "two vmap rules", "generate_vmap_rule=True and a vmap staticmethod: keep one"
        )
    if example.leaves != list(example.args):
        return skip("its arguments are in containers")
    samples = [subject.jittered(example, n).args for n in range(SIZE)]
    for dims in batched_dims(subject, example):
        found = _batch(subject, example, samples, dims, own)
        if found:
            return found
    return ok()


def batched_dims(subject: Subject, example: Example) -> Iterator[list[int | None]]:
    """in_dims to try: all in front, all behind, each alone."""
    tensors = [subject.is_tensor(x) for x in example.args]
    yield [0 if t else None for t in tensors]
    yield [x.dim() if t else None for t, x in zip(tensors, example.args, strict=True)]
    if sum(tensors) > 1:
        for i, t in enumerate(tensors):
            if t:
                yield [0 if k == i else None for k in range(len(tensors))]


def _batch(
    subject: Subject, example: Example, samples: Any, dims: Any, own: bool
) -> Finding | None:
    torch = subject.torch
    columns = list(zip(*samples, strict=True))
    stacked = [
        x if d is None else torch.stack([t.detach() for t in ts], d)
        for x, ts, d in zip(example.args, columns, dims, strict=True)
    ]
    singles = [
        [x if d is None else ts[n] for x, ts, d in zip(example.args, columns, dims)]
        for n in range(SIZE)
    ]
    with seeded(torch):
        outs = [subject.tensors(subject.cls.apply(*one)) for one in singles]
    expected = [np.stack([array(t) for t in ts]) for ts in zip(*outs, strict=True)]
    where = f"in_dims={tuple(dims)}"
    try:
        got = torch.func.vmap(subject.cls.apply, tuple(dims))(*stacked)
        if own:
            by_hand = _by_hand(subject, stacked, dims)
    except Exception as error:
        return raised(error, f"vmap with {where}", "vmap raises")
    if not _agree([array(t) for t in subject.tensors(got)], expected):
        return fail("vmap", f"vmap with {where} gives something else than a loop")
    if own and not _agree(by_hand, expected):
        return fail(
            "vmap",
            f"the vmap staticmethod, given {where}, gives something else than a loop: look at "
            "in_dims and at the out_dims that it returns",
        )
    return _batched_gradients(subject, example, stacked, singles, dims, where)


def _agree(got: list[Any], expected: list[Any]) -> bool:
    return len(got) == len(expected) and all(
        same(a, b) for a, b in zip(got, expected, strict=True)
    )


def _by_hand(subject: Subject, stacked: Any, dims: Any) -> list[Any]:
    """The staticmethod called directly, with the batch where `dims` says."""
    given = subject.cls.vmap(Info(SIZE, "error"), tuple(dims), *stacked)
    out, out_dims = given
    outs = subject.tensors(out)
    places = (
        list(out_dims) if isinstance(out_dims, (tuple, list)) else [out_dims] * len(outs)
    )
    found = []
    for t, d in zip(outs, places, strict=True):
        a = array(t)
        found.append(np.stack([a] * SIZE) if d is None else np.moveaxis(a, d, 0))
    return found


def _batched_gradients(
    subject: Subject, example: Example, stacked: Any, singles: Any, dims: Any, where: str
) -> Finding | None:
    """Gradients of the sum through vmap, and by a loop."""
    torch = subject.torch

    def total(run: Any, args: list[Any]) -> list[Any]:
        leaves = [
            x.detach().clone().requires_grad_() if i in example.active else x
            for i, x in enumerate(args)
        ]
        with seeded(torch):
            live = [t for t in subject.tensors(run(leaves)) if t.requires_grad]
        wanted = [leaves[i] for i in example.active]
        got = subject.grad(live, wanted, [torch.ones_like(t) for t in live])
        return [
            np.zeros(tuple(t.shape)) if g is None else array(g)
            for g, t in zip(got, wanted, strict=True)
        ]

    try:
        got = total(
            lambda ts: torch.func.vmap(subject.cls.apply, tuple(dims))(*ts), stacked
        )
    except Exception as error:
        return raised(error, f"backward through vmap with {where}", "vmap raises")
    loop = [total(lambda ts: subject.cls.apply(*ts), one) for one in singles]
    for k, place in enumerate(example.active):
        parts = [one[k] for one in loop]
        d = dims[place]
        expected = np.sum(parts, 0) if d is None else np.stack(parts, d)
        if not same(got[k], expected):
            return fail(
                "vmap",
                f"gradients through vmap with {where} are not those of a loop",
            )
    return None
