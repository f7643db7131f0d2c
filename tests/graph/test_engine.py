"""The engine: order, depth, threads, nested and failing passes, what is left behind."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support import function, leaf

import gradfn as torch
from gradfn.autograd import grad
from gradfn.graph.engine import Run, current_run


def noting(name: str, notes: list[str]) -> Any:
    """The identity, which notes when its backward runs."""
    return function(lambda ctx, x: x * 1, lambda ctx, g: (notes.append(name), g)[1]).apply


# -- paths and sums --------------------------------------------------------------------


def test_gradients_of_several_paths_add_up() -> None:
    x = leaf(2)
    y = x * 3
    (y * y + y + x).backward()
    assert x.grad.item() == 40


def test_a_tensor_used_many_times_gets_one_sum() -> None:
    x = leaf(1)
    sum((x * i for i in range(100)), x).backward()
    assert x.grad.item() == 4951


def test_a_diamond_runs_each_node_once() -> None:
    notes: list[str] = []
    y = noting("top", notes)(leaf(1))
    (y * 2 + y * 3).backward()
    assert notes == ["top"]


def test_the_node_recorded_last_runs_first() -> None:
    notes: list[str] = []
    x = leaf(1)
    a, b, c = (noting(name, notes)(x) for name in "abc")
    (b + c + a).backward()
    assert notes == ["c", "b", "a"]


def test_a_node_waits_for_all_that_comes_to_it() -> None:
    notes: list[str] = []
    y = noting("y", notes)(leaf(1))
    z = noting("z", notes)(y)
    (z * 2 + y).backward()
    assert notes == ["z", "y"]


def test_a_node_without_a_gradient_is_passed_over() -> None:
    stops = function(lambda ctx, x: x * 1, lambda ctx, g: None)
    x = leaf(1)
    stops.apply((x * 2).exp()).backward()
    assert x.grad is None


def test_a_function_without_a_gradient_runs_on_zeros() -> None:
    notes: list[str] = []
    stops = function(lambda ctx, x: x * 1, lambda ctx, g: None)
    x = leaf(1)
    stops.apply(noting("below", notes)(x)).backward()
    assert (notes, x.grad.item()) == (["below"], 0)


def test_a_partial_pass_runs_only_what_leads_there() -> None:
    notes: list[str] = []
    x, w = leaf(1), leaf(1)
    y = noting("x", notes)(x) * noting("w", notes)(w)
    grad(y, x)
    assert notes == ["x"]


def test_a_partial_pass_stops_at_a_computed_tensor() -> None:
    notes: list[str] = []
    y = noting("below", notes)(leaf(1))
    grad(y * 2, y)
    assert notes == []


def test_leaves_that_nothing_leads_to_are_not_touched() -> None:
    x, w = leaf(1), leaf(1)
    (x * w.detach()).backward()
    assert w.grad is None


# -- depth -----------------------------------------------------------------------------


class Nest(torch.autograd.Function):
    """2x, whose backward runs another backward, `depth` levels deep."""

    @staticmethod
    def forward(ctx: Any, x: Any, depth: int) -> Any:
        ctx.depth = depth
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        if ctx.depth:
            with torch.enable_grad():
                x = leaf(1)
                Nest.apply(x, ctx.depth - 1).backward(g)
            return x.grad, None
        return g * 2, None


@pytest.mark.parametrize("depth", [1, Run.nested - 1, Run.nested, 200])
def test_a_pass_may_nest_in_another(depth: int) -> None:
    x = leaf(1)
    Nest.apply(x, depth).backward()
    assert x.grad.item() == 2


def test_an_error_comes_up_from_a_nested_pass_on_another_thread() -> None:
    class Fail(Nest):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if not ctx.depth:
                raise KeyError("deep")
            with torch.enable_grad():
                Fail.apply(leaf(1), ctx.depth - 1).backward()

    with pytest.raises(KeyError, match="deep"):
        Fail.apply(leaf(1), Run.nested + 5).backward()


def test_a_nested_pass_sees_the_mode_of_its_caller() -> None:
    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        with torch.enable_grad():
            noting("inner", [])(leaf(1)).backward()
            seen.append(torch.is_grad_enabled())
        seen.append(torch.is_grad_enabled())
        return g

    function(lambda ctx, x: x * 1, backward).apply(leaf(1)).backward()
    assert seen == [True, False]


def test_a_wide_sum_is_walked() -> None:
    x = leaf(1)
    torch.stack([x * 1 for _ in range(5000)]).sum().backward()
    assert x.grad.item() == 5000


def test_a_deep_graph_of_functions_is_walked_and_freed() -> None:
    same = noting("", [])
    x = leaf(1)
    y = x
    for _ in range(20_000):
        y = same(y)
    y.backward()
    assert x.grad.item() == 1


# -- threads ---------------------------------------------------------------------------


def in_threads(count: int, work: Any) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def test_threads_add_into_one_leaf() -> None:
    x = leaf(*[1] * 50)
    in_threads(8, lambda: [(x * x).sum().backward() for _ in range(50)])
    assert x.grad.tolist() == [800] * 50


def test_threads_walk_one_graph() -> None:
    x = leaf(2)
    y = noting("", [])(x).exp() * x
    want = grad(y, x, retain_graph=True)
    found = []
    in_threads(4, lambda: found.append(grad(y, x, retain_graph=True)))
    assert found == [want] * 4


def test_a_pass_runs_on_the_callers_thread() -> None:
    seen: list[Any] = []
    spy = function(
        lambda ctx, x: x * 1, lambda ctx, g: (seen.append(threading.get_ident()), g)[1]
    )
    spy.apply(leaf(1)).backward()
    assert seen == [threading.get_ident()]


# -- errors ----------------------------------------------------------------------------


def fails(kind: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        raise kind("stop")

    return function(lambda ctx, x: x * 1, backward).apply


kinds = pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, GeneratorExit])


@kinds
def test_an_error_in_backward_comes_out_as_it_is(kind: Any) -> None:
    with pytest.raises(kind, match="stop"):
        fails(kind)(leaf(1)).backward()


@kinds
@pytest.mark.parametrize("create", [False, True])
def test_the_mode_is_as_before_after_an_error(kind: Any, create: bool) -> None:
    with pytest.raises(kind):
        fails(kind)(leaf(1)).backward(create_graph=create)
    assert torch.is_grad_enabled()


@kinds
def test_no_pass_is_under_way_after_an_error(kind: Any) -> None:
    with pytest.raises(kind):
        fails(kind)(leaf(1)).backward()
    assert current_run() is None


@kinds
def test_another_pass_over_the_same_leaf_works_after_an_error(kind: Any) -> None:
    x = leaf(3)
    with pytest.raises(kind):
        fails(kind)(x).backward()
    (x * x).backward()
    assert x.grad.item() == 6


def test_what_the_pass_had_not_reached_can_be_walked_after_an_error() -> None:
    x = leaf(3)
    y = x * x
    with pytest.raises(ValueError, match="stop"):
        fails(ValueError)(y).backward()
    assert grad(y, x)[0].item() == 6


def test_an_error_in_a_hook_leaves_the_leaf_usable() -> None:
    x = leaf(3)

    def hook(t: Any) -> None:
        raise KeyError

    handle = x.register_post_accumulate_grad_hook(hook)
    with pytest.raises(KeyError):
        (x * x).backward()
    handle.remove()
    (x * x).backward()
    assert x.grad.item() == 12


def test_an_error_in_forward_is_followed_by_working_ops() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        raise KeyError

    with pytest.raises(KeyError):
        function(forward, None).apply(leaf(1))
    assert (leaf(1) * 2).requires_grad


# -- release ---------------------------------------------------------------------------


def test_a_node_is_released_as_soon_as_it_has_run() -> None:
    x = leaf(2)
    y = x * x
    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        with pytest.raises(RuntimeError, match="second time"):
            z.grad_fn._saved_self
        seen.append(g.item())
        return g

    z = function(lambda ctx, x: x * 1, backward).apply(y)
    z = z * z
    z.backward()
    assert seen == [8]
