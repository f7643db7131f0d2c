"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from gradfn.ops.world import PUBLIC
from gradfn.optim.optimizer import Optimizer, checked
from gradfn.tensor import Tensor


class ASGD(Optimizer):
    """Gradient descent whose places are averaged (Polyak and Juditsky, 1992)."""

    @checked(lr=0.0, weight_decay=0.0)
    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        **options: Any,
    ) -> None:
        settings = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0}
        super().__init__(params, settings | {"weight_decay": weight_decay}, **options)

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Any) -> None:
        """p -= eta * grad; ax is the average."""
        lr, lambd = float(group["lr"]), group["lambd"]
        if not state:
            tensor = PUBLIC["tensor"]
            state["step"], state["eta"] = tensor(0.0), tensor(lr)
            state["mu"], state["ax"] = tensor(1.0), PUBLIC["zeros_like"](p)
        state["step"] += 1
        step = state["step"].item()
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        eta, mu = state["eta"].item(), state["mu"].item()
        p.mul_(1 - lambd * eta)
        p.add_(grad, alpha=-eta)
        average = state["ax"]
        if mu == 1:
            average.copy_(p)
        else:
            average.add_((p - average) * mu)
        state["eta"] = PUBLIC["tensor"](lr / (1 + lambd * lr * step) ** group["alpha"])
        state["mu"] = PUBLIC["tensor"](1 / max(1, step - group["t0"]))
