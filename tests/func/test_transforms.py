"""Derivatives of functions: what is found through layers, writes and closures."""

from __future__ import annotations

from typing import Any

import pytest

import gradfn as torch
from gradfn.autograd import forward_ad
from gradfn.func import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)
from gradfn.utils._pytree import register_pytree_node

X = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
Y = torch.tensor([3.0, -1.0, 0.25], dtype=torch.float64)
slope = grad(lambda x: x.sin())


def close(a: Any, b: Any) -> bool:
    """Equal up to rounding, with dtype and shape."""
    return a.dtype is b.dtype and a.shape == b.shape and bool(torch.allclose(a, b))


# -- derivatives of what runs on samples -----------------------------------------------------


def test_the_derivative_of_vmap_of_a_derivative() -> None:
    assert close(grad(lambda x: vmap(slope)(x).sum())(X), -X.sin())
    assert close(jvp(vmap(slope), (X,), (Y,))[1], -X.sin() * Y)
    assert close(jacrev(vmap(slope))(X), torch.diag(-X.sin()))
    assert close(vjp(vmap(slope), X)[1](Y)[0], -X.sin() * Y)


def test_the_same_by_autograd() -> None:
    x = X.clone().requires_grad_()
    (got,) = torch.autograd.grad(vmap(slope)(x).sum(), x)
    assert close(got, -X.sin())


def test_the_derivative_by_what_a_derivative_takes_as_constant() -> None:
    by_x = vmap(grad(lambda x, w: x * x * w))
    assert close(grad(lambda w: by_x(X, w).sum())(Y), 2 * X)


def test_forward_mode_of_a_formula_by_another_argument() -> None:
    def by_y(x: Any) -> Any:
        return grad(lambda y: (x.clone().mul_(y)).sum())(Y)

    assert close(jvp(by_y, (X,), (Y,))[1], Y)


def test_what_nobody_outside_can_derive_has_no_history() -> None:
    value, out = grad_and_value(lambda x: (x * x).sum())(X)
    assert not value.requires_grad
    assert not out.requires_grad


@pytest.mark.parametrize("transform", [jacrev, jacfwd, hessian])
def test_of_a_number_by_a_number(transform: Any) -> None:
    x = torch.tensor(2.0)
    got = transform(lambda x: x**3)(x)
    assert got.shape == ()
    assert float(got) == 12.0


def test_chunks_of_one_row_may_do_what_vmap_does_not() -> None:
    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * (2.0 if g.numpy().any() else 0.0)

    assert close(
        jacrev(Asks.apply, chunk_size=1)(X), 2 * torch.eye(3, dtype=torch.float64)
    )


def test_linearize_serves_many_directions() -> None:
    out, push = linearize(lambda x: x.sin() * x, X)
    assert close(out, X.sin() * X)
    for way in (Y, X):
        assert close(push(way), (X.cos() * X + X.sin()) * way)


# -- numbers, detached values, containers -----------------------------------------------------


def test_numbers_are_as_exact_as_what_they_stand_beside() -> None:
    got = jvp(vmap(lambda x: x * 0.1), (X,), (Y,))[1]
    assert close(got, 0.1 * Y)
    assert close(vmap(grad(lambda x: 0.1 * x * x))(X), 0.1 * X + 0.1 * X)
    assert float((got - 0.1 * Y).abs().max()) < 1e-15


def test_samples_that_are_numbers_take_part_as_numbers() -> None:
    single, double = torch.ones(3, 2), torch.ones(3, dtype=torch.float64)
    assert vmap(torch.mul)(single, double).dtype is torch.float32
    assert vmap(torch.add, (0, None))(double, torch.ones(2)).dtype is torch.float32
    assert vmap(torch.add)(double, torch.ones(3)).dtype is torch.float64
    mask = torch.tensor([True, False, True])
    chosen = vmap(torch.where)(mask, double, torch.ones(3))
    assert chosen.dtype is torch.float64


def test_detach_holds_for_all_transforms() -> None:
    def f(x: Any) -> Any:
        return x * x.detach()

    assert close(grad(lambda x: vmap(f)(x).sum())(X), X)
    assert close(jvp(vmap(f), (X,), (Y,))[1], X * Y)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, Y).clone()
        dual.detach_()
        assert forward_ad.unpack_dual(dual).tangent is None


def test_integers_have_no_history() -> None:
    x = X.clone().requires_grad_()
    for cast in (x.long, x.int, x.bool, lambda: x.to(torch.int16)):
        assert not cast().requires_grad
    assert close(grad(lambda x: x.long().sum() + x.sum() * 0)(X), torch.zeros_like(X))


def test_containers_of_the_users_own() -> None:
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    register_pytree_node(
        Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts)
    )
    got = grad(lambda p: (p.a * p.b).sum())(Pair(X, Y))
    assert isinstance(got, Pair)
    assert close(got.a, Y)
    doubled = vmap(lambda p: Pair(p.a * 2, {"b": p.b}))(Pair(X, Y))
    assert close(doubled.a, X * 2)
    with pytest.raises(ValueError, match="already registered"):
        register_pytree_node(Pair, lambda p: ([], None), lambda parts, _: parts)


# -- tangents of what is written ---------------------------------------------------------------


def test_a_copy_has_a_tangent_of_its_own() -> None:
    way = Y.clone()
    out = jvp(lambda x: x.clone().mul_(3.0), (X,), (way,))[1]
    assert close(out, 3 * Y)
    assert close(way, Y)


def test_directions_are_written_into_what_had_one_for_all() -> None:
    def f(x: Any, y: Any) -> Any:
        x[:2] = y
        return x * x

    got = jacfwd(f, argnums=1)(X.clone(), Y[:2].clone())
    assert close(got, torch.diag(2 * Y)[:, :2] * torch.tensor([[1.0], [1.0], [0.0]]))


def test_views_see_the_directions_that_their_base_was_given() -> None:
    def f(x: Any) -> Any:
        base = torch.zeros_like(x)
        view = base[1:]
        base.copy_(x)
        view[0] = x[0] * x[1]
        return base.sum() * view

    assert close(jacfwd(f)(X), jacrev(f)(X))


def test_gradients_through_a_view_that_each_sample_writes() -> None:
    def f(x: Any, y: Any) -> Any:
        out = x.clone()
        out.view(3, 1)[:2].mul_(y[0])
        out[1] = x.sum()
        return out * y

    xs, ys = torch.stack([X, Y]), torch.stack([Y, X])
    got = grad(lambda xs, ys: vmap(f)(xs, ys).sum(), (0, 1))(xs, ys)
    for g, each in zip(
        got,
        zip(*(grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y) for x, y in zip(xs, ys))),
    ):
        assert close(g, torch.stack(list(each)))


def test_gradients_by_some_of_what_stands_behind_a_written_view() -> None:
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    out = torch.zeros_like(x)
    out[:2] = x[1:]
    out.view(3, 1)[2].add_(y[:1])
    (g,) = torch.autograd.grad((out * x).sum(), x, create_graph=True)
    by_x, by_y = torch.autograd.grad(g.sum(), (x, y))
    assert by_x.tolist() == [1.0, 2.0, 1.0]
    assert by_y.tolist() == [1.0, 0.0, 0.0]
