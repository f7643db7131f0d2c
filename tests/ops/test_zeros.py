"""A branch that was thrown away leaves no NaN in the gradient: Note [Zero annihilates]."""

from __future__ import annotations

import math

import pytest

import gradfn as torch

# an op of x, and a point where its derivative is infinite or NaN
SINGULAR = [
    (lambda x: torch.sqrt(x), -1.0),
    (lambda x: torch.sqrt(x), 0.0),
    (lambda x: torch.rsqrt(x), 0.0),
    (lambda x: torch.log(x), 0.0),
    (lambda x: torch.log(x), -2.0),
    (lambda x: torch.log2(x), 0.0),
    (lambda x: torch.log10(x), 0.0),
    (lambda x: torch.log1p(x), -1.0),
    (lambda x: x * torch.log(x), 0.0),
    (lambda x: torch.xlogy(x, x), -1.0),
    (lambda x: 1 / x, 0.0),
    (lambda x: x / x, 0.0),
    (lambda x: x.reciprocal(), 0.0),
    (lambda x: x**0.5, -1.0),
    (lambda x: x**-2, 0.0),
    (lambda x: x ** (x * 0.5), -1.0),
    (lambda x: torch.asin(x), 1.0),
    (lambda x: torch.acos(x), 2.0),
    (lambda x: torch.atanh(x), 1.0),
    (lambda x: torch.acosh(x), 0.5),
    (lambda x: torch.logit(x), 0.0),
    (lambda x: torch.special.entr(x), 0.0),
    (lambda x: torch.special.xlog1py(x, x), -1.0),
    (lambda x: torch.special.ndtri(x), 0.0),
    (lambda x: torch.special.ndtri(x), 2.0),
    (lambda x: torch.special.zeta(3.0, x), 0.0),
    (lambda x: torch.mvlgamma(x, 2), 0.0),
    (lambda x: torch.igamma(torch.full_like(x, 0.5), x), 0.0),
    (lambda x: torch.igammac(torch.full_like(x, 0.5), x), -1.0),
    (lambda x: torch.exp(x * 1e4), 1.0),
    (lambda x: torch.exp(torch.sqrt(x)), -1.0),
    (lambda x: torch.sqrt(x).sin() * 2, -1.0),
    (lambda x: torch.linalg.norm(x.reshape(-1, 1) * 0, dim=1), 1.0),
]


def gradient(f: object, at: float, throw_away: object) -> list[float]:
    x = torch.tensor([at, 3.0], dtype=torch.float64, requires_grad=True)
    throw_away(f(x), x).sum().backward()  # type: ignore[operator]
    return x.grad.tolist()  # type: ignore[no-any-return]


THROW_AWAY = [
    lambda y, x: torch.where(torch.tensor([False, False]), y, x),
    lambda y, x: y.masked_fill(torch.tensor([True, True]), 0) + x,
    lambda y, x: torch.cat([y[2:], x]),
    lambda y, x: torch.nan_to_num(y, 0, 0, 0) * 0 + x,
]


@pytest.mark.parametrize("throw_away", THROW_AWAY)
@pytest.mark.parametrize(("f", "at"), SINGULAR)
def test_what_is_thrown_away_has_no_gradient(
    f: object, at: float, throw_away: object
) -> None:
    assert gradient(f, at, throw_away) == [1.0, 1.0]


@pytest.mark.parametrize(("f", "at"), SINGULAR)
def test_second_derivatives_too(f: object, at: float) -> None:
    x = torch.tensor([at, 3.0], dtype=torch.float64, requires_grad=True)
    y = torch.where(torch.tensor([False, False]), f(x), x * x)  # type: ignore[operator]
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.tolist() == [2 * at, 6.0]
    assert h.tolist() == [2.0, 2.0]


def test_what_is_used_keeps_its_infinite_derivative() -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    torch.sqrt(x).sum().backward()
    assert x.grad.tolist() == [math.inf, 0.25]


def test_it_can_be_turned_off() -> None:
    at, throw = 0.0, THROW_AWAY[0]
    with torch.autograd.zero_annihilates(False):
        assert math.isnan(gradient(torch.sqrt, at, throw)[0])
    assert gradient(torch.sqrt, at, throw) == [1.0, 1.0]
    torch.autograd.zero_annihilates(False)
    try:
        assert math.isnan(gradient(torch.log, at, throw)[0])
    finally:
        torch.autograd.zero_annihilates(True)


def test_overflow_keeps_its_alarm() -> None:
    x = torch.tensor([1000.0, 1.0], requires_grad=True)
    x.exp().sum().log().backward()
    assert math.isnan(x.grad[0].item())


def test_norms_of_zeros_have_no_gradient_twice() -> None:
    x = torch.zeros(3, requires_grad=True)
    (g,) = torch.autograd.grad(x.norm(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.tolist() == h.tolist() == [0.0, 0.0, 0.0]
