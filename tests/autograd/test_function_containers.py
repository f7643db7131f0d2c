"""Tensors in lists, tuples and dicts among the arguments of a Function."""

from __future__ import annotations

from typing import Any

import pytest
from support import function, leaf

import gradfn as torch

# The sum of the tensors in a container, each times its number from 1 on.
InList = function(
    lambda ctx, xs: sum(x * i for i, x in enumerate(xs, 1)),
    lambda ctx, g: [g * i for i in (1, 2)],
)
InDict = function(
    lambda ctx, xs: xs["a"] + xs["b"] * 2, lambda ctx, g: {"b": g * 2, "a": g}
)


def test_tensors_in_a_list_get_gradients() -> None:
    xs = [leaf(), leaf()]
    InList.apply(xs).sum().backward()
    assert [x.grad.tolist() for x in xs] == [[1, 1], [2, 2]]


def test_tensors_in_a_tuple_get_gradients() -> None:
    xs = leaf(), leaf()
    InList.apply(xs).sum().backward()
    assert [x.grad.tolist() for x in xs] == [[1, 1], [2, 2]]


def test_tensors_in_a_dict_get_gradients_by_key() -> None:
    xs = {"a": leaf(), "b": leaf()}
    InDict.apply(xs).sum().backward()
    assert {k: x.grad.tolist() for k, x in xs.items()} == {"a": [1, 1], "b": [2, 2]}


def test_containers_may_be_nested() -> None:
    nested = function(
        lambda ctx, p: p["w"][0] * 2 + p["b"], lambda ctx, g: {"w": [g * 2], "b": g}
    )
    w, b = leaf(), leaf()
    nested.apply({"w": [w], "b": b}).sum().backward()
    assert (w.grad.tolist(), b.grad.tolist()) == ([2, 2], [1, 1])


def test_containers_stand_beside_other_arguments() -> None:
    mixed = function(
        lambda ctx, x, ys, n: x * n + ys[0], lambda ctx, g: (g * 3, [g], None)
    )
    x, y = leaf(), leaf()
    mixed.apply(x, [y], 3).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([3, 3], [1, 1])


def test_a_container_may_hold_other_things_too() -> None:
    mixed = function(lambda ctx, xs: xs[1] * xs[0], lambda ctx, g: ([None, g * 5, None],))
    x = leaf()
    mixed.apply([5, x, "text"]).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_a_tuple_of_tensors_gets_a_tuple_of_gradients() -> None:
    made = function(lambda ctx, xs: xs[0] + xs[1], lambda ctx, g: ((g, g * 4),))
    xs = leaf(), leaf()
    made.apply(xs).sum().backward()
    assert xs[1].grad.tolist() == [4, 4]


def test_tensors_in_a_container_that_is_left_out_still_count_as_one_argument() -> None:
    made = function(lambda ctx, xs: xs[0] * 2, lambda ctx, g: None)
    x = leaf()
    made.apply([x]).sum().backward()
    assert x.grad is None


def test_none_inside_stands_for_no_gradient() -> None:
    made = function(lambda ctx, xs: xs[0] + xs[1], lambda ctx, g: [None, g])
    a, b = leaf(), leaf()
    made.apply([a, b]).sum().backward()
    assert (a.grad, b.grad.tolist()) == (None, [1, 1])


def test_needs_input_grad_is_true_for_a_container_with_one_that_does() -> None:
    seen = []
    spy = function(
        lambda ctx, xs, ys: (seen.append(ctx.needs_input_grad), xs[0] * 1)[1],
        lambda ctx, g: ([g], None),
    )
    spy.apply([leaf(), torch.ones(2)], [torch.ones(2)])
    assert seen == [(True, False)]


def test_next_functions_has_an_entry_for_each_tensor_inside() -> None:
    a, b = leaf() * 1, leaf() * 1
    node = InList.apply([a, b]).grad_fn
    assert node.next_functions == ((a.grad_fn, 0), (b.grad_fn, 0))


def test_a_partial_backward_reaches_into_a_container() -> None:
    xs = [leaf(), leaf()]
    (g,) = torch.autograd.grad(InList.apply(xs).sum(), xs[1])
    assert g.tolist() == [2, 2]


def test_containers_can_be_differentiated_twice() -> None:
    def forward(ctx: Any, xs: Any) -> Any:
        ctx.save_for_backward(*xs)
        return xs[0] * xs[1]

    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return [g * b, g * a]

    xs = [leaf(3), leaf(4)]
    y = function(forward, backward).apply(xs)
    (first,) = torch.autograd.grad(y, xs[0], create_graph=True)
    (second,) = torch.autograd.grad(first, xs[1])
    assert second.item() == 1


def test_a_gradient_that_is_no_container_is_refused() -> None:
    made = function(lambda ctx, xs: xs[0] * 1, lambda ctx, g: g)
    with pytest.raises(TypeError, match="gradient 0 must be a container like the argum"):
        made.apply([leaf()]).sum().backward()


def test_a_gradient_container_that_is_too_short_is_refused() -> None:
    made = function(lambda ctx, xs: xs[0] + xs[1], lambda ctx, g: [g])
    with pytest.raises(RuntimeError, match=r"it has nothing at 0\[1\]"):
        made.apply([leaf(), leaf()]).sum().backward()


def test_a_gradient_dict_without_the_key_is_refused() -> None:
    made = function(lambda ctx, xs: xs["w"] * 1, lambda ctx, g: {"v": g})
    with pytest.raises(RuntimeError, match=r"it has nothing at 0\['w'\]"):
        made.apply({"w": leaf()}).sum().backward()


def test_a_wrong_shape_inside_is_refused_with_its_place() -> None:
    made = function(lambda ctx, xs: xs["w"] * 1, lambda ctx, g: {"w": torch.ones(3)})
    with pytest.raises(
        RuntimeError, match=r"invalid gradient at index 0\['w'\] - got \[3"
    ):
        made.apply({"w": leaf()}).sum().backward()


def test_what_is_no_tensor_inside_is_refused_with_its_place() -> None:
    made = function(lambda ctx, xs: xs[0] * 1, lambda ctx, g: ["text"])
    with pytest.raises(RuntimeError, match=r"got str.*look at gradient 0\[0\]"):
        made.apply([leaf()]).sum().backward()


def test_one_may_be_written_and_returned() -> None:
    def forward(ctx: Any, xs: Any) -> Any:
        ctx.mark_dirty(xs[0])
        return xs[0].mul_(2)

    x = leaf()
    y = x * 1
    function(forward, lambda ctx, g: [g * 2]).apply([y])
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_one_may_be_returned_as_it_is() -> None:
    x = leaf()
    y = function(lambda ctx, xs: xs[0], lambda ctx, g: [g * 9]).apply([x])
    y.sum().backward()
    assert (y is x, x.grad.tolist()) == (False, [9, 9])
