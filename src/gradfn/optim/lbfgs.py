"""L-BFGS (Nocedal, 1980), with or without a line search."""

from __future__ import annotations

from typing import Any

from gradfn.autograd.grad_mode import enable_grad, no_grad
from gradfn.ops.world import PUBLIC
from gradfn.optim.optimizer import Optimizer
from gradfn.tensor import Tensor


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last gradients; `step` needs a closure.

    `line_search_fn="strong_wolfe"` halves and doubles the step until Armijo's condition
    and a decrease of the slope hold.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        settings = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, settings)
        if len(self.param_groups) != 1:
            raise ValueError(
                "LBFGS doesn't support per-parameter options (parameter groups)"
            )
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")

    def step(self, closure: Any = None) -> Any:
        """Up to max_iter steps; returns the loss at the beginning."""
        group = self.param_groups[0]
        params = group["params"]
        state = self.state[params[0]]
        state.setdefault("pairs", [])
        with no_grad():
            first = loss = _evaluate(closure)
            grad = _flat(params)
            evaluations = 1
            for _ in range(group["max_iter"]):
                if float(grad.abs().max()) <= group["tolerance_grad"]:
                    break
                way = _direction(grad, state["pairs"])
                slope = float(grad.dot(way))
                if slope > -group["tolerance_change"]:
                    break
                begin = not state["pairs"] and not state.get("moved")
                rate = (
                    min(1.0, 1.0 / float(grad.abs().sum())) * group["lr"]
                    if begin
                    else group["lr"]
                )
                state["moved"] = True
                before = [p.clone() for p in params]
                rate, new_loss, used = self._move(
                    closure, before, way, rate, float(loss), slope
                )
                evaluations += used
                new_grad = _flat(params)
                _remember(
                    state["pairs"], way * rate, new_grad - grad, group["history_size"]
                )
                change = abs(float(new_loss) - float(loss))
                loss, grad = new_loss, new_grad
                small = float((way * rate).abs().max()) <= group["tolerance_change"]
                if (
                    evaluations >= group["max_eval"]
                    or small
                    or change < group["tolerance_change"]
                ):
                    break
        return first

    def _move(
        self,
        closure: Any,
        before: Any,
        way: Tensor,
        rate: float,
        loss: float,
        slope: float,
    ) -> Any:
        params = self.param_groups[0]["params"]
        searching = self.param_groups[0]["line_search_fn"] is not None
        for tries in range(1, 26):
            _set(params, before, way, rate)
            new_loss = _evaluate(closure)
            enough = float(new_loss) <= loss + 1e-4 * rate * slope
            if not searching or (
                enough and abs(float(_flat(params).dot(way))) <= 0.9 * abs(slope)
            ):
                return rate, new_loss, tries
            rate = (
                rate * 2 if enough and float(_flat(params).dot(way)) < 0 else rate * 0.5
            )
        return rate, new_loss, tries


def _evaluate(closure: Any) -> Any:
    with enable_grad():
        return closure().detach()


def _flat(params: Any) -> Any:
    parts = [
        PUBLIC["zeros"](p.numel(), dtype=p.dtype)
        if p.grad is None
        else p.grad.reshape(-1)
        for p in params
    ]
    return PUBLIC["cat"](parts)


def _set(params: Any, before: Any, way: Tensor, rate: float) -> None:
    start = 0
    for p, old in zip(params, before, strict=True):
        n = p.numel()
        p.copy_(old + way[start : start + n].view_as(p) * rate)
        start += n


def _remember(pairs: Any, move: Tensor, turn: Tensor, most: int) -> None:
    curvature = float(move.dot(turn))
    if curvature > 1e-10:
        pairs.append((move, turn, 1.0 / curvature))
        del pairs[:-most]


def _direction(grad: Tensor, pairs: Any) -> Any:
    """Minus the inverse Hessian times the gradient, by the two-loop recursion."""
    q = -grad
    alphas = []
    for move, turn, rho in reversed(pairs):
        alpha = float(move.dot(q)) * rho
        alphas.append(alpha)
        q = q - turn * alpha
    if pairs:
        move, turn, _ = pairs[-1]
        q = q * (float(move.dot(turn)) / float(turn.dot(turn)))
    for (move, turn, rho), alpha in zip(pairs, reversed(alphas), strict=True):
        q = q + move * (alpha - float(turn.dot(q)) * rho)
    return q
