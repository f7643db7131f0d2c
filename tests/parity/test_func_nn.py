"""vmap over windows, convolutions and pools: as PyTorch, without a loop."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import gradfn

CALLS = [
    "F.conv1d(x[..., 0], w[..., 0], b, padding=1)",
    "F.conv2d(x, w, b, stride=2, padding=1)",
    "F.conv2d(x, torch.cat([w, w], 0)[:, :1], groups=2, dilation=2)",
    "F.conv_transpose2d(x, w.transpose(0, 1), b, stride=2)",
    "F.max_pool2d(x, 2)",
    "F.max_pool2d(x, 3, stride=1, padding=1)",
    "F.avg_pool2d(x, 2, padding=1)",
    "F.adaptive_avg_pool2d(x, (2, 3))",
    "F.unfold(x, 2)",
    "F.fold(F.unfold(x, 2), x.shape[-2:], 2)",
    "F.linear(x, w.reshape(-1)[:18].reshape(3, 6), b)",
    "F.linear(x[0, 0, 0], w.reshape(-1)[:18].reshape(3, 6), b)",
    "F.layer_norm(x, (6,), w.reshape(-1)[:6], w.reshape(-1)[6:12])",
    "F.group_norm(x, 1, b[:2], b[:2])",
    "F.batch_norm(x, None, None, b[:2], training=True)",
    "F.instance_norm(x)",
    "F.cross_entropy(x[0, 0, 0], (b > 0)[0].long())",
    "F.cross_entropy(x[:, 0, 0], (b > 0).long()[:2], ignore_index=0)",
    "F.cross_entropy(x[:, 0, 0], (b > 0).long()[:2], x[0, 0, 0].abs().detach())",
    "F.nll_loss(x[..., 0], (w[0, 0] > 0).long().repeat(1, 3)[:2, :5], reduction='sum')",
    "F.nll_loss(x[..., 0], (w[0, 0] > 0).long().repeat(1, 3)[:2, :5], reduction='none')",
    "F.embedding(torch.tensor([[1, 0, 1]]), x[0, 0])",
    "F.embedding((b > 0).long(), x[0, 0])",
    "F.embedding((b > 0).long(), w[0, 0], padding_idx=0)",
    "F.embedding_bag((w[:, 0, 0] > 0).long(), x[0, 0], mode='sum')",
    "F.grid_sample(x, w[:2].tanh(), align_corners=False)",
    "F.grid_sample(x, w[:2], 'nearest', 'border', align_corners=False)",
    "F.grid_sample(x, w[:2], 'bicubic', 'reflection', align_corners=True)",
]


def _arguments(library: Any) -> list[Any]:
    generator = torch.Generator().manual_seed(3)
    shapes = [(4, 2, 2, 5, 6), (4, 3, 2, 3, 2), (4, 3)]
    made = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
    return [library.tensor(t.tolist(), dtype=library.float64) for t in made]


@pytest.mark.parametrize("dims", [(0, None, None), (0, 0, 0), (None, 0, None)])
@pytest.mark.parametrize("call", CALLS)
def test_values_and_gradients_per_sample(call: str, dims: Any) -> None:
    answers = []
    for library in (gradfn, torch):
        place = {"torch": library, "F": library.nn.functional}
        function = eval(f"lambda x, w, b: {call}", place)

        def loss(x: Any, w: Any, b: Any, function: Any = function) -> Any:
            return function(x, w, b).square().sum()

        given = [
            t if d == 0 else t[0] for t, d in zip(_arguments(library), dims, strict=True)
        ]
        with warnings.catch_warnings():
            if library is gradfn:
                warnings.simplefilter("error")
            else:
                warnings.simplefilter("ignore")
            mapped = library.func.vmap(library.func.grad(loss, (0, 1, 2)), dims)(*given)
            value = library.func.vmap(function, dims)(*given)
        answers.append([t.detach().tolist() for t in (value, *mapped)])
    for mine, theirs in zip(*answers, strict=True):
        torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs))
