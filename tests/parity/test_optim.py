"""Optimizers and schedules go the same way on both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import gradfn
import gradfn.optim

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.01, "momentum": 0.5, "dampening": 0.5, "maximize": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adamax", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("RMSprop", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "centered": True}),
    ("Adadelta", {"lr": 0.5, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.1}),
]
SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3}),
    ("MultiStepLR", {"milestones": [2, 5], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("LinearLR", {"total_iters": 4}),
    ("CosineAnnealingLR", {"T_max": 6, "eta_min": 0.01}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (epoch + 1)}),
]


def way(library: Any, name: str, options: dict[str, Any], steps: int = 12) -> Any:
    """The parameter after each of some steps down a bent valley."""
    p = library.tensor([1.0, -2.0, 0.5], dtype=library.float64, requires_grad=True)
    optimizer = getattr(library.optim, name)([p], **options)
    seen = []
    for _ in range(steps):
        optimizer.zero_grad()
        ((p * p).sum() + (p[0] * p[1]).sin() + (p - 1).exp().sum()).backward()
        optimizer.step()
        seen.append(p.detach().clone().numpy())
    return np.stack(seen)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_optimizers_take_the_same_way(name: str, options: dict[str, Any]) -> None:
    mine, theirs = way(gradfn, name, options), way(torch, name, options)
    np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Detected call of")
@pytest.mark.parametrize(("name", "options"), SCHEDULES)
def test_schedules_set_the_same_rates(name: str, options: dict[str, Any]) -> None:
    def rates(library: Any) -> list[float]:
        p = library.tensor([1.0], requires_grad=True)
        optimizer = library.optim.SGD([p], lr=0.4)
        schedule = getattr(library.optim.lr_scheduler, name)(optimizer, **options)
        seen = []
        for _ in range(10):
            seen.append(optimizer.param_groups[0]["lr"])
            schedule.step()
        return seen

    np.testing.assert_allclose(rates(gradfn), rates(torch), rtol=1e-12)


def test_lbfgs_finds_the_minimum() -> None:
    p = gradfn.tensor([-1.2, 1.0], dtype=gradfn.float64, requires_grad=True)
    optimizer = gradfn.optim.LBFGS([p], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
        loss.backward()
        return loss

    for _ in range(5):
        optimizer.step(closure)
    np.testing.assert_allclose(p.detach().numpy(), [1.0, 1.0], atol=1e-4)


def test_a_state_can_be_saved_and_taken_up_again() -> None:
    p = gradfn.tensor([1.0, 2.0], requires_grad=True)
    first = gradfn.optim.Adam([p], lr=0.1)
    (p * p).sum().backward()
    first.step()
    second = gradfn.optim.Adam([p], lr=0.5)
    second.load_state_dict(first.state_dict())
    assert second.param_groups[0]["lr"] == 0.1
    assert second.state[p]["step"].item() == 1.0
