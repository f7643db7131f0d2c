"""softmax and its kin over lines of only -inf: Note [Lines of only -inf]."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gradfn as torch
from gradfn.nn import functional as F

INF, NAN = math.inf, math.nan

OPS = {
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(1),
    "softmin": lambda x: F.softmin(-x, 1),
    "logsumexp": lambda x: x.logsumexp(1),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "logaddexp": lambda x: torch.logaddexp(x[:, 0], x[:, 1]),
    "logaddexp2": lambda x: torch.logaddexp2(x[:, 0], x[:, 1]),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 1]), reduction="none"),
    "vmapped": lambda x: torch.func.vmap(lambda row: row.log_softmax(0))(x),
}
DTYPES = ["float16", "float32", "float64"]


def weighted(y: torch.Tensor) -> torch.Tensor:
    return (y * torch.arange(1, y.numel() + 1).reshape(y.shape)).sum()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_no_gradient_of_either_order(name: str, dtype: str) -> None:
    kind = getattr(torch, dtype)
    x = torch.tensor([[-INF, -INF], [1.0, 2.0]], dtype=kind, requires_grad=True)
    (g,) = torch.autograd.grad(weighted(OPS[name](x)), x, create_graph=True)
    (h,) = torch.autograd.grad(weighted(g), x)
    alone = torch.tensor([[1.0, 2.0], [1.0, 2.0]], dtype=kind, requires_grad=True)
    (g2,) = torch.autograd.grad(weighted(OPS[name](alone)), alone, create_graph=True)
    (h2,) = torch.autograd.grad(weighted(g2), alone)
    assert g[0].tolist() == h[0].tolist() == [0, 0]
    assert g[1].tolist() == g2[1].tolist()
    assert h[1].tolist() == h2[1].tolist()


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin", "cross_entropy"])
def test_no_tangent(name: str) -> None:
    x = torch.tensor([[-INF, -INF], [1.0, 2.0]])
    _, tangent = torch.func.jvp(OPS[name], (x,), (torch.ones(2, 2),))
    assert tangent[0].tolist() in ([0, 0], 0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_a_nan_that_came_with_the_input_stays_one(name: str) -> None:
    empty = torch.full((1, 2), -INF).softmax(1)
    for values in (
        torch.tensor([[NAN, 1.0]]),
        empty,
        empty * -1,
        torch.tensor([[INF, 1]]),
    ):
        x = torch.cat([values, torch.tensor([[1.0, 2.0]])]).requires_grad_()
        weighted(OPS[name](x)).backward()
        assert all(map(math.isnan, x.grad[0].tolist()))
        assert all(map(math.isfinite, x.grad[1].tolist()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_value_is_nan(dtype: str) -> None:
    x = torch.full((2, 3), -INF, dtype=getattr(torch, dtype))
    assert np.isnan(x.softmax(0).numpy()).all()
    assert np.isnan(x.log_softmax(1).numpy()).all()
    assert f"{x.softmax(0)[0, 0].item()}" == "nan"


def test_a_row_that_a_mask_emptied_gives_zeros_in_attention() -> None:
    q = torch.ones(2, 3, requires_grad=True)
    mask = torch.tensor([[False, False], [True, True]])
    y = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    y.sum().backward()
    assert y.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert np.isfinite(q.grad.numpy()).all()


def test_a_where_throws_the_row_away() -> None:
    x = torch.tensor([[-INF, -INF], [1.0, 2.0]], requires_grad=True)
    y = x.softmax(1)
    torch.where(y.isnan(), 0.0, y)[:, 0].sum().backward()
    assert x.grad[0].tolist() == [0, 0]
    assert x.grad[1, 0].item() == pytest.approx(0.1966119)
