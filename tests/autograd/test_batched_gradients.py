"""autograd.grad(is_grads_batched=True): one pass for a batch of gradients."""

from __future__ import annotations

from typing import Any

import pytest
from support import leaf

import gradfn as torch
from gradfn.autograd import Function, grad


def test_the_pass_runs_once_for_all_gradients() -> None:
    shapes = []

    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            shapes.append(g.shape)
            return g * 2

    x = leaf(1, 2)
    (rows,) = grad(Double.apply(x), x, torch.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[2, 0], [0, 2]]
    assert shapes == [(2,)]


def test_an_input_that_is_not_reached_has_no_batch() -> None:
    x, y = leaf(1, 2), leaf(3)
    seeds = torch.eye(2)

    def call(**options: Any) -> Any:
        return grad(x * x, [y, x], seeds, is_grads_batched=True, **options)

    none, rows = call(allow_unused=True)
    assert none is None
    assert rows.tolist() == [[2, 0], [0, 4]]
    assert call(materialize_grads=True)[0].tolist() == [0]
    with pytest.raises(RuntimeError, match="index 0 appears to not have been used"):
        call()


def test_second_derivatives_of_a_batch() -> None:
    x = leaf(1, 2)
    (rows,) = grad(x**3, x, torch.eye(2), is_grads_batched=True, create_graph=True)
    (second,) = grad(rows.sum(), x)
    assert second.tolist() == [6, 12]


def test_gradients_of_another_shape_are_refused() -> None:
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match=r"If `is_grads_batched=True`, we interpret"):
        grad(x * x, x, torch.ones(2, 3), is_grads_batched=True)
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        grad(x * x, x, None, is_grads_batched=True)


def test_a_backward_that_needs_the_values_is_refused() -> None:
    class ByNumPy(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.from_numpy(g.numpy() * 2)

    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="vmap: the values of a batched tensor"):
        grad(ByNumPy.apply(x), x, torch.eye(2), is_grads_batched=True)
