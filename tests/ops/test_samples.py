"""Every sample: it runs, and its derivatives agree with differences of its values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from samples import inputs, names_in, samples, smooth_samples

import gradfn as torch

STEP = 1e-6


def flat(value: Any) -> list[Any]:
    """The tensors in a result."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    return []


def evaluate(expression: str, given: dict[str, Any]) -> list[Any]:
    """The tensors that the sample gives for tensors or arrays."""
    values = {
        k: v if isinstance(v, torch.Tensor) else torch.tensor(v) for k, v in given.items()
    }
    return flat(eval(expression, {"torch": torch, **values}))


def loss(expression: str, given: dict[str, Any]) -> Any:
    """A real number that depends on every differentiable result."""
    total: Any = None
    for place, out in enumerate(evaluate(expression, given)):
        if not (out.is_floating_point() or out.is_complex()) or not out.numel():
            continue
        flatly = out.reshape(-1)
        weights = np.cos(np.arange(flatly.shape[0]) + place + 1.0)
        if out.is_complex():
            part = (flatly.real * torch.tensor(weights)).sum()
            part = part + (flatly.imag * torch.tensor(weights[::-1].copy())).sum()
        else:
            part = (flatly * torch.tensor(weights)).sum()
        total = part if total is None else total + part
    return total


def directional(function: Any, arrays: dict[str, Any], way: dict[str, Any]) -> float:
    """(f(x + h·way) - f(x - h·way)) / 2h."""
    ahead = {k: v + STEP * way[k] for k, v in arrays.items()}
    back = {k: v - STEP * way[k] for k, v in arrays.items()}
    return float(function(ahead) - function(back)) / (2 * STEP)


def directions(arrays: dict[str, Any]) -> dict[str, Any]:
    """A direction to step in, for each array."""
    rng = np.random.default_rng(3)
    way = {}
    for k, v in arrays.items():
        way[k] = rng.normal(size=v.shape)
        if v.dtype.kind == "c":
            way[k] = way[k] + 1j * rng.normal(size=v.shape)
    return way


def along(grads: Any, way: dict[str, Any]) -> Any:
    """The derivative in a direction, from the gradients."""
    total: Any = 0.0
    for g, d in zip(grads, way.values(), strict=True):
        if g is not None:
            part = g * torch.tensor(d).conj() if g.is_complex() else g * torch.tensor(d)
            total = total + (part.real if g.is_complex() else part).sum()
    return total


@pytest.mark.parametrize("expression", samples())
def test_it_runs(expression: str) -> None:
    evaluate(expression, {k: inputs()[k] for k in names_in(expression)})


@pytest.mark.parametrize("expression", smooth_samples())
def test_derivatives_are_those_of_the_values(expression: str) -> None:
    given = {k: inputs()[k] for k in names_in(expression)}
    smooth = {k: v for k, v in given.items() if v.dtype in (np.float64, np.complex128)}
    others = {k: v for k, v in given.items() if k not in smooth}
    leaves = {k: torch.tensor(v, requires_grad=True) for k, v in smooth.items()}
    value = loss(expression, {**others, **leaves})
    if value is None or not value.requires_grad or "n" in smooth:
        return  # it has no derivative; that it runs is all
    way = directions(smooth)
    first = torch.autograd.grad(
        value, list(leaves.values()), create_graph=True, allow_unused=True
    )

    def plain(arrays: dict[str, Any]) -> float:
        return float(loss(expression, {**others, **arrays}).item())

    slope = along(first, way)
    np.testing.assert_allclose(
        float(slope), directional(plain, smooth, way), rtol=1e-5, atol=1e-6
    )
    if not slope.requires_grad:
        return
    second = torch.autograd.grad(slope, list(leaves.values()), allow_unused=True)

    def once(arrays: dict[str, Any]) -> float:
        at = {k: torch.tensor(v, requires_grad=True) for k, v in arrays.items()}
        grads = torch.autograd.grad(
            loss(expression, {**others, **at}), list(at.values()), allow_unused=True
        )
        return float(along(grads, way))

    np.testing.assert_allclose(
        float(along(second, way)), directional(once, smooth, way), rtol=1e-4, atol=1e-5
    )
