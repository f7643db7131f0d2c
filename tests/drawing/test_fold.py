"""Repeated blocks are drawn once, and nothing is shown that is not in the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import leaf

import gradfn as torch
from gradfn.drawing import Graph, draw, graph_of, record
from gradfn.drawing.fold import fold
from gradfn.drawing.graph import ANY
from gradfn.drawing.limit import limited


def recurrent(steps: int) -> Any:
    torch.manual_seed(0)
    W = torch.randn(3, 3, requires_grad=True)
    U = torch.randn(3, 3, requires_grad=True)
    h = torch.zeros(2, 3)
    for _ in range(steps):
        h = torch.tanh(torch.ones(2, 3) @ W + h @ U)
    return h.sum()


def labels(graph: Graph) -> list[str]:
    return [v.label for v in graph.vertices.values()]


def test_a_loop_over_time_is_one_block() -> None:
    found = draw(recurrent(50)).graph
    (block,) = found.blocks
    assert block.count == 50
    drawn = [found.vertices[key] for key in block.members]
    assert [v.label for v in drawn] == ["mm", "mm", "add", "tanh"]
    assert {v.count for v in drawn} == {50}
    assert found.recorded == 50 * 4 + 1


def test_what_a_step_hands_to_the_next_is_marked() -> None:
    found = draw(recurrent(50)).graph
    (carried,) = [x for x in found.links if x.carried]
    ends = (found.vertices[carried.target].label, found.vertices[carried.source].label)
    assert (ends, carried.count) == (("tanh", "mm"), 49)


def test_shared_parameters_stay_outside() -> None:
    found = draw(recurrent(50)).graph
    leaves = [v for v in found.vertices.values() if v.kind == "leaf"]
    assert [v.count for v in leaves] == [1, 1]


def test_a_stack_of_layers_is_one_block_with_its_own_parameters() -> None:
    layers = [
        layer for _ in range(6) for layer in (torch.nn.Linear(4, 4), torch.nn.Tanh())
    ]
    net = torch.nn.Sequential(*layers)
    found = draw(net(torch.ones(1, 4)), params=net).graph
    (block,) = found.blocks
    inside = {found.vertices[k].label for k in block.members}
    assert any(label.endswith("weight … 10.weight") for label in inside)
    assert any(label.endswith("bias … 10.bias") for label in inside)
    assert [v.count for v in found.vertices.values() if "… 10.bias" in v.label] == [6]


def test_blocks_inside_blocks() -> None:
    x = leaf()
    for _ in range(5):
        for _ in range(4):
            x = (x * 2).sin()
        x = x.exp()
    found = draw(x).graph
    outer, inner = found.blocks
    assert (outer.count, inner.count, inner.parent) == (5, 4, outer.key)
    assert labels(found).count("exp") == 1
    assert {v.count for v in found.vertices.values() if v.label == "sin"} == {20}


def test_inputs_of_each_step_become_one() -> None:
    inputs = [torch.ones(2, 3, requires_grad=True) for _ in range(8)]
    h = torch.zeros(2, 3, requires_grad=True)
    for x in inputs:
        h = (h * x).sin()
    found = draw(h).graph
    assert sorted(v.count for v in found.vertices.values() if v.kind == "leaf") == [1, 8]


def test_gradients_are_kept_in_the_order_of_the_program() -> None:
    x = leaf(2.0)
    with record():
        y = x
        for _ in range(6):
            y = (y * 2).neg()
        y.sum().backward()
    found = draw(y).graph
    (norms,) = [v.norms for v in found.vertices.values() if v.label == "neg"]
    assert norms == [32, 16, 8, 4, 2, 1]


def test_few_repetitions_are_drawn_as_they_are() -> None:
    x = leaf()
    y = (((x * 2).sin() * 2).sin() * 2).sin()
    assert draw(y).graph.blocks == []
    assert len(draw(y).graph.vertices) == 8


def test_folding_can_be_left_out() -> None:
    found = draw(recurrent(50), fold=False).graph
    assert found.blocks == []
    assert labels(found).count("tanh") == 50


def test_ten_thousand_nodes_are_drawn_as_a_dozen() -> None:
    found = draw(recurrent(2500)).graph
    assert found.recorded == 10_001
    assert len(found.vertices) < 16


@pytest.mark.parametrize("limit", [5, 50])
def test_what_does_not_fold_is_cut_off_far_from_the_result(limit: int) -> None:
    x = leaf()
    ops = [torch.sin, torch.exp, torch.cos, torch.tanh, torch.neg, torch.sigmoid]
    for i in np.random.default_rng(0).integers(0, len(ops), 300):
        x = ops[i](x)
    found = draw(x, limit=limit, fold=False).graph
    (rest,) = [v for v in found.vertices.values() if v.kind == "more"]
    assert len(found.vertices) == limit + 1
    assert rest.count == 302 - limit
    assert any(v.kind == "result" for v in found.vertices.values())


def test_a_small_graph_is_not_cut() -> None:
    found = draw(leaf() * 2).graph
    assert limited(found, 10) is found


# -- any graph -----------------------------------------------------------------------------

OPS = [
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: a.sin(),
    lambda a, b: b.exp(),
    lambda a, b: (a.reshape(2, 1) @ b.reshape(1, 2)).sum(0),
]


@given(
    st.lists(
        st.tuples(
            st.lists(
                st.tuples(st.integers(0, 4), st.integers(1, 4), st.integers(1, 9)),
                min_size=1,
                max_size=5,
            ),
            st.integers(1, 8),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_folding_merges_and_never_invents(program: Any) -> None:
    values = [leaf(), leaf(3, 4)]
    for block, times in program:
        for _ in range(times):
            for op, i, j in block:
                a, b = (values[-min(k, len(values))] for k in (i, j))
                values.append(OPS[op](a, b))
    with record():
        root = sum(values)
    before = graph_of([root.grad_fn], {}, ["root"])
    after = fold(graph_of([root.grad_fn], {}, ["root"]))
    # Every vertex and link is counted once, in one that looks the same.
    assert sum(v.count for v in after.vertices.values()) == len(before.vertices)
    assert sum(x.count for x in after.links) == len(before.links)
    assert pairs(after) <= pairs(before)
    for block in after.blocks:
        for key in block.members:
            assert after.vertices[key].count % block.count == 0
        if block.parent is not None:
            (around,) = [b for b in after.blocks if b.key == block.parent]
            ops = {k for k in block.members if after.vertices[k].kind != "leaf"}
            assert ops <= set(around.members)


def pairs(graph: Graph) -> set[tuple[str, str]]:
    at = graph.vertices
    return {(at[x.source].name, at[x.target].name) for x in graph.links}


def test_links_between_a_block_and_one_op_are_one() -> None:
    torch.manual_seed(0)
    parts = torch.ones(20, 2, requires_grad=True).split(1)
    found = draw(torch.cat([part.sin().exp() for part in parts])).graph
    at = found.vertices
    ends = {(at[x.target].label, at[x.source].label): x for x in found.links}
    assert len(ends) == len(found.links)
    into, out = ends["split", "sin"], ends["exp", "cat"]
    assert (into.count, into.output, into.argument) == (20, ANY, 0)
    assert (out.count, out.output, out.argument) == (20, 0, ANY)
