"""Hooks on tensors, on nodes and on leaves; retain_grad."""

from __future__ import annotations

from typing import Any

import pytest
from support import function, leaf

import gradfn as torch

# -- on a tensor -----------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 1], ids=["leaf", "computed"])
def test_a_hook_is_given_the_gradient(make: Any) -> None:
    seen = []
    y = make(leaf(1, 2))
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 3).sum().backward()
    assert seen == [[3, 3]]


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 1], ids=["leaf", "computed"])
def test_what_a_hook_returns_takes_the_gradients_place(make: Any) -> None:
    x = leaf(1, 2)
    y = make(x)
    y.register_hook(lambda g: g * 10)
    (y * 3).sum().backward()
    assert x.grad.tolist() == [30, 30]


def test_hooks_run_in_the_order_of_registration() -> None:
    x = leaf(1)
    x.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: g * 10)
    (x * 3).backward()
    assert x.grad.item() == 40


def test_a_hook_sees_the_sum_of_all_paths() -> None:
    seen = []
    y = leaf(1) * 1
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 2 + y * 3).backward()
    assert seen == [5]


def test_a_hook_is_told_of_an_undefined_gradient() -> None:
    seen: list[Any] = []
    x = leaf(1)
    y = x * 1
    for t in (x, y):
        t.register_hook(seen.append)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad))
    function(lambda ctx, x: x * 1, lambda ctx, g: None).apply(y).backward()
    assert seen == [None, None, None]


def test_a_hook_cannot_replace_an_undefined_gradient() -> None:
    y = leaf(1) * 1
    y.register_hook(lambda g: torch.ones(1))
    z = function(lambda ctx, x: x * 1, lambda ctx, g: None).apply(y)
    with pytest.raises(RuntimeError, match="can't replace a None gradient"):
        z.backward()


def test_a_removed_hook_is_not_called() -> None:
    seen: list[Any] = []
    x = leaf(1)
    x.register_hook(seen.append).remove()
    (x * 2).backward()
    assert seen == []


def test_a_hook_may_be_removed_twice() -> None:
    handle = leaf(1).register_hook(print)
    handle.remove()
    handle.remove()


def test_a_handle_removes_at_the_end_of_its_block() -> None:
    seen: list[Any] = []
    x = leaf(1)
    with x.register_hook(seen.append):
        (x * 2).backward()
    (x * 2).backward()
    assert len(seen) == 1


def test_a_hook_may_remove_itself() -> None:
    seen: list[Any] = []
    x = leaf(1)

    def once(g: Any) -> None:
        seen.append(g)
        handle.remove()

    handle = x.register_hook(once)
    (x * 2).backward()
    (x * 2).backward()
    assert len(seen) == 1


def test_a_hook_that_an_earlier_one_removes_is_not_called() -> None:
    seen: list[Any] = []
    x = leaf(1)
    x.register_hook(lambda g: later.remove())
    later = x.register_hook(seen.append)
    (x * 2).backward()
    assert seen == []


def test_a_hook_that_is_added_while_running_waits_for_the_next_pass() -> None:
    seen: list[Any] = []
    x = leaf(1)

    def adds(g: Any) -> None:
        x.register_hook(seen.append)

    with x.register_hook(adds):
        (x * 2).backward()
    assert seen == []
    (x * 2).backward()
    assert len(seen) == 1


def test_a_hook_lives_on_after_its_tensor() -> None:
    seen = []
    x = leaf(1)
    y = x * 2
    y.register_hook(lambda g: seen.append(g.item()))
    y = y * 3
    y.backward()
    assert seen == [3]


def test_a_hook_must_return_a_tensor_or_none() -> None:
    x = leaf(1)
    x.register_hook(lambda g: 5)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        (x * 2).backward()


def test_a_hook_must_keep_the_shape() -> None:
    x = leaf(1, 2)
    x.register_hook(lambda g: g.sum())
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        x.sum().backward()


def test_a_hook_must_keep_the_dtype() -> None:
    x = leaf(1)
    x.register_hook(lambda g: g.double())
    with pytest.raises(RuntimeError, match="has changed the type of value"):
        (x * 2).backward()


def test_a_hook_must_be_callable() -> None:
    with pytest.raises(TypeError, match="a hook must be callable"):
        leaf(1).register_hook(None)


def test_no_hook_without_requires_grad() -> None:
    with pytest.raises(RuntimeError, match="on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(print)


def test_a_hook_may_write_into_its_gradient_without_changing_others() -> None:
    a, b = leaf(1), leaf(1)
    a.register_hook(lambda g: g.mul_(5))
    (a + b).backward()
    assert (a.grad.item(), b.grad.item()) == (5, 1)


def test_a_hook_may_keep_its_gradient() -> None:
    kept: list[Any] = []
    x = leaf(1, 2)
    x.register_hook(kept.append)
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    assert [g.tolist() for g in kept] == [[2, 2], [3, 3]]


def test_a_hook_of_an_intermediate_is_recorded_with_create_graph() -> None:
    x = leaf(3)
    y = x * 1
    y.register_hook(lambda g: g * g)
    (g,) = torch.autograd.grad(y * y, x, create_graph=True)
    assert (g.item(), g.requires_grad) == (36, True)


def test_grad_passes_through_hooks_on_its_way() -> None:
    x = leaf(1)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    assert torch.autograd.grad(y * 3, x)[0].item() == 60


def test_a_hook_on_a_view_sees_the_views_gradient() -> None:
    seen = []
    y = leaf(1, 2) * 1
    v = y[1:]
    v.register_hook(lambda g: seen.append(g.tolist()))
    (v * 3).sum().backward()
    assert seen == [[3]]


# -- on a node -------------------------------------------------------------------------


def test_a_node_hook_sees_gradients_of_inputs_and_outputs() -> None:
    seen = []
    y = leaf(1) * 2
    y.grad_fn.register_hook(
        lambda ins, outs: seen.append((ins[0].item(), outs[0].item()))
    )
    (y * 3).backward()
    assert seen == [(6, 3)]


def test_a_node_hook_gets_none_for_an_argument_that_needs_no_gradient() -> None:
    seen: list[Any] = []
    y = leaf(1) * torch.ones(1)
    y.grad_fn.register_hook(lambda ins, outs: seen.append(ins[1]))
    y.backward()
    assert seen == [None]


def test_a_node_hook_may_replace_the_gradients() -> None:
    a, b = leaf(1), leaf(1)
    y = a * b
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] * 5, None))
    y.backward()
    assert (a.grad.item(), b.grad) == (5, None)


def test_a_node_prehook_sees_the_gradients_of_the_outputs() -> None:
    seen = []
    y = leaf(1) * 2
    y.grad_fn.register_prehook(lambda outs: seen.append(outs[0].item()))
    (y * 3).backward()
    assert seen == [3]


def test_a_node_prehook_may_replace_them() -> None:
    x = leaf(1)
    y = x * 2
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 10,))
    y.backward()
    assert x.grad.item() == 20


def test_node_hooks_work_on_a_custom_function() -> None:
    x = leaf(1)
    y = function(lambda ctx, x: x * 2, lambda ctx, g: g * 2).apply(x)
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 10,))
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] + outs[0],))
    y.backward()
    assert x.grad.item() == 30


def test_a_node_prehook_sees_all_outputs_of_a_function() -> None:
    seen: list[Any] = []
    a, b = function(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g + h).apply(leaf(1))
    a.grad_fn.register_prehook(seen.append)
    b.backward()
    assert seen == [(None, torch.ones(1))]


def test_node_hooks_can_be_removed() -> None:
    seen: list[Any] = []
    node = (y := leaf(1) * 2).grad_fn
    node.register_hook(lambda *_: seen.append(1)).remove()
    node.register_prehook(lambda *_: seen.append(2)).remove()
    y.backward()
    assert seen == []


@pytest.mark.parametrize(
    ("answer", "kind", "phrase"),
    [
        ([torch.ones(1)], TypeError, "expected tuple, but hook returned 'list'"),
        (torch.ones(1), TypeError, "expected tuple, but hook returned 'Tensor'"),
        (
            (torch.ones(1),) * 2,
            RuntimeError,
            r"incorrect number of values \(got 2, but e",
        ),
        ((5,), TypeError, "expected Variable, but hook returned 'int'"),
        ((torch.ones(3),), RuntimeError, "has changed the size of value"),
    ],
)
def test_what_a_prehook_returns_is_checked(answer: Any, kind: Any, phrase: str) -> None:
    y = leaf(1) * 2
    y.grad_fn.register_prehook(lambda outs: answer)
    with pytest.raises(kind, match=phrase):
        y.backward()


@pytest.mark.parametrize(
    ("answer", "kind", "phrase"),
    [
        ([None, None], TypeError, "expected tuple, but hook returned 'list'"),
        (
            (torch.ones(1),),
            RuntimeError,
            r"incorrect number of values \(got 1, but expec",
        ),
        ((5, None), TypeError, "expected Variable, but hook returned 'int'"),
        ((torch.ones(3), None), RuntimeError, "has changed the size of value"),
    ],
)
def test_what_a_node_hook_returns_is_checked(answer: Any, kind: Any, phrase: str) -> None:
    y = leaf(1) * 2
    y.grad_fn.register_hook(lambda ins, outs: answer)
    with pytest.raises(kind, match=phrase):
        y.backward()


# -- on a leaf -------------------------------------------------------------------------


def test_a_post_accumulate_hook_sees_the_leaf_with_its_new_grad() -> None:
    seen = []
    x = leaf(1)
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.item())))
    (x * 2).backward()
    (x * 3).backward()
    assert seen == [(True, 2), (True, 5)]


def test_a_post_accumulate_hook_may_take_grad_away() -> None:
    x = leaf(1)
    x.register_post_accumulate_grad_hook(lambda t: setattr(t, "grad", None))
    (x * 2).backward()
    assert x.grad is None


def test_a_post_accumulate_hook_may_update_the_leaf() -> None:
    x = leaf(1)

    def step(t: Any) -> None:
        with torch.no_grad():
            t -= t.grad

    x.register_post_accumulate_grad_hook(step)
    (x * 2).backward()
    assert x.item() == -1


def test_a_post_accumulate_hook_is_not_called_by_grad() -> None:
    seen: list[Any] = []
    x = leaf(1)
    x.register_post_accumulate_grad_hook(seen.append)
    torch.autograd.grad(x * 2, x)
    assert seen == []


def test_a_post_accumulate_hook_returns_nothing() -> None:
    x = leaf(1)
    x.register_post_accumulate_grad_hook(lambda t: t)
    with pytest.raises(RuntimeError, match="hooks should return None"):
        (x * 2).backward()


def test_a_post_accumulate_hook_is_for_leaves() -> None:
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf tensors"):
        (leaf(1) * 2).register_post_accumulate_grad_hook(print)


def test_a_leafs_node_takes_hooks_too() -> None:
    seen = []
    x = leaf(1)
    node = (x * 1).grad_fn.next_functions[0][0]
    node.register_prehook(lambda outs: (outs[0] * 10,))
    node.register_hook(lambda ins, outs: seen.append((ins, outs[0].item())))
    (x * 2).backward()
    assert (x.grad.item(), seen) == (20, [((), 20)])


# -- retain_grad -----------------------------------------------------------------------


def test_a_computed_tensor_keeps_its_grad_if_asked() -> None:
    y = leaf(1) * 2
    y.retain_grad()
    (y * 3).backward()
    assert (y.retains_grad, y.grad.item()) == (True, 3)


def test_a_retained_grad_is_what_the_hooks_made_of_it() -> None:
    y = leaf(1) * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    (y * 3).backward()
    assert y.grad.item() == 30


def test_retained_grads_add_up() -> None:
    y = leaf(1) * 2
    y.retain_grad()
    (y * 3).backward(retain_graph=True)
    (y * 4).backward()
    assert y.grad.item() == 7


def test_a_leaf_has_no_need_to_retain() -> None:
    x = leaf(1)
    x.retain_grad()
    (x * 2).backward()
    assert (x.retains_grad, x.grad.item()) == (False, 2)


def test_one_output_of_several_may_retain() -> None:
    a, b = (leaf(1, 2) * 1).unbind()
    b.retain_grad()
    (a * b).backward()
    assert b.grad.item() == 1


def test_a_retained_grad_follows_an_in_place_write() -> None:
    y = leaf(1) * 2
    y.retain_grad()
    y.mul_(5)
    (y * 3).backward()
    assert y.grad.item() == 3


def test_nothing_is_retained_without_requires_grad() -> None:
    with pytest.raises(
        RuntimeError, match="can't retain_grad on Tensor that has requires"
    ):
        torch.ones(1).retain_grad()


def test_asking_a_computed_tensor_for_its_grad_warns() -> None:
    y = leaf(1) * 2
    with pytest.warns(UserWarning, match="is not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_a_retained_grad_does_not_share_memory_with_what_flows_on() -> None:
    x = leaf(1, 2)
    y = x + 0
    y.retain_grad()
    y.sum().backward()
    y.grad.mul_(5)
    assert x.grad.tolist() == [1, 1]
