"""L-BFGS (Nocedal, 1980), with or without a line search."""

from __future__ import annotations

from typing import Any

from gradfn.autograd.grad_mode import enable_grad, no_grad
from gradfn.ops.world import PUBLIC
from gradfn.optim.line_search import _cubic_interpolate as _cubic_interpolate
from gradfn.optim.line_search import _strong_wolfe
from gradfn.optim.optimizer import Optimizer
from gradfn.tensor import Tensor


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last gradients; `step` needs a closure.

    With `line_search_fn="strong_wolfe"` the length of each step meets Wolfe's conditions.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if lr < 0:
            raise ValueError(f"Invalid learning rate: {lr}")
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
        self._params = self.param_groups[0]["params"]

    def step(self, closure: Any = None) -> Any:
        """Up to max_iter steps; returns the loss at the beginning."""
        if self.param_groups[0]["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with no_grad():
            with enable_grad():
                first = closure()
            state["func_evals"] += 1
            grad = self._flat_grad()
            if float(grad.abs().max()) > self.param_groups[0]["tolerance_grad"]:
                self._iterate(closure, state, float(first), grad)
        self._call_step_hooks((closure,))
        return first

    def _iterate(self, closure: Any, state: Any, loss: float, grad: Tensor) -> None:
        group = self.param_groups[0]
        evaluations = 1
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            way = _direction(state, grad, group["history_size"])
            state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
            lr = float(group["lr"])
            begin = state["n_iter"] == 1
            t = min(1.0, 1.0 / float(grad.abs().sum())) * lr if begin else lr
            slope = float(grad.dot(way))
            state["d"], state["t"] = way, t
            if slope > -group["tolerance_change"]:
                return
            before = loss
            last = n == group["max_iter"]
            loss, grad, t, used = self._go(closure, way, t, loss, grad, slope, last)
            state["t"] = t
            evaluations += used
            state["func_evals"] += used
            if (
                last
                or evaluations >= group["max_eval"]
                or float(grad.abs().max()) <= group["tolerance_grad"]
                or float((way * t).abs().max()) <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):
                return

    def _go(
        self,
        closure: Any,
        way: Tensor,
        t: float,
        loss: float,
        grad: Tensor,
        slope: float,
        last: bool,
    ) -> Any:
        """Moves along a way: (loss, gradient, how far, evaluations)."""
        if self.param_groups[0]["line_search_fn"] is None:
            self._add(t, way)
            if last:  # nobody will ask for the loss again
                return loss, grad, t, 0
            return *self._evaluate(closure), t, 1
        here = [p.clone() for p in self._params]

        def at(x: Any, t: float, d: Tensor) -> Any:
            self._add(t, d)
            found = self._evaluate(closure)
            for p, old in zip(self._params, x, strict=True):
                p.copy_(old)
            return found

        loss, grad, t, used = _strong_wolfe(at, here, t, way, loss, grad, slope)
        self._add(t, way)
        return loss, grad, t, used

    def _evaluate(self, closure: Any) -> Any:
        with enable_grad():
            loss = float(closure())
        return loss, self._flat_grad()

    def _flat_grad(self) -> Any:
        parts = [
            p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1)
            for p in self._params
        ]
        return PUBLIC["cat"](parts)

    def _add(self, t: float, way: Tensor) -> None:
        start = 0
        for p in self._params:
            n = p.numel()
            p.add_(way[start : start + n].view_as(p), alpha=t)
            start += n


def _direction(state: Any, grad: Tensor, most: int) -> Any:
    """Minus the inverse Hessian times the gradient, by the two-loop recursion."""
    if state["n_iter"] == 1:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return grad.neg()
    turns, moves, rhos = state["old_dirs"], state["old_stps"], state["ro"]
    turn, move = grad.sub(state["prev_flat_grad"]), state["d"].mul(state["t"])
    curvature = float(turn.dot(move))
    if curvature > 1e-10:
        for kept, new in ((turns, turn), (moves, move), (rhos, 1.0 / curvature)):
            if len(kept) == most:
                kept.pop(0)
            kept.append(new)
        state["H_diag"] = curvature / float(turn.dot(turn))
    q = grad.neg()
    alphas = [0.0] * len(turns)
    for i in reversed(range(len(turns))):
        alphas[i] = float(moves[i].dot(q)) * rhos[i]
        q.add_(turns[i], alpha=-alphas[i])
    q.mul_(state["H_diag"])
    for i in range(len(turns)):
        q.add_(moves[i], alpha=alphas[i] - float(turns[i].dot(q)) * rhos[i])
    return q
