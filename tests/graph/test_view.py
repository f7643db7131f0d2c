"""Views and in-place writes: CopySlices, views that catch up, writes that are refused."""

from __future__ import annotations

from typing import Any

import pytest
from support import function, leaf

import gradfn as torch


def computed(*values: float) -> Any:
    """A leaf, and a computed tensor of the same values that may be written."""
    x = leaf(*values)
    return x, x * 1


# -- what a view is --------------------------------------------------------------------


def test_a_view_knows_its_base() -> None:
    _, y = computed()
    assert y.view(2)._base is y


def test_a_view_of_a_view_has_the_same_base() -> None:
    _, y = computed()
    assert y.view(2)[1:]._base is y


def test_a_view_shares_the_version_of_its_base() -> None:
    y = torch.zeros(3)
    v = y[1:]
    v.add_(1)
    y.add_(1)
    assert (y._version, v._version) == (2, 2)


def test_a_view_shows_what_is_written_to_its_base() -> None:
    y = torch.zeros(3)
    v = y[1:]
    y.add_(1)
    assert v.tolist() == [1, 1]


def test_a_copy_is_no_view() -> None:
    assert not torch.ones(2).clone()._is_view()


def test_a_detached_tensor_shares_memory_but_no_history() -> None:
    _, y = computed(1, 2)
    d = y.detach()
    assert (d.data_ptr(), d.requires_grad, d._version) == (
        y.data_ptr(),
        False,
        y._version,
    )


# -- writes ----------------------------------------------------------------------------


def test_a_write_puts_its_node_into_the_history() -> None:
    x, y = computed(1, 2)
    y.mul_(5)
    y.sum().backward()
    assert (y.grad_fn.name(), x.grad.tolist()) == ("MulBackward0", [5, 5])


def test_a_write_into_a_view_goes_into_the_bases_history() -> None:
    x, y = computed(1, 2)
    y[1:].mul_(5)
    y.sum().backward()
    assert (type(y.grad_fn).__name__, x.grad.tolist()) == ("CopySlices", [1, 5])


def test_a_write_into_a_view_of_a_view() -> None:
    x, y = computed(1, 2, 3, 4)
    y.view(2, 2)[1][0:1].mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 5, 1]


def test_a_write_through_a_transposed_view() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 1
    y.t()[0].mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [[5, 1, 1], [5, 1, 1]]


def test_an_assignment_to_a_slice_stops_the_gradient_there() -> None:
    x, y = computed(1, 2)
    y[0] = 9
    y.sum().backward()
    assert x.grad.tolist() == [0, 1]


def test_an_assigned_tensor_gets_its_gradient() -> None:
    _, y = computed(1, 2)
    t = leaf(7)
    y[1:] = t
    (y * 3).sum().backward()
    assert t.grad.tolist() == [3]


def test_several_writes_into_several_views() -> None:
    x, y = computed(1, 2, 3)
    y[:2].mul_(2)
    y[1:].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [2, 6, 3]


def test_a_write_into_a_constant_makes_it_require_grad() -> None:
    y, t = torch.zeros(3), leaf(7)
    y[1:2] = t
    (y * 2).sum().backward()
    assert t.grad.tolist() == [2]


def test_a_write_into_a_view_of_a_constant() -> None:
    y, t = torch.ones(3), leaf(7)
    y[1:].mul_(t)
    y.sum().backward()
    assert t.grad.tolist() == [2]


def test_a_write_can_be_differentiated_twice() -> None:
    x = leaf(1, 2)
    y = x * x
    y[1:].mul_(x[1:])
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [2, 12]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [2, 12]


def test_the_written_view_has_a_history_too() -> None:
    x, y = computed(1, 2)
    v = y[1:]
    v.mul_(5)
    v.sum().backward()
    assert x.grad.tolist() == [0, 5]


def test_a_second_pass_through_a_write_is_refused() -> None:
    _, y = computed(1, 2)
    y[1:].mul_(5)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_a_custom_function_may_write_into_a_view() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(5)

    x, y = computed(1, 2)
    function(forward, lambda ctx, g: g * 5).apply(y[1:])
    y.sum().backward()
    assert x.grad.tolist() == [1, 5]


# -- views that catch up ---------------------------------------------------------------


def test_a_view_made_earlier_has_the_new_history() -> None:
    x, y = computed(1, 2)
    v = y[1:]
    y.mul_(5)
    v.sum().backward()
    assert x.grad.tolist() == [0, 5]


def test_another_view_has_the_new_history_too() -> None:
    x, y = computed(1, 2)
    v, w = y[1:], y[:]
    v.mul_(5)
    w.sum().backward()
    assert x.grad.tolist() == [1, 5]


def test_a_view_of_a_constant_requires_grad_after_such_a_write() -> None:
    y = torch.ones(2)
    v = y[1:]
    y.mul_(leaf(2))
    assert (v.requires_grad, v.is_leaf) == (True, False)


def test_a_hook_registered_on_a_view_before_the_write_keeps_its_node() -> None:
    seen: list[Any] = []
    _, y = computed(1, 2)
    v = y[1:]
    v.register_hook(seen.append)
    w = v * 3
    y.mul_(5)
    (w.sum() + y.sum()).backward()
    assert [g.tolist() for g in seen] == [[3]]


# -- versions --------------------------------------------------------------------------


def test_a_write_to_what_was_saved_is_noticed() -> None:
    _, y = computed()
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"at version 1; expected version 0 instead"):
        z.backward()


def test_a_write_to_the_base_of_what_was_saved_is_noticed() -> None:
    _, y = computed()
    z = (y[1:] * y[1:]).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_a_write_to_a_detached_alias_is_noticed() -> None:
    _, y = computed()
    z = (y * y).sum()
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_a_write_through_data_is_not() -> None:
    x, y = computed(1, 2)
    z = (y * y).sum()
    y.data.add_(1)
    z.backward()
    assert x.grad.tolist() == [4, 6]


def test_a_write_to_what_nobody_saved_is_fine() -> None:
    x, y = computed(1, 2)
    z = y + 1
    y.mul_(5)
    z.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_what_was_written_before_it_was_saved_is_fine() -> None:
    x, y = computed(1, 2)
    y.mul_(5)
    (y * y).sum().backward()
    assert x.grad.tolist() == [50, 100]


# -- writes that are refused -----------------------------------------------------------


def test_a_leaf_that_requires_grad_is_not_written() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being"):
        leaf().add_(1)


def test_a_view_of_such_a_leaf_is_not_written() -> None:
    with pytest.raises(
        RuntimeError, match="a view of a leaf Variable that requires grad"
    ):
        leaf()[0] = 5


def test_a_leaf_is_written_under_no_grad() -> None:
    x = leaf(1, 2)
    with torch.no_grad():
        x[0] = 5
        x.mul_(2)
    assert (x.tolist(), x.is_leaf) == ([10, 4], True)


def test_one_of_several_views_is_not_written() -> None:
    _, y = computed()
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view and is being"):
        y.unbind()[0].mul_(2)


def test_a_view_made_under_no_grad_is_not_written() -> None:
    _, y = computed()
    with torch.no_grad():
        v = y.view(2)
    with pytest.raises(
        RuntimeError, match="A view was created in no_grad mode and is be"
    ):
        v.mul_(2)


def test_an_expanded_tensor_is_not_written() -> None:
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        torch.ones(1).expand(2).add_(1)


@pytest.mark.parametrize("write", [lambda t: t.zero_(), lambda t: t.fill_(0)])
def test_a_constant_may_be_written_into_an_expanded_tensor(write: Any) -> None:
    x = leaf(1, 2)
    base = x * 3
    shown = base.expand(2, 2)
    write(shown)
    assert (shown.tolist(), base.tolist()) == ([[0, 0], [0, 0]], [0, 0])
    (shown.sum() + base.sum()).backward()
    assert x.grad.tolist() == [0, 0]


def test_a_failed_write_leaves_values_and_version() -> None:
    x = leaf(1, 2)
    with pytest.raises(RuntimeError):
        x.add_(1)
    assert (x.tolist(), x._version) == ([1, 2], 0)


def test_a_view_is_not_detached_in_place() -> None:
    _, y = computed()
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        y.view(2).detach_()
