"""Derivatives of derivatives of Functions, and Functions used inside Functions."""

from __future__ import annotations

from typing import Any

import pytest
from support import function, leaf

import gradfn as torch
from gradfn.autograd import Function, grad
from gradfn.autograd.function import once_differentiable


class Cube(Function):
    """x³ from its saved input."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class Exp(Function):
    """exp x from its saved output."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y


def derivatives(f: Any, at: float, n: int) -> list[float]:
    """The first n derivatives of f at a point."""
    x = leaf(at)
    y, found = f(x), []
    for _ in range(n):
        (y,) = grad(y, x, create_graph=True)
        found.append(y.item())
    return found


# -- more than once --------------------------------------------------------------------


def test_a_saved_input_can_be_differentiated_any_number_of_times() -> None:
    assert derivatives(Cube.apply, 2, 3) == [12, 12, 6]


def test_a_saved_output_can_be_differentiated_any_number_of_times() -> None:
    assert derivatives(Exp.apply, 0, 4) == [1, 1, 1, 1]


def test_an_output_kept_as_an_attribute_can_be_differentiated() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.y = x.exp()
        return ctx.y

    made = function(forward, lambda ctx, g: g * ctx.y)
    assert derivatives(made.apply, 0, 3) == [1, 1, 1]


def test_an_output_among_several_can_be_saved_and_differentiated() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y, z = x * x, x.exp()
        ctx.save_for_backward(x, z)
        return y, z

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, z = ctx.saved_tensors
        return 2 * g * x + h * z

    made = function(forward, backward)
    assert derivatives(lambda x: sum(made.apply(x)), 0, 3) == [1, 3, 1]


def test_the_incoming_gradient_is_differentiated_too() -> None:
    x, w = leaf(2), leaf(5)
    (g,) = grad(Cube.apply(x), x, w, create_graph=True)
    assert grad(g, w)[0].item() == 12


def test_the_recorded_backward_has_the_nodes_of_its_ops() -> None:
    x = leaf(2)
    (g,) = grad(Cube.apply(x), x, create_graph=True)
    assert g.grad_fn.name() == "MulBackward0"


def test_without_create_graph_the_gradient_requires_no_grad() -> None:
    x = leaf(2)
    assert not grad(Cube.apply(x), x)[0].requires_grad


def test_backward_with_create_graph_gives_a_grad_with_history() -> None:
    x = leaf(2)
    Cube.apply(x).backward(create_graph=True)
    first, x.grad = x.grad, None
    first.backward()
    assert x.grad.item() == 12


# -- intermediates ---------------------------------------------------------------------


def cube_by_square(save: Any) -> Any:
    """x³ whose backward uses x², which `save(ctx, square)` keeps."""

    def forward(ctx: Any, x: Any) -> Any:
        square = x * x
        save(ctx, square)
        return square * x

    return function(forward, lambda ctx, g: g * 3 * (ctx.kept or ctx.saved_tensors)[0])


def by_save(ctx: Any, square: Any) -> None:
    ctx.kept = None
    ctx.save_for_backward(square)


def by_attribute(ctx: Any, square: Any) -> None:
    ctx.kept = [square]


both_ways = pytest.mark.parametrize("save", [by_save, by_attribute])


@both_ways
def test_an_intermediate_serves_for_a_first_derivative(save: Any) -> None:
    assert derivatives(cube_by_square(save).apply, 2, 1) == [12]


@both_ways
def test_an_intermediate_is_refused_in_a_second_derivative(save: Any) -> None:
    with pytest.raises(RuntimeError, match="Mine uses a value that was computed inside"):
        derivatives(cube_by_square(save).apply, 2, 2)


def test_an_intermediate_that_is_an_output_is_differentiated_twice() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        square = x * x
        ctx.save_for_backward(x, square)
        return square * x, square

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, square = ctx.saved_tensors
        return g * 3 * square + h * 2 * x

    made = function(forward, backward)
    assert derivatives(lambda x: made.apply(x)[0], 2, 2) == [12, 12]


def test_a_constant_computed_in_forward_is_no_intermediate() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, torch.ones(1) * 3)
        return x * x * x

    def backward(ctx: Any, g: Any) -> Any:
        x, three = ctx.saved_tensors
        return g * three * x * x

    assert derivatives(function(forward, backward).apply, 2, 2) == [12, 12]


def test_the_refusal_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="compute it again in backward"):
        derivatives(cube_by_square(by_save).apply, 2, 2)


# -- once_differentiable ---------------------------------------------------------------


class OnceCube(Cube):
    """x³ with one derivative."""

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        ctx.recording = torch.is_grad_enabled()
        return g * 3 * x * x


def test_once_differentiable_gives_the_first_derivative() -> None:
    assert derivatives(OnceCube.apply, 2, 1) == [12]


def test_once_differentiable_refuses_the_second() -> None:
    with pytest.raises(RuntimeError, match="marked with @once_differentiable: OnceCubeB"):
        derivatives(OnceCube.apply, 2, 2)


def test_once_differentiable_does_not_record_backward() -> None:
    x = leaf(2)
    y = OnceCube.apply(x)
    grad(y, x, create_graph=True)
    assert y.grad_fn.recording is False


def test_once_differentiable_does_not_matter_without_create_graph() -> None:
    x = leaf(2)
    assert not grad(OnceCube.apply(x), x)[0].requires_grad


def test_once_differentiable_lets_other_paths_be_differentiated_twice() -> None:
    x, w = leaf(2), leaf(3)
    (g,) = grad(OnceCube.apply(x) * 1 + w * w, w, create_graph=True)
    assert grad(g, w)[0].item() == 2


def test_once_differentiable_keeps_the_name_of_backward() -> None:
    assert OnceCube.backward.__name__ == "backward"


def test_once_differentiable_refuses_with_several_gradients() -> None:
    made = function(
        lambda ctx, a, b: a * b, once_differentiable(lambda ctx, g: (g * 2, None))
    )
    a, b = leaf(1), leaf(1)
    (g,) = grad(made.apply(a, b), a, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        g.backward()


# -- Functions inside Functions --------------------------------------------------------


def test_a_function_in_anothers_forward_is_not_recorded() -> None:
    outer = function(lambda ctx, x: Cube.apply(x), lambda ctx, g: g * 7)
    x = leaf(2)
    y = outer.apply(x)
    y.backward()
    assert (y.grad_fn.name(), x.grad.item()) == ("MineBackward", 7)


def test_a_function_in_anothers_backward_is_recorded_with_create_graph() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x * x / 4

    made = function(forward, lambda ctx, g: g * Cube.apply(ctx.saved_tensors[0]))
    assert derivatives(made.apply, 2, 3) == [8, 12, 12]


def test_a_function_may_use_itself_in_backward() -> None:
    class Sine(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, shift: int) -> Any:
            ctx.save_for_backward(x)
            ctx.shift = shift
            return (x + shift * torch.pi / 2).sin()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * Sine.apply(ctx.saved_tensors[0], ctx.shift + 1), None

    found = derivatives(lambda x: Sine.apply(x, 0), 0, 4)
    assert found == pytest.approx([1, 0, -1, 0], abs=1e-6)


def test_grad_can_be_called_inside_backward() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.exp()

    def backward(ctx: Any, g: Any) -> Any:
        with torch.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            return grad(x.exp(), x, g)

    x = leaf(0)
    function(forward, backward).apply(x).backward()
    assert x.grad.item() == 1


def test_grad_inside_backward_can_be_differentiated_itself() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.exp()

    def backward(ctx: Any, g: Any) -> Any:
        with torch.enable_grad():
            x = ctx.saved_tensors[0].view_as(ctx.saved_tensors[0])
            return grad(x.exp(), x, g, create_graph=torch.is_grad_enabled())

    assert derivatives(function(forward, backward).apply, 0, 2) == [1, 1]


def test_grad_can_be_called_inside_forward() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            (ctx.slope,) = grad((inner * inner).sum(), inner)
        return x * x

    x = leaf(3)
    function(forward, lambda ctx, g: g * ctx.slope).apply(x).backward()
    assert x.grad.item() == 6


def test_backward_inside_backward_may_add_to_another_leaf() -> None:
    other = leaf(5)

    def backward(ctx: Any, g: Any) -> Any:
        with torch.enable_grad():
            (other * 2).backward()
        return g

    x = leaf(1)
    function(lambda ctx, x: x * 1, backward).apply(x).backward()
    assert (x.grad.item(), other.grad.item()) == (1, 2)
