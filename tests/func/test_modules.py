"""Modules under transforms, and a look behind samples."""

from __future__ import annotations

from typing import Any

import pytest

import gradfn as torch
from gradfn import nn
from gradfn.func import (
    debug_unwrap,
    functional_call,
    grad,
    replace_all_batch_norm_modules_,
    stack_module_state,
    vmap,
)


def test_batch_norm_without_statistics_runs_on_samples() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    x = torch.randn(5, 6, 3)
    params = {name: p.detach() for name, p in net.named_parameters()}

    def loss(params: Any, buffers: Any, x: Any) -> Any:
        return functional_call(net, (params, buffers), (x,)).square().sum()

    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        vmap(loss, (None, None, 0))(params, dict(net.named_buffers()), x)
    assert replace_all_batch_norm_modules_(net) is net
    assert not dict(net.named_buffers())
    each = vmap(grad(loss), (None, None, 0))(params, {}, x)
    for i in range(5):
        single = grad(loss)(params, {}, x[i])
        for name, g in single.items():
            assert torch.allclose(each[name][i], g, atol=1e-5)


def test_an_ensemble_in_one_call() -> None:
    torch.manual_seed(1)
    nets = [nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.0)) for _ in range(4)]
    params, buffers = stack_module_state(nets)
    x = torch.randn(5, 3)

    def call(params: Any, buffers: Any) -> Any:
        return functional_call(nets[0], (params, buffers), (x,))

    together = vmap(call)(params, buffers)
    assert torch.allclose(together, torch.stack([net(x) for net in nets]))
    nets[1].eval()
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        stack_module_state(nets)


def test_the_tensor_behind_samples() -> None:
    x = torch.arange(12.0).reshape(2, 3, 2)
    seen: list[Any] = []

    def look(t: Any) -> Any:
        seen[:] = [debug_unwrap(t), debug_unwrap(t, recurse=False)]
        return t

    vmap(vmap(look))(x)
    assert seen[0] is x
    assert seen[1].shape == (3, 2)
    assert debug_unwrap(x) is x
