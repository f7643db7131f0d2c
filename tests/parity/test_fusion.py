"""Layers fused with their normalisation do what both did, as PyTorch's do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradfn
import gradfn.nn

PAIRS = [
    ("Conv2d(3, 4, 3)", "BatchNorm2d(4)", (2, 3, 5, 5), "fuse_conv_bn_eval"),
    ("Conv1d(3, 4, 3, bias=False)", "BatchNorm1d(4)", (2, 3, 5), "fuse_conv_bn_eval"),
    ("Linear(3, 4)", "BatchNorm1d(4, affine=False)", (5, 3), "fuse_linear_bn_eval"),
]


def pair(library: Any, layer: str, norm: str) -> Any:
    made = library.nn.Sequential(
        eval(layer, vars(library.nn)), eval(norm, vars(library.nn))
    )
    return made.eval()


@pytest.mark.parametrize(("layer", "norm", "shape", "fuse"), PAIRS)
def test_fused(layer: str, norm: str, shape: Any, fuse: str) -> None:
    theirs = pair(torch, layer, norm)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    theirs.train()(x)
    mine = pair(gradfn, layer, norm)
    state = {k: gradfn.tensor(v.tolist()) for k, v in theirs.eval().state_dict().items()}
    mine.load_state_dict(state)
    if "affine=False" in norm:  # PyTorch's function has no answer for that
        expected = theirs(x)
    else:
        expected = getattr(torch.nn.utils, fuse)(*theirs)(x)
    fused = getattr(gradfn.nn.utils, fuse)(*mine)
    assert type(fused) is type(mine[0])
    found = fused(gradfn.tensor(x.tolist()))
    torch.testing.assert_close(torch.tensor(found.tolist()), expected.detach())


def test_only_in_evaluation() -> None:
    mine = pair(gradfn, "Linear(3, 4)", "BatchNorm1d(4)").train()
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        gradfn.nn.utils.fuse_linear_bn_eval(*mine)


def test_a_module_for_a_state() -> None:
    made = gradfn.nn.utils.skip_init(gradfn.nn.Linear, 3, 2)
    assert tuple(made.weight.shape) == (2, 3)
    with pytest.raises(RuntimeError, match="Expected a Module"):
        gradfn.nn.utils.skip_init(int, 3)
