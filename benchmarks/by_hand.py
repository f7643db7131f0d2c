"""The workloads in NumPy, their derivatives worked out and written down by hand.

What this costs is what the arithmetic costs; the rest is what recording costs.
"""

from __future__ import annotations

from typing import Any

import data
import numpy as np
from workloads import Workload


def vector(values: list[float]) -> data.Array:
    return np.array(values, np.float32)


def square() -> Workload:
    x = vector(data.X)

    def step() -> tuple[Any, ...]:
        loss = (x**2).sum()
        return loss, np.ones_like(x) * 2 * x

    return Workload(step)


def ops() -> Workload:
    x, w, b = map(vector, (data.X, data.W, data.B))

    def step() -> tuple[Any, ...]:
        y = np.tanh(x * w + b)
        slope = 1 - y * y
        return y.sum(), slope * w, slope * x, slope

    return Workload(step)


def chain(length: int) -> Workload:
    x, w = vector(data.X), vector(data.FACTORS)

    def step() -> tuple[Any, ...]:
        y = x
        for _ in range(length):
            y = y * w
        gradient = np.ones_like(y)
        for _ in range(length):
            gradient = gradient * w
        return y.sum(), gradient

    return Workload(step)


def leaf(uses: int) -> Workload:
    x = vector(data.X)

    def step() -> tuple[Any, ...]:
        total = x
        for _ in range(uses):
            total = total + x
        ones = np.ones_like(x)
        gradient = ones
        for _ in range(uses):
            gradient = gradient + ones
        return total.sum(), gradient

    return Workload(step)


def net(*sizes: int) -> Workload:
    x, target, *parameters = data.network(*sizes)
    w1, b1, w2, b2 = parameters

    def step() -> tuple[Any, ...]:
        before = x @ w1 + b1
        hidden = before.clip(min=0)
        difference = hidden @ w2 + b2 - target
        loss = (difference**2).mean()

        slope = difference * (2 / difference.size)
        inner = slope @ w2.T
        inner *= before > 0
        gradients = x.T @ inner, inner.sum(0), hidden.T @ slope, slope.sum(0)
        for parameter, gradient in zip(parameters, gradients):
            parameter -= data.RATE * gradient
        return loss, *gradients, *parameters

    return Workload(step)


def elementwise(n: int) -> Workload:
    x, w, t = (data.normal(seed, n) for seed in (1, 2, 3))

    def step() -> tuple[Any, ...]:
        y = x * w
        y -= t
        np.tanh(y, out=y)
        squared = y * y
        loss = squared.mean() * np.float32(0.5)
        slope = np.subtract(1, squared, out=squared)
        slope *= y
        slope /= n
        return loss, slope * w, slope * x

    return Workload(step)


def jacobian(how: str, width: int) -> Workload:
    del how  # by hand there is but one way
    w = data.normal(1, width, width, scale=width**-0.5)
    x = data.normal(2, width)

    def step() -> tuple[Any, ...]:
        y = np.tanh(w @ x)
        return ((1 - y * y)[:, None] * w,)

    return Workload(step)


def hvp(*sizes: int) -> Workload:
    x, target, w1, b1, w2, b2 = data.network(*sizes)
    v1, c1, v2, c2 = data.network(*sizes)[2:]

    def step() -> tuple[Any, ...]:
        hidden = np.tanh(x @ w1 + b1)
        bend = 1 - hidden * hidden
        moved = bend * (x @ v1 + c1)
        slope = (hidden @ w2 + b2 - target) * (2 / target.size)
        turned = (moved @ w2 + hidden @ v2 + c2) * (2 / target.size)
        back = slope @ w2.T
        inner = (turned @ w2.T + slope @ v2.T) * bend - 2 * back * hidden * moved
        outer = moved.T @ slope + hidden.T @ turned
        return x.T @ inner, inner.sum(0), outer, turned.sum(0)

    return Workload(step)


def samples(*sizes: int) -> Workload:
    x, target, w1, b1, w2, b2 = data.network(*sizes)

    def step() -> tuple[Any, ...]:
        before = x @ w1 + b1
        hidden = before.clip(min=0)
        slope = (hidden @ w2 + b2 - target) * (2 / target.shape[1])
        inner = (slope @ w2.T) * (before > 0)
        first = x[:, :, None] * inner[:, None, :]
        return first, inner, hidden[:, :, None] * slope[:, None, :], slope

    return Workload(step)
