"""Lazy modules become PyTorch's, from the first input or from a state."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradfn
import gradfn.nn
import gradfn.optim

CASES = [
    ("LazyLinear(3)", (2, 5)),
    ("LazyLinear(3, bias=False)", (2, 4, 5)),
    ("LazyConv1d(4, 2, groups=2)", (2, 6, 5)),
    ("LazyConv2d(4, 3, padding=1)", (2, 3, 5, 5)),
    ("LazyConv2d(4, 3)", (3, 5, 5)),
    ("LazyConv3d(4, 2, bias=False)", (1, 3, 4, 4, 4)),
    ("LazyConvTranspose1d(4, 2)", (2, 3, 5)),
    ("LazyConvTranspose2d(4, 2, stride=2)", (2, 3, 5, 5)),
    ("LazyConvTranspose3d(4, 2)", (1, 3, 2, 2, 2)),
    ("LazyBatchNorm1d()", (5, 3)),
    ("LazyBatchNorm2d(eps=0.1)", (2, 3, 4, 4)),
    ("LazyBatchNorm3d(affine=False)", (2, 3, 2, 2, 2)),
    ("LazyInstanceNorm1d()", (2, 3, 4)),
    ("LazyInstanceNorm2d(affine=True)", (2, 3, 4, 4)),
    ("LazyInstanceNorm3d(track_running_stats=True)", (2, 3, 2, 2, 2)),
]


def made(library: Any, text: str) -> Any:
    return eval(text, vars(library.nn))


@pytest.mark.parametrize(("text", "shape"), CASES)
def test_the_first_input_tells_the_size(text: str, shape: Any) -> None:
    mine, theirs = made(gradfn, text), made(torch, text)
    assert repr(mine) == repr(theirs)
    kept = list(mine.parameters())
    x = torch.linspace(-1, 1, int(torch.tensor(shape).prod())).reshape(shape)
    theirs(x)
    mine(gradfn.tensor(x.tolist()))
    assert repr(mine) == repr(theirs)
    assert type(mine).__name__ == type(theirs).__name__
    assert all(a is b for a, b in zip(kept, mine.parameters(), strict=True))
    state = {k: gradfn.tensor(v.tolist()) for k, v in theirs.state_dict().items()}
    mine.load_state_dict(state)
    found = mine.eval()(gradfn.tensor(x.tolist())).detach().tolist()
    torch.testing.assert_close(torch.tensor(found), theirs.eval()(x).detach())


@pytest.mark.parametrize(("text", "shape"), CASES)
def test_a_state_tells_the_size(text: str, shape: Any) -> None:
    first, second = made(gradfn, text), made(gradfn, text)
    x = gradfn.randn(*shape)
    first(x)
    if not first.state_dict():
        return  # nothing that could tell
    second.load_state_dict(first.state_dict())
    assert (second.eval()(x) == first.eval()(x)).all()


def test_nothing_is_known_before() -> None:
    lazy = gradfn.nn.LazyLinear(3)
    assert lazy.has_uninitialized_params()
    assert isinstance(lazy.weight, gradfn.nn.UninitializedParameter)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        lazy.weight.shape
    with pytest.raises(RuntimeError, match=r"Expected 3D .* input to LazyConv2d"):
        gradfn.nn.LazyConv2d(4, 3)(gradfn.ones(2, 3))
