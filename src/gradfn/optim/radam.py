"""Adam with a rectified variance."""

from __future__ import annotations

import math
from typing import Any

from gradfn.ops.world import PUBLIC
from gradfn.optim.optimizer import Optimizer, checked
from gradfn.tensor import Tensor


class RAdam(Optimizer):
    """Adam, with plain momentum while the variance is not to be trusted (Liu et al., 2019)."""

    @checked(lr=0.0, eps=0.0, weight_decay=0.0)
    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        **options: Any,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        settings["decoupled_weight_decay"] = decoupled_weight_decay
        super().__init__(params, settings, **options)

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Any) -> None:
        """Adam's step times the rectification, or lr * mean."""
        lr, decay = float(group["lr"]), group["weight_decay"]
        beta1, beta2 = group["betas"]
        if not state:
            state["step"] = PUBLIC["tensor"](0.0)
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = PUBLIC["zeros_like"](p)
        state["step"] += 1
        step = state["step"].item()
        if decay and group["decoupled_weight_decay"]:
            p.mul_(1 - lr * decay)
        elif decay:
            grad = grad.add(p, alpha=decay)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        move = mean / (1 - beta1**step) * lr
        bias2 = 1 - beta2**step
        most = 2 / (1 - beta2) - 1
        rho = most - 2 * step * beta2**step / bias2  # how many gradients count
        if rho > 5:
            above, below = (rho - 4) * (rho - 2) * most, (most - 4) * (most - 2) * rho
            size = square.sqrt().add_(group["eps"])
            move = move * (math.sqrt(bias2) / size) * math.sqrt(above / below)
        p.sub_(move)
