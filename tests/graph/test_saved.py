"""Saved tensors: what nodes keep, when they let go, and what users see of it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from support import leaf

import gradfn as torch


@pytest.fixture(autouse=True)
def without_gc() -> Iterator[None]:
    """What dies now dies by reference counting."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# -- life and death --------------------------------------------------------------------


def test_a_graph_dies_with_its_result() -> None:
    y = (leaf() * 2).exp()
    node = weakref.ref(y.grad_fn.next_functions[0][0])
    del y
    assert node() is None


def test_a_result_that_its_node_saves_dies() -> None:
    y = leaf().exp()
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


def test_several_results_that_their_node_saves_die() -> None:
    y = leaf().unbind()
    node = weakref.ref(y[0].grad_fn)
    del y
    assert node() is None


def test_a_written_view_dies_with_its_base() -> None:
    y = leaf() * 1
    y[1:].exp_()
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


def test_an_input_is_kept_until_backward() -> None:
    other = torch.ones(2)
    kept = weakref.ref(other)
    y = (leaf() * other).sum()
    del other
    assert kept() is not None
    y.backward()
    assert kept() is None


def test_an_input_that_no_gradient_needs_is_not_kept() -> None:
    x, y = leaf() * 1, torch.ones(2)
    z = x * y
    kept = weakref.ref(x)
    del x
    assert (z.requires_grad, kept()) == (True, None)


def test_retain_graph_keeps_inputs() -> None:
    other = torch.ones(2)
    kept = weakref.ref(other)
    y = (leaf() * other).sum()
    del other
    y.backward(retain_graph=True)
    assert kept() is not None


def test_a_failed_second_pass_leaves_no_cycle() -> None:
    y = (leaf() * leaf()).sum()
    node = weakref.ref(y.grad_fn)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    del y
    assert node() is None


def test_a_recorded_pass_leaves_no_cycle() -> None:
    x = leaf()
    y = (x * x).sum()
    node = weakref.ref(y.grad_fn)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    del y, g
    assert node() is None


# -- what users see --------------------------------------------------------------------


def test_a_saved_input_can_be_looked_at() -> None:
    x = leaf()
    assert (x**2).grad_fn._saved_self is x


def test_a_saved_result_can_be_looked_at_with_its_history() -> None:
    y = leaf(0).exp()
    saved = y.grad_fn._saved_result
    assert (saved.item(), saved.grad_fn) == (1, y.grad_fn)


def test_a_plain_argument_can_be_looked_at() -> None:
    assert (leaf() ** 3).grad_fn._saved_exponent == 3


def test_an_argument_that_is_not_saved_is_none() -> None:
    assert (leaf() * torch.ones(2)).grad_fn._saved_self is None


def test_what_a_node_does_not_save_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="_saved_nothing"):
        leaf().exp().grad_fn._saved_nothing


def test_what_is_gone_cannot_be_looked_at() -> None:
    y = leaf(0).exp()
    y.backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they"):
        y.grad_fn._saved_result


def test_what_was_overwritten_cannot_be_looked_at() -> None:
    x = leaf() * 1
    y = x**2
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.grad_fn._saved_self


def test_the_refusal_names_type_shape_and_op() -> None:
    x = leaf() * 1
    y = x**2
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"\[torch\.FloatTensor \[2\]\].*PowBackward0"):
        y.sum().backward()


def test_a_tensor_that_is_saved_twice_is_one_object() -> None:
    x = leaf()
    node = (x * x).grad_fn
    assert node._saved_self is node._saved_other is x


@pytest.mark.parametrize("output", [0, 1, 2])
def test_each_saved_output_is_checked(output: int) -> None:
    a = torch.tensor([[2.0, 1.0], [0.5, 3.0]], requires_grad=True)
    outs = torch.linalg.svd(a)
    total = sum((t.detach() * t).sum() for t in outs)
    with torch.no_grad():
        outs[output].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()
