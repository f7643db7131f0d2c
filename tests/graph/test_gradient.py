"""Gradients as they travel: whose memory is whose, and how they are made to fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import function, leaf

import gradfn as torch
from gradfn.graph.gradient import summed_dims


def remembering(made: list[int]) -> Any:
    """2x, whose backward notes where the gradient that it returns stands in memory."""

    def backward(ctx: Any, g: Any) -> Any:
        out = g * 2
        made.append(out.data_ptr())
        return out

    return function(lambda ctx, x: x * 2, backward).apply


# -- .grad -----------------------------------------------------------------------------


def test_grad_takes_over_a_sole_gradient() -> None:
    made: list[int] = []
    x = leaf(1, 2)
    remembering(made)(x).sum().backward()
    assert x.grad.data_ptr() == made[0]


def test_grad_takes_over_a_gradient_in_a_branched_graph() -> None:
    made: list[int] = []
    x, w = leaf(1, 2), leaf(1, 2)
    (remembering(made)(x) * w).sum().backward()
    assert x.grad.data_ptr() == made[0]


def test_autograd_grad_hands_over_a_sole_gradient() -> None:
    made: list[int] = []
    x = leaf(1, 2)
    (g,) = torch.autograd.grad(remembering(made)(x).sum(), x)
    assert g.data_ptr() == made[0]


def test_a_gradient_that_backward_keeps_is_copied() -> None:
    kept = []

    def backward(ctx: Any, g: Any) -> Any:
        kept.append(g * 2)
        return kept[0]

    x = leaf(1, 2)
    function(lambda ctx, x: x * 2, backward).apply(x).sum().backward()
    x.grad.zero_()
    assert kept[0].tolist() == [2, 2]


def test_a_constant_gradient_is_not_written_by_accumulation() -> None:
    ones = torch.ones(2)
    made = function(lambda ctx, x: x * 1, lambda ctx, g: ones)
    x = leaf(1, 2)
    for _ in range(3):
        made.apply(x).sum().backward()
    assert (x.grad.tolist(), ones.tolist()) == ([3, 3], [1, 1])


def test_siblings_do_not_share_their_gradients() -> None:
    a, b = leaf(1, 2), leaf(1, 2)
    (a + b).sum().backward()
    a.grad.zero_()
    assert b.grad.tolist() == [1, 1]


def test_siblings_of_a_function_do_not_share_their_gradients() -> None:
    a, b = leaf(1, 2), leaf(1, 2)
    function(lambda ctx, a, b: a + b, lambda ctx, g: (g, g)).apply(a, b).sum().backward()
    a.grad.zero_()
    assert b.grad.tolist() == [1, 1]


def test_grads_of_one_call_do_not_share_memory() -> None:
    a, b = leaf(1, 2), leaf(1, 2)
    ga, gb = torch.autograd.grad((a + b).sum(), [a, b])
    ga.zero_()
    assert gb.tolist() == [1, 1]


def test_a_gradient_that_is_a_view_is_copied() -> None:
    whole = torch.ones(2, 2)
    made = function(lambda ctx, x: x * 1, lambda ctx, g: whole[0])
    x = leaf(1, 2)
    made.apply(x).sum().backward()
    x.grad.zero_()
    assert whole.tolist() == [[1, 1], [1, 1]]


def test_a_broadcast_gradient_becomes_an_ordinary_array() -> None:
    x = leaf(1, 2)
    x.sum().backward()
    assert x.grad.stride() == (1,)
    x.grad[0] = 5
    assert x.grad.tolist() == [5, 1]


def test_accumulation_keeps_the_same_grad_object() -> None:
    x = leaf(1, 2)
    x.sum().backward()
    first = x.grad
    x.sum().backward()
    assert (x.grad is first, first.tolist()) == (True, [2, 2])


def test_accumulation_is_a_write_that_is_counted() -> None:
    x = leaf(1, 2)
    x.sum().backward()
    alias = x.grad.detach()
    x.sum().backward()
    assert (alias.tolist(), x.grad._version) == ([2, 2], 1)


def test_accumulation_into_a_users_grad() -> None:
    x = leaf(1, 2)
    x.grad = torch.tensor([10.0, 20.0])
    x.sum().backward()
    assert x.grad.tolist() == [11, 21]


def test_accumulation_into_an_expanded_grad_adds_each_element_once() -> None:
    x = leaf(1, 2)
    x.grad = torch.ones(1).expand(2)
    (x * torch.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [2, 11]


def test_what_a_hook_on_a_leaf_returned_is_not_taken_for_grad() -> None:
    x, mine = leaf(1, 2), torch.ones(2)
    x.register_hook(lambda g: mine)
    for _ in range(2):
        (x * 2).sum().backward()
    assert mine.tolist() == [1, 1]


def test_what_a_prehook_on_a_leafs_node_returned_is_not_taken_for_grad() -> None:
    x, mine = leaf(1, 2), torch.ones(2)
    (x * 1).grad_fn.next_functions[0][0].register_prehook(lambda outs: (mine,))
    for _ in range(2):
        (x * 2).sum().backward()
    assert mine.tolist() == [1, 1]


@pytest.mark.parametrize("place", ["register_hook", "retain_grad"])
def test_what_a_hook_on_a_computed_tensor_returned_is_left_alone(place: str) -> None:
    x, mine = leaf(1, 2), torch.ones(2)
    y = x + 0
    y.register_hook(lambda g: mine)
    if place == "retain_grad":
        y.retain_grad()
    y.sum().backward()
    (y.grad if place == "retain_grad" else x.grad).zero_()
    assert mine.tolist() == [1, 1]


def test_accumulation_into_a_grad_with_history_makes_a_new_one() -> None:
    x = leaf(1, 2)
    x.grad = leaf(1, 1) * 1
    before = x.grad
    x.sum().backward()
    assert (x.grad.tolist(), before.tolist()) == ([2, 2], [1, 1])


def test_a_pass_does_not_write_into_what_an_earlier_one_returned() -> None:
    x = leaf(1, 2)
    (first,) = torch.autograd.grad(x.sum(), x)
    x.grad = None
    x.sum().backward()
    x.sum().backward()
    assert first.tolist() == [1, 1]


def test_setting_grad_to_none_starts_anew() -> None:
    x = leaf(1, 2)
    x.sum().backward()
    x.grad = None
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


# -- what users get to write -----------------------------------------------------------


def test_a_backward_may_write_into_its_gradient() -> None:
    made = function(lambda ctx, x: x * 1, lambda ctx, g: g.mul_(3))
    a, b = leaf(1, 2), leaf(1, 2)
    (made.apply(a) + b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([3, 3], [1, 1])


def test_a_backward_may_write_into_a_broadcast_gradient() -> None:
    made = function(lambda ctx, x: x * 1, lambda ctx, g: g.mul_(3))
    x = leaf(1, 2)
    made.apply(x).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_a_backward_may_write_through_numpy_into_what_it_made() -> None:
    def backward(ctx: Any, g: Any) -> Any:
        out = g.clone()
        out.numpy()[0] = 9
        return out

    x = leaf(1, 2)
    function(lambda ctx, x: x * 1, backward).apply(x).sum().backward()
    assert x.grad.tolist() == [9, 1]


def test_a_backward_that_keeps_its_gradient_finds_it_unchanged() -> None:
    kept = []
    made = function(lambda ctx, x: x * 1, lambda ctx, g: (kept.append(g), g)[1])
    x = leaf(1, 2)
    made.apply(x).sum().backward()
    x.grad.zero_()
    assert kept[0].tolist() == [1, 1]


def test_the_seed_that_is_returned_is_a_copy() -> None:
    x, seed = leaf(1, 2), torch.ones(2)
    (g,) = torch.autograd.grad(x, x, seed)
    g.zero_()
    assert seed.tolist() == [1, 1]


# -- shapes and dtypes -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "wanted", "dims"),
    [
        ((3, 2), (2,), (0,)),
        ((3, 2), (1, 2), (0,)),
        ((3, 2), (), (0, 1)),
        ((4, 3, 2), (3, 1), (0, 2)),
        ((2,), (2,), None),
        ((3,), (2,), None),
        ((2,), (3, 2), None),
    ],
)
def test_the_dims_that_are_summed(shape: Any, wanted: Any, dims: Any) -> None:
    assert summed_dims(shape, wanted) == dims


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3,), (1, 3), (2, 1), (2, 3)])
def test_gradients_of_broadcast_arguments_have_their_shape(shape: Any) -> None:
    x = torch.ones(shape, requires_grad=True)
    (x * torch.ones(2, 3)).sum().backward()
    assert x.grad.shape == shape
    assert np.sum(x.grad.numpy()) == 6


def test_gradients_of_broadcast_arguments_have_their_shape_when_recorded() -> None:
    x = torch.ones(2, 1, requires_grad=True)
    (g,) = torch.autograd.grad((x * x * torch.ones(3)).sum(), x, create_graph=True)
    assert (g.tolist(), g.requires_grad) == ([[6], [6]], True)


def test_gradients_have_the_dtype_of_their_tensor() -> None:
    x = leaf(1, 2)
    y = leaf(1, 2, dtype=torch.float64)
    (x * y).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (torch.float32, torch.float64)


def test_the_gradient_of_a_real_tensor_in_a_complex_product_is_real() -> None:
    x = leaf(1, 2)
    (x * 1j).imag.sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (torch.float32, [1, 1])


def test_an_empty_tensor_has_an_empty_gradient() -> None:
    x = torch.zeros(0, requires_grad=True)
    x.sum().backward()
    assert x.grad.shape == (0,)
