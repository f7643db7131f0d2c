"""custom_vjp and custom_jvp: plain functions with derivatives of one's own."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import gradfn as torch
from gradfn._pytree import tree_leaves
from gradfn.autograd import gradcheck, gradgradcheck
from gradfn.func import (
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    vjp,
    vmap,
)


def vector(*values: float, **options: Any) -> Any:
    return torch.tensor(values, dtype=torch.float64, **options)


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-12, 1e-12)


def plain(x: Any, y: Any) -> Any:
    return x.sin() * y


def by_vjp() -> Any:
    """sin(x) y; its residuals are computed by fwd."""
    f = custom_vjp(plain)

    def fwd(x: Any, y: Any) -> Any:
        return f(x, y), (x.cos(), x.sin(), y)

    def bwd(residuals: Any, g: Any) -> Any:
        cos_x, sin_x, y = residuals
        return cos_x * g * y, sin_x * g

    f.defvjp(fwd, bwd)
    return f


def by_jvp() -> Any:
    f = custom_jvp(plain)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), x.cos() * dx * y + x.sin() * dy

    return f


def by_jvps() -> Any:
    f = custom_jvp(plain)
    f.defjvps(
        lambda dx, result, x, y: x.cos() * dx * y, lambda dy, result, x, y: x.sin() * dy
    )
    return f


KINDS = pytest.mark.parametrize("make", [by_vjp, by_jvp, by_jvps])
X, Y = (0.3, 0.7, -1.1), (2.0, 3.0, 0.5)

COMPOSITIONS = {
    "grad": lambda f: grad(lambda x, y: f(x, y).sum(), argnums=(0, 1)),
    "vjp": lambda f: lambda x, y: vjp(f, x, y)[1](x),
    "jvp": lambda f: lambda x, y: jvp(f, (x, y), (y, x)),
    "jacrev": lambda f: jacrev(f, argnums=(0, 1)),
    "jacfwd": lambda f: jacfwd(f, argnums=(0, 1)),
    "hessian": lambda f: hessian(lambda x, y: f(x, y).sum(), argnums=(0, 1)),
    "reverse over reverse": lambda f: jacrev(jacrev(f)),
    "reverse over forward": lambda f: jacrev(jacfwd(f)),
    "forward over forward": lambda f: jacfwd(jacfwd(f)),
    "vmap": vmap,
    "vmap of grad": lambda f: vmap(grad(f, argnums=(0, 1))),
    "vmap of grad of grad": lambda f: vmap(grad(grad(f))),
    "vmap of jvp": lambda f: vmap(lambda x, y: jvp(f, (x, y), (y, x))),
    "grad of vmap": lambda f: grad(lambda x, y: vmap(f)(x, y).sum()),
    "shared argument": lambda f: (
        lambda x, y: vmap(grad(f, 1), in_dims=(0, None))(x, y[0])
    ),
    "third": lambda f: vmap(grad(grad(grad(f)))),
}


@KINDS
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_under_transforms_it_is_as_the_plain_function(make: Any, name: str) -> None:
    x, y = vector(*X), vector(*Y)
    got = tree_leaves(COMPOSITIONS[name](make())(x, y))
    expected = tree_leaves(COMPOSITIONS[name](plain)(x, y))
    for a, b in zip(got, expected, strict=True):
        close(a, b)


@KINDS
def test_derivatives_of_both_orders_and_modes(make: Any) -> None:
    inputs = (vector(*X, requires_grad=True), vector(*Y, requires_grad=True))
    assert gradcheck(make(), inputs, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(make(), inputs, check_fwd_over_rev=True)


@KINDS
def test_a_scaled_rule_is_what_counts(make: Any) -> None:
    f = make()
    if make is by_vjp:
        bwd = f.bwd
        f.defvjp(f.fwd, lambda r, g: tuple(10 * t for t in bwd(r, g)))
    else:
        rule = f.rule
        f.defjvp(lambda p, t: (rule(p, t)[0], 10 * rule(p, t)[1]))
    x, y = vector(*X), vector(*Y)
    expected = 10 * grad(lambda x: plain(x, y).sum())(x)
    close(grad(lambda x: f(x, y).sum())(x), expected)
    close(jvp(lambda x: f(x, y), (x,), (x,))[1], expected * x)


# -- what is called, and with what -----------------------------------------------------------


def test_without_derivatives_the_function_alone_is_called() -> None:
    calls = []
    f = custom_vjp(lambda x: calls.append("f") or x * 2)
    f.defvjp(lambda x: calls.append("fwd") or (x * 2, None), lambda r, g: (g * 2,))
    f(vector(1.0))
    vmap(f)(vector(1.0))
    with torch.no_grad():
        f(vector(1.0, requires_grad=True))
    assert calls == ["f", "f", "f"]
    f(vector(1.0, requires_grad=True))
    assert calls == ["f", "f", "f", "fwd"]


def test_containers_in_and_out() -> None:
    @custom_vjp
    def f(parameters: Any, x: Any) -> Any:
        return {"y": parameters["w"] * x + parameters["b"][0], "x": x * 2}

    f.defvjp(
        lambda p, x: (f(p, x), (p, x)),
        lambda r, g: (
            {"w": g["y"] * r[1], "b": [g["y"]]},
            g["y"] * r[0]["w"] + 2 * g["x"],
        ),
    )
    parameters = {"w": vector(2.0), "b": [vector(3.0)]}
    slopes = grad(lambda p, x: f(p, x)["y"].sum(), argnums=(0, 1))
    of_p, of_x = slopes(parameters, vector(5.0))
    assert of_p["w"].item() == 5
    assert of_p["b"][0].item() == 1
    assert of_x.item() == 2


def test_arguments_that_are_not_to_be_derived_by() -> None:
    seen = []

    @custom_vjp(nondiff_argnums=(0, 2))
    def f(power: Any, x: Any, scale: Any = 1.0) -> Any:
        return scale * x**power

    def bwd(power: Any, scale: Any, x: Any, g: Any) -> Any:
        seen.append((power, scale))
        return (scale * power * x ** (power - 1) * g,)

    f.defvjp(lambda power, x, scale: (scale * x**power, x), bwd)
    x = vector(2.0, requires_grad=True)
    f(3, x=x, scale=10.0).backward()
    assert x.grad.item() == 120
    assert seen == [(3, 10.0)]

    @custom_jvp(nondiff_argnums=0)
    def h(power: Any, x: Any) -> Any:
        return x**power

    h.defjvp(lambda n, p, t: (p[0] ** n, n * p[0] ** (n - 1) * t[0]))
    assert grad(lambda x: h(3, x).sum())(vector(2.0)).item() == 12


def test_none_is_a_gradient_of_zero() -> None:
    f = custom_vjp(plain)
    f.defvjp(lambda x, y: (plain(x, y), None), lambda r, g: (None, g))
    of_x, of_y = grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))(
        vector(1.0), vector(2.0)
    )
    assert (of_x.item(), of_y.item()) == (0, 1)


def test_integers_have_no_gradient() -> None:
    f = custom_vjp(lambda x, i: x[i])
    f.defvjp(lambda x, i: (x[i], None), lambda r, g: (g.expand(3), g))
    x = vector(1.0, 2.0, 3.0, requires_grad=True)
    f(x, torch.tensor(1)).backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_a_method_can_be_decorated() -> None:
    class Scale:
        factor = 3.0

        @custom_vjp
        def times(self, x: Any) -> Any:
            return x * self.factor

        times.defvjp(
            lambda self, x: (x * self.factor, self.factor), lambda r, g: (None, g * r)
        )

    x = vector(1.0, requires_grad=True)
    Scale().times(x).backward()
    assert x.grad.item() == 3


def test_the_graph_and_the_docs_know_its_name() -> None:
    @custom_vjp
    def softclip(x: Any) -> Any:
        """Clips softly."""
        return x.tanh()

    softclip.defvjp(lambda x: (x.tanh(), x), lambda x, g: (g,))
    assert softclip.__doc__ == "Clips softly."
    assert "softclipBackward" in str(softclip(vector(1.0, requires_grad=True)))


def test_residuals_die_with_the_graph() -> None:
    f = by_vjp()
    made = []
    fwd = f.fwd

    def watched(x: Any, y: Any) -> Any:
        out, residuals = fwd(x, y)
        made.append(weakref.ref(residuals[0]))
        return out, residuals

    f.defvjp(watched, f.bwd)
    gc.disable()
    try:
        y = f(vector(1.0, requires_grad=True), vector(2.0))
        assert made[0]() is not None
        del y
        assert made[0]() is None
    finally:
        gc.enable()


def test_fwd_is_called_once_where_it_hands_over_arguments_alone() -> None:
    calls = []

    def fwd(x: Any) -> Any:
        calls.append(1)
        return x**3, x

    f = custom_vjp(lambda x: x**3)
    f.defvjp(fwd, lambda x, g: (3 * x**2 * g,))
    x = vector(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(f(x), x, create_graph=True)
    first.backward()
    assert x.grad.item() == 12
    assert calls == [1]


# -- what is refused -------------------------------------------------------------------------


def test_a_rule_must_be_given() -> None:
    with pytest.raises(
        AttributeError, match="No VJP defined for custom_vjp function plain"
    ):
        custom_vjp(plain)(vector(1.0), vector(2.0))
    with pytest.raises(
        AttributeError, match="No JVP defined for custom_jvp function plain"
    ):
        custom_jvp(plain)(vector(1.0), vector(2.0))


@pytest.mark.parametrize(
    ("fwd", "bwd", "error", "message"),
    [
        (lambda x: x, None, TypeError, "fwd of f must return a pair, got Tensor"),
        (lambda x: (x, x), lambda r, g: g, TypeError, "bwd of f must return a tuple"),
        (lambda x: (x, x), lambda r, g: (g, g), TypeError, "a tuple of 2"),
        (lambda x: (x, x), lambda r, g: ([g],), TypeError, "the structure"),
        (lambda x: (x, x), lambda r, g: (g[:1],), RuntimeError, r"shape \[1\] for an"),
    ],
)
def test_a_backward_rule_of_the_wrong_form(
    fwd: Any, bwd: Any, error: Any, message: str
) -> None:
    @custom_vjp
    def f(x: Any) -> Any:
        return x

    f.defvjp(fwd, bwd)
    with pytest.raises(error, match=message):
        f(vector(1.0, 2.0, requires_grad=True)).sum().backward()


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        (lambda p, t: p[0], TypeError, "rule of f must return a pair"),
        (lambda p, t: (p[0], t), TypeError, "they must be alike"),
        (lambda p, t: (p[0], t[0][:1]), RuntimeError, r"tangent of shape \[1\]"),
    ],
)
def test_a_forward_rule_of_the_wrong_form(rule: Any, error: Any, message: str) -> None:
    @custom_jvp
    def f(x: Any) -> Any:
        return x * 1

    f.defjvp(rule)
    x = vector(1.0, 2.0)
    with pytest.raises(error, match=message):
        jvp(f, (x,), (x,))
    with pytest.raises(error, match=message):
        grad(lambda x: f(x).sum())(x)


def test_rules_for_each_argument_want_them_all() -> None:
    f = custom_jvp(plain, nondiff_argnums=(0,))
    with pytest.raises(TypeError, match="Can't use ``defjvps``"):
        f.defjvps(None)


def test_arguments_by_keyword_alone() -> None:
    @custom_vjp
    def f(x: Any, *, n: Any) -> Any:
        return x * n

    f.defvjp(lambda x: (x, None), lambda r, g: (g,))
    with pytest.raises(TypeError, match="by keyword alone"):
        f(vector(1.0), n=2)
