"""torch.autograd.graph: nodes, edges, saved-tensor hooks, hooks on several tensors."""

from __future__ import annotations

from typing import Any

import pytest
from support import function, leaf

import gradfn as torch
from gradfn.autograd import graph

# -- nodes and edges -------------------------------------------------------------------


def test_a_grad_fn_is_a_node() -> None:
    assert isinstance((leaf() * 2).grad_fn, graph.Node)


def test_a_node_has_pytorchs_name() -> None:
    assert (leaf() * 2).grad_fn.name() == "MulBackward0"


def test_a_node_has_an_edge_for_each_differentiable_argument() -> None:
    x = leaf() * 1
    node = (x * torch.ones(2)).grad_fn
    assert node.next_functions == ((x.grad_fn, 0), (None, 0))


def test_a_leafs_node_accumulates_into_it() -> None:
    x = leaf()
    node = (x * 2).grad_fn.next_functions[0][0]
    assert node.name() == "torch::autograd::AccumulateGrad"
    assert node.variable is x


def test_a_leafs_node_is_one_object_while_it_is_held() -> None:
    x = leaf()
    node = (x * 2).grad_fn.next_functions[0][0]
    assert (x * 3).grad_fn.next_functions[0][0] is node


def test_metadata_is_kept_with_the_node() -> None:
    y = leaf() * 2
    y.grad_fn.metadata["line"] = 5
    assert y.grad_fn.metadata == {"line": 5}


def test_the_graph_can_be_walked_to_its_leaves() -> None:
    x, w = leaf(), leaf()
    found, stack = set(), [((x * w).exp() + x).sum().grad_fn]
    while stack:
        node = stack.pop()
        found.add(node.name())
        stack += [n for n, _ in node.next_functions if n is not None]
    assert found == {
        "SumBackward0",
        "AddBackward0",
        "ExpBackward0",
        "MulBackward0",
        "torch::autograd::AccumulateGrad",
    }


def test_the_edge_of_a_computed_tensor() -> None:
    y = leaf() * 2
    edge = graph.get_gradient_edge(y)
    assert (edge.node, edge.output_nr) == (y.grad_fn, 0)


def test_the_edge_of_one_output_of_several() -> None:
    b = (leaf() * 2).unbind()[1]
    edge = graph.get_gradient_edge(b)
    assert (edge.node, edge.output_nr) == (b.grad_fn, 1)


def test_the_edge_of_a_leaf() -> None:
    x = leaf()
    assert graph.get_gradient_edge(x).node.variable is x


def test_no_edge_without_requires_grad() -> None:
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(torch.ones(1))


def test_an_edge_made_by_hand_serves_as_well() -> None:
    y = leaf(2) * 3
    edge = graph.GradientEdge(y.grad_fn, 0)
    assert torch.autograd.grad(y * y, edge)[0].item() == 12


def test_an_edge_made_by_hand_may_be_one_output_of_several() -> None:
    a, b = (leaf(1, 2) * 2).unbind()
    edge = graph.GradientEdge(b.grad_fn, 1)
    assert torch.autograd.grad(a * b, edge)[0].item() == 2


# -- hooks for saved tensors -----------------------------------------------------------


def test_pack_gets_what_is_saved_and_unpack_what_pack_returned() -> None:
    seen = []
    x = leaf(0, 0)
    with graph.saved_tensors_hooks(
        lambda t: ("packed", t), lambda p: (seen.append(p[0]), p[1])[1]
    ):
        y = x.exp()
    y.sum().backward()
    assert (seen, x.grad.tolist()) == (["packed"], [1, 1])


def test_unpack_decides_the_value() -> None:
    x = leaf(0, 0)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t * 5):
        y = x.exp()
    y.sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_hooks_act_only_on_what_is_saved_in_the_block() -> None:
    seen: list[Any] = []
    with graph.saved_tensors_hooks(lambda t: (seen.append(t), t)[1], lambda t: t):
        pass
    leaf().exp()
    assert seen == []


def test_the_innermost_hooks_win() -> None:
    seen = []
    outer = graph.saved_tensors_hooks(lambda t: (seen.append("outer"), t)[1], lambda t: t)
    inner = graph.saved_tensors_hooks(lambda t: (seen.append("inner"), t)[1], lambda t: t)
    with outer:
        with inner:
            leaf().exp()
        leaf().exp()
    assert seen == ["inner", "outer"]


def test_hooks_see_what_a_custom_function_saves() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, None)
        return x * x

    made = function(forward, lambda ctx, g: g * 2 * ctx.saved_tensors[0])
    seen = []
    x = leaf(3)
    with graph.saved_tensors_hooks(lambda t: (seen.append(t.item()), t)[1], lambda t: t):
        y = made.apply(x)
    y.backward()
    assert (seen, x.grad.item()) == ([3], 6)


def test_pack_does_not_record() -> None:
    seen = []

    def pack(t: Any) -> Any:
        seen.append((t * 2).requires_grad)
        return t

    with graph.saved_tensors_hooks(pack, lambda t: t):
        leaf().exp()
    assert seen == [False]


def test_pack_must_not_write_into_what_it_gets() -> None:
    with (
        pytest.raises(RuntimeError, match="pack hook is modifying its input in place"),
        graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t),
    ):
        leaf().exp()


def test_unpack_must_return_a_tensor() -> None:
    with graph.saved_tensors_hooks(lambda t: 5, lambda p: p):
        y = leaf().exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got"):
        y.sum().backward()


def test_an_error_in_pack_leaves_the_mode_usable() -> None:
    def pack(t: Any) -> Any:
        raise KeyError

    with pytest.raises(KeyError), graph.saved_tensors_hooks(pack, lambda t: t):
        leaf().exp()
    assert leaf().exp().requires_grad


def test_hooks_can_be_forbidden() -> None:
    with (
        pytest.raises(RuntimeError, match="not in here"),
        graph.disable_saved_tensors_hooks("not in here"),
        graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        pass


def test_hooks_are_allowed_again_afterwards() -> None:
    with graph.disable_saved_tensors_hooks("not in here"):
        pass
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def test_save_on_cpu_keeps_copies() -> None:
    x = leaf(3, 4)
    y = x * 1
    with graph.save_on_cpu():
        z = (y * y).sum()
    y.data.zero_()
    z.backward()
    assert x.grad.tolist() == [6, 8]


def test_mutation_of_saved_tensors_can_be_allowed() -> None:
    x = leaf(3, 4)
    with graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = (y * y).sum()
        y.zero_()
        z.backward()
    assert x.grad.tolist() == [6, 8]


def test_increment_version_tells_of_a_write_from_outside() -> None:
    y = leaf() * 1
    z = (y * y).sum()
    graph.increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


# -- hooks on several tensors ----------------------------------------------------------


def test_the_hook_is_called_once_with_all_gradients() -> None:
    seen = []
    a, b = leaf(2), leaf(3)
    graph.register_multi_grad_hook([a, b], lambda gs: seen.append([g.item() for g in gs]))
    (a * b).backward()
    assert seen == [[3, 2]]


def test_a_gradient_that_does_not_come_is_none() -> None:
    seen: list[Any] = []
    a, b = leaf(2), leaf(3)
    graph.register_multi_grad_hook([a, b], seen.append)
    (a * 5).backward()
    assert seen == [[torch.tensor([5.0]), None]]


def test_the_hook_is_called_in_each_pass() -> None:
    seen: list[Any] = []
    a, b = leaf(2), leaf(3)
    graph.register_multi_grad_hook([a, b], seen.append)
    (a * b).backward()
    (a * b).backward()
    assert len(seen) == 2


def test_the_hook_can_be_removed() -> None:
    seen: list[Any] = []
    a = leaf(2)
    graph.register_multi_grad_hook([a], seen.append).remove()
    (a * 5).backward()
    assert seen == []


def test_the_hook_holds_for_a_block() -> None:
    seen: list[Any] = []
    a = leaf(2)
    with graph.register_multi_grad_hook([a], seen.append):
        (a * 5).backward()
    (a * 5).backward()
    assert len(seen) == 1


def test_any_calls_the_hook_with_the_first_gradient_of_a_pass() -> None:
    seen: list[Any] = []
    a, b = leaf(2), leaf(3)
    graph.register_multi_grad_hook([a, b], seen.append, mode="any")
    (a * b).backward()
    assert len(seen) == 1


def test_a_pass_that_failed_leaves_nothing_behind() -> None:
    def fail(ctx: Any, g: Any) -> Any:
        raise KeyError

    seen: list[Any] = []
    a, b = leaf(2), leaf(3)
    graph.register_multi_grad_hook([a, b], lambda gs: seen.append(gs))
    with pytest.raises(KeyError):
        (a * function(lambda ctx, x: x * 1, fail).apply(b * 1)).backward()
    (a * b).backward()
    assert len(seen) == 1


def test_another_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        graph.register_multi_grad_hook([leaf()], print, mode="some")  # type: ignore
