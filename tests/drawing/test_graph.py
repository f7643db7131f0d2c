"""The graph as data: vertices, links, lines of the program, saved tensors, sizes."""

from __future__ import annotations

import inspect
import math
import threading
from typing import Any

import pytest
from support import function, leaf

import gradfn as torch
from gradfn.drawing import Graph, Vertex, draw, graph_of, record
from gradfn.drawing.facts import facts

Square = function(
    lambda ctx, x: (ctx.save_for_backward(x), x * x)[1],
    lambda ctx, g: 2 * ctx.saved_tensors[0] * g,
)


def one(found: Graph, label: str) -> Vertex:
    (vertex,) = [v for v in found.vertices.values() if v.label == label]
    return vertex


def arrows(found: Graph) -> set[tuple[str, str]]:
    """(from, to) for each link, in the direction of the values."""
    labels = {key: v.label for key, v in found.vertices.items()}
    return {(labels[x.target], labels[x.source]) for x in found.links}


# -- vertices and links ----------------------------------------------------------------


def test_ops_leaves_and_results_are_there_with_their_links() -> None:
    x, w = leaf(), leaf(3, 4)
    y = (x * w).sum()
    found = draw(y).graph
    assert arrows(found) == {("x", "mul"), ("w", "mul"), ("mul", "sum"), ("sum", "y")}
    mul = one(found, "mul")
    assert (mul.kind, mul.name, mul.shape, mul.dtype) == (
        "op",
        "MulBackward0",
        (2,),
        "float32",
    )
    assert one(found, "x").kind == "leaf"
    assert one(found, "y").kind == "result"
    assert found.recorded == 2


def test_an_argument_without_history_leaves_its_number_to_the_others() -> None:
    x = leaf()
    y = torch.ones(2) / x
    found = draw(y).graph
    (link,) = [x for x in found.links if x.source == one(found, "div").key]
    assert link.argument == 1


def test_custom_functions_stand_out() -> None:
    x = leaf()
    y = Square.apply(x)
    v = one(draw(y).graph, "Mine")
    assert (v.kind, v.name) == ("function", "MineBackward")


def test_outputs_of_one_op_are_told_apart() -> None:
    x = leaf(1, 2, 3, 4)
    a, b = x.split(2)
    found = draw(a * b).graph
    split = one(found, "split")
    assert split.outputs == {0: ((2,), "float32"), 1: ((2,), "float32")}
    into = [x for x in found.links if x.target == split.key]
    assert {(x.argument, x.output) for x in into} == {(0, 0), (1, 1)}


def test_several_results_share_one_graph() -> None:
    x = leaf()
    y = x.exp()
    found = draw({"first": y, "second": [y * 2, None]}).graph
    assert [v.label for v in found.vertices.values()].count("exp") == 1
    assert len([v for v in found.vertices.values() if v.kind == "result"]) == 2


def test_a_write_into_a_view_is_named_after_the_op() -> None:
    x = leaf()
    base = torch.zeros(4)
    base[:2].add_(x)
    assert "add_ into a view" in {v.label for v in draw(base).graph.vertices.values()}


def test_parameters_are_named_by_a_module_a_dict_or_pairs() -> None:
    net = torch.nn.Linear(2, 1)
    y = net(torch.ones(1, 2))
    named = dict(net.named_parameters())
    for params in (net, named, list(named.items())):
        assert {"weight", "bias"} <= {
            v.label for v in draw(y, params=params).graph.vertices.values()
        }


def test_a_module_in_a_variable_names_its_parameters() -> None:
    net = torch.nn.Linear(2, 1)
    labels = {v.label for v in draw(net(torch.ones(1, 2))).graph.vertices.values()}
    assert {"net.weight", "net.bias"} <= labels


def test_params_of_another_kind_are_refused() -> None:
    with pytest.raises(TypeError, match=r"params must be a Module.*got int"):
        draw(leaf() * 2, params=3)


def test_what_was_not_recorded_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match=r"none of the tensors requires grad"):
        draw(torch.ones(2))
    with pytest.raises(TypeError, match="needs a tensor, a grad_fn or a container"):
        draw("loss")


def test_a_node_can_be_drawn() -> None:
    y = leaf() * 2
    assert one(draw(y.grad_fn).graph, "mul").kind == "op"


def test_a_leaf_alone_is_a_graph() -> None:
    x = leaf()
    found = draw(x).graph
    assert sorted(v.kind for v in found.vertices.values()) == ["leaf", "result"]


# -- what is saved ---------------------------------------------------------------------


def test_saved_tensors_and_their_bytes() -> None:
    x = leaf()
    found = draw(Square.apply(x).exp()).graph
    (kept,) = one(found, "Mine").saved
    assert (kept.name, kept.shape, kept.dtype, kept.bytes) == (
        "saved_tensors[0]",
        (2,),
        "float32",
        8,
    )
    (result,) = one(found, "exp").saved
    assert (result.name, result.bytes) == ("result", 8)
    assert found.bytes == 16


def test_memory_that_several_nodes_keep_counts_once() -> None:
    x = torch.ones(100, requires_grad=True)
    found = draw(x.sin() + x[:50].cos().sum()).graph
    assert one(found, "sin").bytes == 400
    assert one(found, "cos").bytes == 200
    assert found.bytes == 400


def test_tensors_put_on_ctx_are_seen() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mask = x > 1
        return x * ctx.mask

    y = function(forward, lambda ctx, g: g * ctx.mask).apply(leaf())
    (kept,) = one(draw(y).graph, "Mine").saved
    assert (kept.name, kept.dtype, kept.bytes) == ("ctx.mask", "bool", 2)


def test_saved_tensors_that_hooks_packed_are_seen_where_they_are_tensors() -> None:
    with torch.autograd.graph.save_on_cpu():
        y = leaf().sin()
    assert [s.bytes for s in one(draw(y).graph, "sin").saved] == [8]


def test_saved_tensors_can_be_drawn() -> None:
    x = leaf()
    found = draw(x.sin(), saved=True).graph
    assert ("self", "sin") in arrows(found)


def test_a_released_graph_can_be_drawn() -> None:
    y = leaf().sin().sum()
    y.backward()
    assert one(draw(y).graph, "sin").saved == ()


# -- what record() adds ------------------------------------------------------------------


def test_lines_are_remembered_inside_record_alone() -> None:
    x = leaf()
    outside = x * 2
    with record():
        y = outside.exp()
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    found = draw(y).graph
    place = one(found, "exp").place
    assert place is not None
    assert (place.file, place.line) == (__file__, line)
    assert place.function == test_lines_are_remembered_inside_record_alone.__name__
    assert one(found, "mul").place is None


def test_a_module_of_gradfn_is_not_the_users_line() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Tanh())
    with record():
        y = net(torch.ones(1, 2))
    places = {
        v.place.file for v in draw(y).graph.vertices.values() if v.place is not None
    }
    assert places == {__file__}


def test_gradients_and_saved_bytes_of_a_pass_outlive_it() -> None:
    x = leaf(3, 4)
    with record() as recorder:
        y = (x * x).sum()
        y.backward()
    found = draw(y).graph
    assert one(found, "mul").norms == [math.sqrt(2)]
    assert one(found, "x").norms == [10.0]
    assert one(found, "mul").bytes == 8
    assert recorder.passes == 1
    assert recorder.roots == (y.grad_fn,)
    assert x.grad.tolist() == [6, 8]


def test_the_last_of_several_passes_counts_and_one_inside_another_does_not() -> None:
    def backward(ctx: Any, g: Any) -> Any:
        with torch.enable_grad():
            z = leaf().sum()
        z.backward()
        return g

    with record() as recorder:
        leaf().sum().backward()
        y = function(lambda ctx, x: x * 1, backward).apply(leaf()).sum()
        y.backward()
    assert (recorder.passes, recorder.roots) == (2, (y.grad_fn,))


def test_a_trial_pass_shows_gradients_and_changes_no_grad() -> None:
    x = leaf(3, 4)
    y = (x * x).sum()
    assert one(draw(y, gradients=True).graph, "x").norms == [10.0]
    assert x.grad is None
    y.backward()
    assert x.grad.tolist() == [6, 8]


def test_second_derivatives_are_recorded_too() -> None:
    x = leaf(2.0)
    with record():
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    assert h.item() == 12
    assert any(v.norms for v in draw(g).graph.vertices.values())


def test_record_and_anomaly_mode_work_together() -> None:
    x = leaf()
    with record(), torch.autograd.detect_anomaly():
        y = x.sin().sum()
        y.backward()
    assert one(draw(y).graph, "sin").norms == [math.sqrt(2)]


def test_another_thread_is_left_alone() -> None:
    made = []
    with record():
        thread = threading.Thread(target=lambda: made.append(leaf() * 2))
        thread.start()
        thread.join()
    assert one(draw(made[0]).graph, "mul").place is None


def test_hooks_see_the_same_inside_record() -> None:
    seen: list[Any] = []
    x = leaf()
    x.register_hook(lambda g: seen.append(g.tolist()))
    with record():
        y = x * 3
        y.register_hook(lambda g: seen.append(g.tolist()))
        y.sum().backward()
    assert seen == [[1, 1], [3, 3]]


# -- NaN and inf -------------------------------------------------------------------------


def test_the_op_whose_backward_makes_nan_is_marked() -> None:
    x = leaf(0, 4)
    with record():
        y = (x * 1).sqrt().mul(3).sum()
        y.backward()
    found = draw(y).graph
    assert one(found, "sqrt").trouble == "gradient"
    assert [v.label for v in found.vertices.values() if v.trouble] == ["sqrt"]
    assert ("trouble", "NaN or inf arises here in backward") in facts(one(found, "sqrt"))


def test_the_op_whose_result_is_not_finite_is_marked_and_those_behind_it_are_not() -> (
    None
):
    x = leaf(0, 4)
    with record():
        y = (x * 1).log().exp().mul(2).log().sum()
    marked = [v.label for v in draw(y).graph.vertices.values() if v.trouble == "result"]
    assert marked == ["log", "log"]


def test_norms_are_those_of_the_finite_values() -> None:
    x = leaf(0, 4)
    with record():
        y = x.sqrt().sum()
        y.backward()
    assert one(draw(y).graph, "x").norms == [0.25]


def test_graph_of_needs_nothing_of_the_drawing() -> None:
    y = leaf() * 2
    found = graph_of([y.grad_fn])
    assert [v.kind for v in found.vertices.values()] == ["leaf", "op"]


def test_what_runs_under_vmap_is_recorded() -> None:
    x = leaf()
    with record():
        y = x * x
        rows = torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)
        jacobian = torch.func.vmap(lambda t: t.sin() * x)(torch.ones(3, 2))
    assert rows[0].tolist() == [[2, 0], [0, 4]]
    assert one(draw(y).graph, "mul").norms == [math.sqrt(2)]
    assert one(draw(jacobian).graph, "x").shape == (2,)
