"""What forward may return: several values, inputs, views, written and constant ones."""

from __future__ import annotations

import gc
import weakref
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import pytest
from support import function, leaf

import gradfn as torch

Pair = namedtuple("Pair", "double triple")


def both(ctx: Any, x: Any) -> Any:
    return x * 2, x * 3


def both_back(ctx: Any, g: Any, h: Any) -> Any:
    return g * 2 + h * 3


Both = function(both, both_back)


def seen_by_backward(forward: Any, use: Any = lambda outs: outs[0].sum()) -> list[Any]:
    """The gradients that backward is given when `use(outputs)` is differentiated."""
    seen: list[Any] = []

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.extend(grads)
        return grads[0]

    use(function(forward, backward).apply(leaf(1, 2))).backward()
    return seen


# -- several outputs -------------------------------------------------------------------


def test_each_output_brings_its_gradient() -> None:
    x = leaf(1, 2)
    a, b = Both.apply(x)
    (a * 10 + b).sum().backward()
    assert x.grad.tolist() == [23, 23]


def test_outputs_share_their_node() -> None:
    a, b = Both.apply(leaf())
    assert a.grad_fn is b.grad_fn


def test_outputs_are_numbered() -> None:
    a, b = Both.apply(leaf())
    assert (a.output_nr, b.output_nr) == (0, 1)


def test_next_functions_tell_which_output_was_used() -> None:
    a, b = Both.apply(leaf())
    assert (a * b).grad_fn.next_functions == ((a.grad_fn, 0), (b.grad_fn, 1))


def test_a_tuple_is_returned_as_a_tuple() -> None:
    assert type(Both.apply(leaf())) is tuple


def test_a_tuple_of_one_is_returned_as_a_tuple() -> None:
    (y,) = function(lambda ctx, x: (x * 2,), lambda ctx, g: g * 2).apply(leaf())
    assert y.requires_grad


def test_a_list_is_returned_as_a_list() -> None:
    made = function(lambda ctx, x: [x * 2, x * 3], both_back)
    assert type(made.apply(leaf())) is list


def test_a_list_of_outputs_brings_gradients() -> None:
    x = leaf()
    a, b = function(lambda ctx, x: [x * 2, x * 3], both_back).apply(x)
    (a + b).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_a_namedtuple_is_returned_as_one() -> None:
    made = function(lambda ctx, x: Pair(x * 2, x * 3), both_back)
    assert made.apply(leaf(1)).triple.tolist() == [3]


def test_what_is_no_tensor_is_returned_as_it_is() -> None:
    things = object(), None, "text", 5
    made = function(lambda ctx, x: (x * 1, *things), lambda ctx, g, *_: g)
    assert made.apply(leaf())[1:] == things


def test_what_is_no_tensor_has_none_for_a_gradient() -> None:
    assert seen_by_backward(lambda ctx, x: (x * 1, "text", None))[1:] == [None, None]


def test_several_outputs_may_be_non_tensors_first() -> None:
    x = leaf()
    made = function(lambda ctx, x: ("text", x * 2), lambda ctx, _, g: g * 2)
    _, y = made.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_result_that_is_no_tensor_is_returned_as_it_is() -> None:
    assert function(lambda ctx, x: None, lambda ctx, g: g).apply(leaf()) is None


def test_the_same_tensor_may_be_returned_twice() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        return y, y

    x = leaf(1)
    a, b = function(forward, lambda ctx, g, h: (g + h) * 2).apply(x)
    (a + b).backward()
    assert x.grad.item() == 4


# -- outputs without a gradient --------------------------------------------------------


def test_an_unused_output_gets_zeros() -> None:
    assert seen_by_backward(both)[1].tolist() == [0, 0]


def test_an_unused_output_gets_none_if_zeros_are_not_wanted() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    assert seen_by_backward(forward)[1] is None


def test_zeros_have_the_shape_and_dtype_of_the_output() -> None:
    zeros = seen_by_backward(lambda ctx, x: (x * 1, x.double().sum()))[1]
    assert (zeros.shape, zeros.dtype) == ((), torch.float64)


def test_integer_outputs_do_not_require_grad() -> None:
    y, n = function(lambda ctx, x: (x * 1, x.long()), lambda ctx, g, h: g).apply(leaf())
    assert (y.requires_grad, n.requires_grad) == (True, False)


def test_a_single_integer_output_has_no_history() -> None:
    n = function(lambda ctx, x: x.long(), lambda ctx, g: g).apply(leaf())
    assert (n.requires_grad, n.grad_fn) == (False, None)


def test_integer_outputs_get_zeros() -> None:
    zeros = seen_by_backward(lambda ctx, x: (x * 1, x > 0))[1]
    assert zeros.tolist() == [0, 0]


def test_a_tensor_that_forward_makes_requires_grad() -> None:
    y = function(lambda ctx, x: torch.ones(3), lambda ctx, g: None).apply(leaf())
    assert y.requires_grad


# -- mark_non_differentiable -----------------------------------------------------------


def constant(ctx: Any, x: Any) -> Any:
    a, b = x * 2, x * 3
    ctx.mark_non_differentiable(b)
    return a, b


def test_a_non_differentiable_output_does_not_require_grad() -> None:
    a, b = function(constant, both_back).apply(leaf())
    assert (a.requires_grad, b.requires_grad) == (True, False)


def test_a_non_differentiable_output_gets_zeros() -> None:
    assert seen_by_backward(constant)[1].tolist() == [0, 0]


def test_an_only_output_may_be_non_differentiable() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    assert not function(forward, lambda ctx, g: g).apply(leaf()).requires_grad


# -- inputs and views returned ---------------------------------------------------------


def test_an_input_that_is_returned_is_another_tensor() -> None:
    x = leaf()
    y = function(lambda ctx, x: x, lambda ctx, g: g * 10).apply(x)
    assert y is not x
    assert y.grad_fn.name() == "MineBackward"


def test_an_input_that_is_returned_passes_through_backward() -> None:
    x = leaf()
    function(lambda ctx, x: x, lambda ctx, g: g * 10).apply(x).sum().backward()
    assert x.grad.tolist() == [10, 10]


def test_an_input_that_is_returned_shares_its_memory() -> None:
    x = leaf()
    y = function(lambda ctx, x: x, lambda ctx, g: g).apply(x)
    assert y.data_ptr() == x.data_ptr()


def test_an_input_may_be_returned_among_others() -> None:
    x = leaf(1)
    a, b = function(lambda ctx, x: (x, x * 2), lambda ctx, g, h: g + 2 * h).apply(x)
    (a + b).backward()
    assert x.grad.item() == 3


def test_an_input_that_is_returned_without_recording_stays_usable() -> None:
    x = torch.ones(2)
    y = function(lambda ctx, x: x, lambda ctx, g: g).apply(x)
    assert (y.tolist(), y.requires_grad) == ([1, 1], False)


def test_a_view_that_is_returned_goes_through_backward() -> None:
    x = leaf(1, 2)
    made = function(lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2) * 7)
    made.apply(x).sum().backward()
    assert x.grad.tolist() == [7, 7]


def test_a_view_that_is_returned_must_not_be_written() -> None:
    y = function(lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2)).apply(leaf() * 1)
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        y.mul_(2)


def test_a_detached_input_that_is_returned_goes_through_backward() -> None:
    x = leaf()
    function(lambda ctx, x: x.detach(), lambda ctx, g: g * 10).apply(x).sum().backward()
    assert x.grad.tolist() == [10, 10]


# -- mark_dirty ------------------------------------------------------------------------


def double_in_place(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


Double_ = function(double_in_place, lambda ctx, g: g * 2)


def test_a_dirty_input_is_returned_as_itself() -> None:
    x = leaf() * 1
    assert Double_.apply(x) is x


def test_a_dirty_input_has_the_functions_history() -> None:
    x = leaf()
    y = x * 3
    Double_.apply(y)
    y.sum().backward()
    assert x.grad.tolist() == [6, 6]


def test_a_dirty_leaf_that_requires_grad_is_refused() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been"):
        Double_.apply(leaf())


def test_a_dirty_leaf_is_fine_under_no_grad() -> None:
    x = leaf(1, 2)
    with torch.no_grad():
        Double_.apply(x)
    assert x.tolist() == [2, 4]


def test_a_dirty_input_that_requires_no_grad_is_fine() -> None:
    x = torch.ones(2)
    assert Double_.apply(x) is x


def test_a_dirty_input_must_be_returned() -> None:
    made = function(lambda ctx, x: double_in_place(ctx, x) * 1, lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="must all be outputs of the Function"):
        made.apply(leaf() * 1)


def test_only_inputs_can_be_dirty() -> None:
    made = function(lambda ctx, x: double_in_place(ctx, x * 1), lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="mark_dirty takes inputs of forward only"):
        made.apply(leaf())


def test_whoever_saved_a_dirty_input_before_notices() -> None:
    x = leaf() * 1
    y = x.exp() * x
    Double_.apply(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_dirty_view_changes_the_history_of_its_base() -> None:
    x = leaf(1, 2)
    y = x * 3
    Double_.apply(y[:1])
    y.sum().backward()
    assert x.grad.tolist() == [6, 3]


def test_a_dirty_view_among_several_outputs_is_refused() -> None:
    made = function(
        lambda ctx, x: (double_in_place(ctx, x), x * 3), lambda ctx, g, h: g * 2 + h * 3
    )
    with pytest.raises(RuntimeError, match="must return exactly one output"):
        made.apply((leaf() * 1)[:1])


def test_a_constant_that_is_written_gets_the_others_history() -> None:
    def fill(ctx: Any, into: Any, x: Any) -> Any:
        ctx.mark_dirty(into)
        return into.copy_(x)

    x, into = leaf(1, 2), torch.zeros(2)
    function(fill, lambda ctx, g: (None, g)).apply(into, x)
    (into * 5).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_a_dirty_input_can_be_saved_with_its_new_values() -> None:
    def exp_in_place(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.exp_()
        ctx.save_for_backward(x)
        return x

    x = leaf(0, 0)
    y = function(exp_in_place, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x * 1)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


# -- memory ----------------------------------------------------------------------------


@pytest.fixture
def without_gc() -> Iterator[None]:
    """What dies now dies by reference counting."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def saving_outputs(ctx: Any, x: Any) -> Any:
    a, b = x * 2, x * 3
    ctx.save_for_backward(a, b)
    return a, b


@pytest.mark.usefixtures("without_gc")
def test_a_function_that_saves_an_output_dies_with_it() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    y = function(forward, lambda ctx, g: g).apply(leaf())
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


@pytest.mark.usefixtures("without_gc")
def test_a_function_that_saves_all_its_outputs_dies_with_them() -> None:
    a, b = function(saving_outputs, both_back).apply(leaf())
    node = weakref.ref(a.grad_fn)
    del a, b
    assert node() is None


@pytest.mark.usefixtures("without_gc")
def test_a_function_lives_as_long_as_one_of_its_outputs() -> None:
    a, b = function(saving_outputs, both_back).apply(leaf())
    node = weakref.ref(a.grad_fn)
    del a
    assert node() is b.grad_fn


def test_saved_outputs_know_which_output_they_are() -> None:
    a, _ = function(saving_outputs, both_back).apply(leaf())
    assert [t.output_nr for t in a.grad_fn.saved_tensors] == [0, 1]


@pytest.mark.usefixtures("without_gc")
def test_a_dirty_input_dies_with_its_node() -> None:
    x = leaf() * 1
    node = weakref.ref(Double_.apply(x).grad_fn)
    del x
    assert node() is None


@pytest.mark.usefixtures("without_gc")
def test_a_non_differentiable_output_is_not_kept_by_the_node() -> None:
    a, b = function(constant, both_back).apply(leaf())
    kept = weakref.ref(b)
    del b
    assert (a.requires_grad, kept()) == (True, None)


@pytest.mark.usefixtures("without_gc")
def test_an_input_that_is_saved_and_returned_dies_with_its_node() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x

    node = weakref.ref(function(forward, lambda ctx, g: g).apply(leaf()).grad_fn)
    assert node() is None


@pytest.mark.usefixtures("without_gc")
def test_what_save_for_backward_kept_is_freed_by_backward() -> None:
    def forward(ctx: Any, x: Any, other: Any) -> Any:
        ctx.save_for_backward(other)
        return x * other

    other = torch.ones(2)
    kept = weakref.ref(other)
    y = function(forward, lambda ctx, g: (g * ctx.saved_tensors[0], None)).apply(
        leaf(), other
    )
    del other
    assert kept() is not None
    y.sum().backward()
    assert kept() is None


@pytest.mark.usefixtures("without_gc")
def test_a_recorded_backward_leaves_no_cycle() -> None:
    x = leaf()
    y = function(both, both_back).apply(x)[0]
    node = weakref.ref(y.grad_fn)
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    del y, g
    assert node() is None
