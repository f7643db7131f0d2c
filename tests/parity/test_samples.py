"""Every sample gives PyTorch's values, dtypes, shapes, names and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from samples import inputs, names_in, samples

import gradfn


def flat(value: Any) -> list[Any]:
    """The results one by one."""
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    return [value]


def run(library: Any, expression: str) -> tuple[list[Any], list[Any]]:
    """The results, and the inputs that may have a gradient."""
    values = {k: library.tensor(inputs()[k]) for k in names_in(expression)}
    leaves = [
        t.requires_grad_()
        for t in values.values()
        if t.is_floating_point() or t.is_complex()
    ]
    return flat(eval(expression, {"torch": library, **values})), leaves


def gradients(library: Any, outs: list[Any], leaves: list[Any]) -> list[Any]:
    """First derivatives of the outputs, and second ones."""
    first = [t for t in outs if isinstance(t, library.Tensor) and t.requires_grad]
    if not first or not leaves:
        return []
    seeds = [library.cos(library.ones_like(t)) for t in first]
    once = library.autograd.grad(
        first, leaves, seeds, create_graph=True, allow_unused=True
    )
    again = [g for g in once if g is not None and g.requires_grad]
    if not again:
        return list(once)
    seeds = [library.cos(library.ones_like(t)) for t in again]
    try:
        twice = library.autograd.grad(again, leaves, seeds, allow_unused=True)
    except RuntimeError as error:
        if library is gradfn or "not implemented" not in str(error):
            raise
        return list(once)  # PyTorch has no second derivative of a few ops
    return [*once, *twice]


NARROW = (torch.float32, torch.complex64, torch.float16)


def tolerance(results: list[Any]) -> float:
    """Coarse where anything was computed in single precision."""
    narrow = any(isinstance(t, torch.Tensor) and t.dtype in NARROW for t in results)
    return 1e-4 if narrow else 1e-8


def same(mine: Any, theirs: Any, what: str, rtol: float) -> None:
    """Values, dtype and shape agree; a missing gradient equals zeros."""
    if mine is None or theirs is None:
        have = mine if theirs is None else theirs
        assert have is None or not np.any(have.detach().numpy(force=True)), what
        return
    if not isinstance(theirs, torch.Tensor):
        assert mine == theirs or str(mine) == str(theirs), what
        return
    assert tuple(mine.shape) == tuple(theirs.shape), what
    assert str(mine.dtype) == str(theirs.dtype), what
    np.testing.assert_allclose(
        mine.detach().numpy(),
        theirs.detach().resolve_conj().numpy(force=True),
        rtol=rtol,
        atol=rtol / 10,
        err_msg=what,
    )


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.filterwarnings(r"ignore:torch\.\w+ is deprecated")
@pytest.mark.parametrize("expression", samples())
def test_as_pytorch(expression: str) -> None:
    mine, my_leaves = run(gradfn, expression)
    theirs, their_leaves = run(torch, expression)
    assert len(mine) == len(theirs)
    rtol = tolerance([*theirs, *their_leaves])
    for place, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        same(a, b, f"result {place}", rtol)
        if isinstance(b, torch.Tensor):
            assert a.requires_grad == b.requires_grad
    ours = gradients(gradfn, mine, my_leaves)
    for place, (a, b) in enumerate(
        zip(ours, gradients(torch, theirs, their_leaves), strict=False)
    ):
        same(a, b, f"gradient {place}", rtol)
