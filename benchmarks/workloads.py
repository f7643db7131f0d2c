"""The workloads, each written once for PyTorch and whatever stands in for it.

A function makes the tensors and returns a step, which is what is timed. The step
returns the values and gradients that are compared between the libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import data


@dataclass(frozen=True)
class Workload:
    """A step; `record` is its part that makes the graph, where that is weighed."""

    step: Callable[[], tuple[Any, ...]]
    record: Callable[[], Any] | None = None


def square(torch: ModuleType) -> Workload:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 2 * x

    x = torch.tensor(data.X, requires_grad=True)

    def step() -> tuple[Any, ...]:
        x.grad = None
        loss = Square.apply(x).sum()
        loss.backward()
        return loss, x.grad

    return Workload(step)


def ops(torch: ModuleType) -> Workload:
    x = torch.tensor(data.X, requires_grad=True)
    w = torch.tensor(data.W, requires_grad=True)
    b = torch.tensor(data.B, requires_grad=True)

    def step() -> tuple[Any, ...]:
        x.grad = w.grad = b.grad = None
        loss = (x * w + b).tanh().sum()
        loss.backward()
        return loss, x.grad, w.grad, b.grad

    return Workload(step)


def chain(torch: ModuleType, length: int) -> Workload:
    x = torch.tensor(data.X, requires_grad=True)
    w = torch.tensor(data.FACTORS)

    def record() -> Any:
        y = x
        for _ in range(length):
            y = y * w
        return y

    def step() -> tuple[Any, ...]:
        x.grad = None
        loss = record().sum()
        loss.backward()
        return loss, x.grad

    return Workload(step, record)


def leaf(torch: ModuleType, uses: int) -> Workload:
    x = torch.tensor(data.X, requires_grad=True)

    def step() -> tuple[Any, ...]:
        x.grad = None
        total = x
        for _ in range(uses):
            total = total + x
        loss = total.sum()
        loss.backward()
        return loss, x.grad

    return Workload(step)


def net(torch: ModuleType, *sizes: int) -> Workload:
    class Rectify(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * (x > 0)

    x, target, *parameters = map(torch.tensor, data.network(*sizes))
    w1, b1, w2, b2 = (parameter.requires_grad_() for parameter in parameters)

    def step() -> tuple[Any, ...]:
        output = Rectify.apply(x @ w1 + b1) @ w2 + b2
        loss = ((output - target) ** 2).mean()
        loss.backward()
        gradients = [parameter.grad for parameter in parameters]
        with torch.no_grad():
            for parameter in parameters:
                parameter -= data.RATE * parameter.grad
                parameter.grad = None
        return loss, *gradients, *parameters

    return Workload(step)


def elementwise(torch: ModuleType, n: int) -> Workload:
    x = torch.tensor(data.normal(1, n), requires_grad=True)
    w = torch.tensor(data.normal(2, n), requires_grad=True)
    t = torch.tensor(data.normal(3, n))

    def step() -> tuple[Any, ...]:
        x.grad = w.grad = None
        loss = (((x * w - t).tanh() ** 2) * 0.5).mean()
        loss.backward()
        return loss, x.grad, w.grad

    return Workload(step)


def jacobian(torch: ModuleType, how: str, width: int) -> Workload:
    """Of a tanh layer: rows at once, columns at once, or one backward pass a row."""
    w = torch.tensor(data.normal(1, width, width, scale=width**-0.5))
    x = torch.tensor(data.normal(2, width), requires_grad=how == "loop")

    def layer(x: Any) -> Any:
        return torch.tanh(w @ x)

    def loop() -> tuple[Any, ...]:
        y = layer(x)
        units = torch.eye(width)
        rows = [torch.autograd.grad(y, x, v, retain_graph=True)[0] for v in units]
        return (torch.stack(rows),)

    def step() -> tuple[Any, ...]:
        return (getattr(torch.func, how)(layer)(x),)

    return Workload(loop if how == "loop" else step)


def hvp(torch: ModuleType, *sizes: int) -> Workload:
    """The Hessian of a network's loss times a vector, forward over reverse."""
    x, target, *parameters = map(torch.tensor, data.network(*sizes))
    ways = tuple(map(torch.tensor, data.network(*sizes)[2:]))

    def loss(w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        output = torch.tanh(x @ w1 + b1) @ w2 + b2
        return ((output - target) ** 2).mean()

    slopes = torch.func.grad(loss, argnums=(0, 1, 2, 3))

    def step() -> tuple[Any, ...]:
        return torch.func.jvp(slopes, tuple(parameters), ways)[1]

    return Workload(step)


def samples(torch: ModuleType, *sizes: int) -> Workload:
    """A network's gradients for each sample on its own."""
    x, target, *parameters = map(torch.tensor, data.network(*sizes))

    def loss(parameters: Any, x: Any, target: Any) -> Any:
        w1, b1, w2, b2 = parameters
        output = torch.relu(x @ w1 + b1) @ w2 + b2
        return ((output - target) ** 2).mean()

    slopes = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))

    def step() -> tuple[Any, ...]:
        return slopes(tuple(parameters), x, target)

    return Workload(step)
