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
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.3), "maximize": True}),
    ("Adam", {"lr": 0.1, "maximize": True, "eps": 1e-3, "betas": (0.8, 0.9)}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "foreach": False}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.1, "centered": True, "alpha": 0.9}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8}),
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "t0": 5, "lambd": 0.1, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "betas": (0.9, 0.99)}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
]
# Far steps and few evaluations make rounding grow, so those ways are compared for less.
LBFGS: list[dict[str, Any]] = [
    {},
    {"lr": 0.1, "max_iter": 7, "history_size": 3},
    {"line_search_fn": "strong_wolfe"},
    {"lr": 3.0, "line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 2},
]
SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3}),
    ("MultiStepLR", {"milestones": [2, 5], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("LinearLR", {"total_iters": 4}),
    ("CosineAnnealingLR", {"T_max": 6, "eta_min": 0.01}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (epoch + 1)}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.9 + 0.01 * epoch}),
    ("PolynomialLR", {"total_iters": 6, "power": 1.5}),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 0.7, "total_iters": 6}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2, "eta_min": 0.01}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 3}),
    (
        "CyclicLR",
        {
            "base_lr": 0.1,
            "max_lr": 0.5,
            "step_size_up": 2,
            "step_size_down": 3,
            "mode": "triangular2",
            "cycle_momentum": False,
        },
    ),
    (
        "CyclicLR",
        {
            "base_lr": 0.1,
            "max_lr": 0.5,
            "step_size_up": 3,
            "mode": "exp_range",
            "gamma": 0.9,
        },
    ),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 20}),
    (
        "OneCycleLR",
        {
            "max_lr": 0.5,
            "epochs": 4,
            "steps_per_epoch": 5,
            "three_phase": True,
            "anneal_strategy": "linear",
        },
    ),
]


def way(library: Any, name: str, options: dict[str, Any], steps: int = 20) -> Any:
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
        optimizer = library.optim.SGD([p], lr=0.4, momentum=0.9)
        schedule = getattr(library.optim.lr_scheduler, name)(optimizer, **options)
        seen = []
        for _ in range(20):
            group = optimizer.param_groups[0]
            seen += [group["lr"], group["momentum"], *schedule.get_last_lr()]
            schedule.step()
        return seen

    np.testing.assert_allclose(rates(gradfn), rates(torch), rtol=1e-12)


@pytest.mark.parametrize("options", LBFGS)
def test_lbfgs_takes_the_same_way(options: dict[str, Any]) -> None:
    def run(library: Any) -> Any:
        p = library.tensor([-1.2, 1.0, 0.3], dtype=library.float64, requires_grad=True)
        q = library.tensor([[0.5]], dtype=library.float64, requires_grad=True)
        optimizer = library.optim.LBFGS([p, q], **options)

        def closure() -> Any:
            optimizer.zero_grad()
            valley = (1 - p[0]) ** 2 + 10 * (p[1] - p[0] ** 2) ** 2 + p[2].cosh()
            loss = valley + ((q * p).sum() - 1) ** 2
            loss.backward()
            return loss

        seen = []
        for _ in range(5 if options.get("lr") == 3 else 20):
            loss = optimizer.step(closure)
            seen += [loss.item(), *p.tolist(), q.item()]
        state = optimizer.state[p]
        return [*seen, state["func_evals"], state["n_iter"]]

    np.testing.assert_allclose(run(gradfn), run(torch), rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_schedules_together() -> None:
    def rates(library: Any) -> list[float]:
        s = library.optim.lr_scheduler
        p = library.tensor([1.0], requires_grad=True)
        seen = []
        for chained in (True, False):
            optimizer = library.optim.SGD([p], lr=0.4)
            parts = [s.StepLR(optimizer, 3), s.ExponentialLR(optimizer, 0.9)]
            parts.append(s.CosineAnnealingLR(optimizer, 5))
            schedule = (
                s.ChainedScheduler(parts, optimizer)
                if chained
                else s.SequentialLR(optimizer, parts, [4, 9])
            )
            for _ in range(20):
                seen += [optimizer.param_groups[0]["lr"], *schedule.get_last_lr()]
                schedule.step()
        return seen

    np.testing.assert_allclose(rates(gradfn), rates(torch), rtol=1e-12)


@pytest.mark.parametrize("mode", ["min", "max"])
def test_a_plateau_lowers_the_rate(mode: str) -> None:
    def rates(library: Any) -> list[float]:
        p = library.tensor([1.0], requires_grad=True)
        optimizer = library.optim.SGD([p], lr=0.4)
        schedule = library.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, mode, 0.5, 1, cooldown=1, min_lr=0.01
        )
        seen = []
        for metric in [1.0, 0.9, 0.95, 0.96, 0.97, 0.98, 0.5, 1.5, 1.6, 1.6, 1.6, 1.7]:
            schedule.step(metric)
            seen += [*schedule.get_last_lr(), schedule.num_bad_epochs]
        return seen

    assert rates(gradfn) == rates(torch)


def test_states_have_the_same_form() -> None:
    def state(library: Any, name: str, options: Any) -> Any:
        p = library.tensor([1.0, 2.0], requires_grad=True)
        optimizer = getattr(library.optim, name)([p], **options)
        (p * p).sum().backward()
        optimizer.step()
        found = optimizer.state_dict()
        return sorted(found["state"].get(0, {})), found["param_groups"][0]

    for name, options in OPTIMIZERS:
        (mine, group), (theirs, expected) = (
            state(library, name, options) for library in (gradfn, torch)
        )
        assert set(mine) == set(theirs) or name == "SGD"
        known = {k: v for k, v in expected.items() if k in group}
        assert known == {k: v for k, v in group.items() if k in known}
        assert set(expected) - set(group) == set()


def test_steps_can_be_differentiated() -> None:
    def meta(library: Any) -> Any:
        p = library.tensor([1.0, 2.0], requires_grad=True)
        q = p.clone()
        q.grad = p * 3
        optimizer = library.optim.SGD([q], lr=0.1, differentiable=True)
        optimizer.step()
        (g,) = library.autograd.grad(q.sum(), p)
        return g.tolist()

    np.testing.assert_allclose(meta(gradfn), meta(torch))


def test_hooks_run_around_steps_and_states() -> None:
    def seen(library: Any) -> list[str]:
        p = library.tensor([1.0], requires_grad=True)
        optimizer = library.optim.SGD([p], lr=0.1)
        out: list[str] = []
        optimizer.register_step_pre_hook(lambda *_: out.append("pre"))
        handle = optimizer.register_step_post_hook(lambda *_: out.append("post"))
        optimizer.register_state_dict_pre_hook(lambda _: out.append("state"))
        optimizer.register_state_dict_post_hook(lambda _, s: {**s, "more": 1})
        optimizer.register_load_state_dict_pre_hook(lambda _, s: out.append("load"))
        optimizer.register_load_state_dict_post_hook(lambda _: out.append("loaded"))
        optimizer.step()
        handle.remove()
        optimizer.step()
        state = optimizer.state_dict()
        out += sorted(state)
        optimizer.load_state_dict(state)
        return out

    assert seen(gradfn) == seen(torch)


def test_a_state_can_be_saved_and_taken_up_again() -> None:
    p = gradfn.tensor([1.0, 2.0], requires_grad=True)
    first = gradfn.optim.Adam([p], lr=0.1)
    (p * p).sum().backward()
    first.step()
    second = gradfn.optim.Adam([p], lr=0.5)
    second.load_state_dict(first.state_dict())
    assert second.param_groups[0]["lr"] == 0.1
    assert second.state[p]["step"].item() == 1.0
