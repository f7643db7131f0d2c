"""The optimizers. Each `update` follows the paper named in its docstring."""

from __future__ import annotations

from typing import Any

from gradfn.ops.world import PUBLIC
from gradfn.optim.optimizer import Optimizer, checked
from gradfn.tensor import Tensor

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RMSprop",
    "Rprop",
]


def zeros(p: Tensor) -> Any:
    """Zeros like a parameter."""
    return PUBLIC["zeros_like"](p)


class SGD(Optimizer):
    """Gradient descent, with momentum (Sutskever et al., 2013) if that is not 0."""

    @checked(lr=0.0, momentum=0.0, weight_decay=0.0)
    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        **options: Any,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        settings = {"lr": lr, "momentum": momentum, "dampening": dampening}
        settings |= {"weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(params, settings, **options)

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Any) -> None:
        """p -= lr * (grad + momentum * what it was)."""
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        if group["momentum"]:
            kept = state.get("momentum_buffer")
            if kept is None:
                kept = state["momentum_buffer"] = grad.clone()
            else:
                kept.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(kept, alpha=group["momentum"]) if group["nesterov"] else kept
        p.add_(grad, alpha=-float(group["lr"]))


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014)."""

    @checked(lr=0.0, eps=0.0, weight_decay=0.0)
    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        decoupled_weight_decay: bool = False,
        **options: Any,
    ) -> None:
        for i, beta in enumerate(betas):
            if not 0 <= beta < 1:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        settings |= {"amsgrad": amsgrad, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, settings, **options)

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Any) -> None:
        """p -= lr * mean / (sqrt(mean square) + eps), both without their bias."""
        lr, (beta1, beta2), decay = (
            float(group["lr"]),
            group["betas"],
            group["weight_decay"],
        )
        if not state:
            state["step"] = PUBLIC["tensor"](0.0)
            state["exp_avg"], state["exp_avg_sq"] = zeros(p), zeros(p)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros(p)
        state["step"] += 1
        step = state["step"].item()
        if decay and group["decoupled_weight_decay"]:
            p.mul_(1 - lr * decay)
        elif decay:
            grad = grad.add(p, alpha=decay)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            top = state["max_exp_avg_sq"]
            square = top.copy_(PUBLIC["maximum"](top, square))
        bias1, bias2 = 1 - beta1**step, 1 - beta2**step
        size = square.sqrt().div_(bias2**0.5).add_(group["eps"])
        p.addcdiv_(mean, size, value=-lr / bias1)


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2017)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        options["decoupled_weight_decay"] = True
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat, 2016)."""

    @checked(lr=0.0, eps=0.0, weight_decay=0.0)
    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        **options: Any,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        settings["momentum_decay"] = momentum_decay
        settings["decoupled_weight_decay"] = decoupled_weight_decay
        super().__init__(params, settings, **options)

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Any) -> None:
        """Adam's step with a look ahead along the mean."""
        lr, (beta1, beta2), decay = (
            float(group["lr"]),
            group["betas"],
            group["weight_decay"],
        )
        if not state:
            state["step"], state["mu_product"] = (
                PUBLIC["tensor"](0.0),
                PUBLIC["tensor"](1.0),
            )
            state["exp_avg"], state["exp_avg_sq"] = zeros(p), zeros(p)
        state["step"] += 1
        step = state["step"].item()
        if decay and group["decoupled_weight_decay"]:
            p.mul_(1 - lr * decay)
        elif decay:
            grad = grad.add(p, alpha=decay)
        psi = group["momentum_decay"]
        mu, ahead = (beta1 * (1 - 0.5 * 0.96 ** (n * psi)) for n in (step, step + 1))
        state["mu_product"] *= mu
        product = state["mu_product"].item()
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        size = (square / (1 - beta2**step)).sqrt_().add_(group["eps"])
        p.addcdiv_(grad, size, value=-lr * (1 - mu) / (1 - product))
        p.addcdiv_(mean, size, value=-lr * ahead / (1 - product * ahead))


class Adamax(Optimizer):
    """Adam with the largest gradient in the place of the mean square."""

    @checked(lr=0.0, eps=0.0, weight_decay=0.0)
    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        **options: Any,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, settings, **options)

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Any) -> None:
        """p -= lr * mean / largest."""
        beta1, beta2 = group["betas"]
        if not state:
            state["step"] = PUBLIC["tensor"](0.0)
            state["exp_avg"], state["exp_inf"] = zeros(p), zeros(p)
        state["step"] += 1
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        mean, top = state["exp_avg"], state["exp_inf"]
        mean.lerp_(grad, 1 - beta1)
        top.copy_(PUBLIC["maximum"](top * beta2, grad.abs().add_(group["eps"])))
        step = state["step"].item()
        p.addcdiv_(mean, top, value=-float(group["lr"]) / (1 - beta1**step))


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011)."""

    @checked(lr=0.0, eps=0.0, weight_decay=0.0, lr_decay=0.0)
    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        **options: Any,
    ) -> None:
        settings = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
        }
        settings |= {"initial_accumulator_value": initial_accumulator_value}
        super().__init__(params, settings, **options)

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Any) -> None:
        """p -= lr * grad / sqrt(sum of squares)."""
        if not state:
            state["step"] = PUBLIC["tensor"](0.0)
            state["sum"] = PUBLIC["full_like"](p, group["initial_accumulator_value"])
        state["step"] += 1
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        rate = float(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
        state["sum"].addcmul_(grad, grad, value=1)
        p.addcdiv_(grad, state["sum"].sqrt().add_(group["eps"]), value=-rate)


class RMSprop(Optimizer):
    """RMSprop (Hinton's lecture 6e)."""

    @checked(lr=0.0, eps=0.0, weight_decay=0.0, momentum=0.0)
    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        **options: Any,
    ) -> None:
        settings = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay}
        settings |= {"momentum": momentum, "centered": centered}
        super().__init__(params, settings, **options)

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Any) -> None:
        """p -= lr * grad / sqrt(mean square)."""
        alpha = group["alpha"]
        if not state:
            state["step"], state["square_avg"] = PUBLIC["tensor"](0.0), zeros(p)
        state["step"] += 1
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        square = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state.setdefault("grad_avg", zeros(p)).lerp_(grad, 1 - alpha)
            size = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            size = square.sqrt()
        size.add_(group["eps"])
        lr = float(group["lr"])
        if group["momentum"]:
            kept = state.setdefault("momentum_buffer", zeros(p))
            kept.mul_(group["momentum"]).addcdiv_(grad, size)
            p.add_(kept, alpha=-lr)
        else:
            p.addcdiv_(grad, size, value=-lr)


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012)."""

    @checked(lr=0.0, eps=0.0, weight_decay=0.0)
    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        **options: Any,
    ) -> None:
        settings = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, settings, **options)

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Any) -> None:
        """p -= lr * grad * rms(updates) / rms(gradients)."""
        rho, eps = group["rho"], group["eps"]
        if not state:
            state["step"] = PUBLIC["tensor"](0.0)
            state["square_avg"], state["acc_delta"] = zeros(p), zeros(p)
        state["step"] += 1
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        square, delta = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        move = delta.add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(grad)
        delta.mul_(rho).addcmul_(move, move, value=1 - rho)
        p.add_(move, alpha=-float(group["lr"]))


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993)."""

    @checked(lr=0.0)
    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        **options: Any,
    ) -> None:
        settings = {"lr": lr, "etas": etas, "step_sizes": step_sizes}
        super().__init__(params, settings, **options)

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Any) -> None:
        """A step for each element, that grows while the sign stays and shrinks when not."""
        if not state:
            state["step"], state["prev"] = PUBLIC["tensor"](0.0), zeros(p)
            state["step_size"] = PUBLIC["full_like"](p, float(group["lr"]))
        state["step"] += 1
        down, up = group["etas"]
        turned = grad * state["prev"]
        factor = (
            PUBLIC["ones_like"](p)
            .masked_fill_(turned > 0, up)
            .masked_fill_(turned < 0, down)
        )
        size = state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        grad = grad.masked_fill(turned < 0, 0.0)
        p.addcmul_(grad.sign(), size, value=-1)
        state["prev"].copy_(grad)
