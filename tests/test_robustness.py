"""Depth, threads, interruptions, memory: what must hold when things get rough."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradfn as torch


class Double(torch.autograd.Function):
    """2x, with an attribute that can be watched."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        ctx.saved_tensors
        return g * 2


@pytest.fixture
def without_gc() -> Iterator[None]:
    """What dies now dies by reference counting."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def leaf(*values: float) -> Any:
    return torch.tensor(values or [1.0, 2.0], requires_grad=True)


# -- depth -----------------------------------------------------------------------------


def test_a_chain_of_a_million_nodes_is_built_run_and_freed() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(1_000_000):
        y = y + 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1.0]
    del y


def test_backward_inside_backward_nests_two_hundred_deep() -> None:
    class Nest(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, depth: int) -> Any:
            ctx.depth = depth
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.depth:
                with torch.enable_grad():
                    x = leaf(1.0)
                    Nest.apply(x, ctx.depth - 1).sum().backward()
                assert x.grad.tolist() == [2.0]
            return g * 2, None

    x = leaf(1.0)
    Nest.apply(x, 200).sum().backward()
    assert x.grad.tolist() == [2.0]


# -- threads ---------------------------------------------------------------------------


def in_threads(work: Any, count: int = 4) -> None:
    """Runs `work` in several threads; raises the first error."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def test_threads_add_to_one_leaf_without_losing_any() -> None:
    x = leaf(1.0, 1.0, 1.0)

    def work() -> None:
        for _ in range(200):
            (x * 2).sum().backward()

    in_threads(work)
    assert x.grad.tolist() == [1600.0] * 3


def test_one_graph_is_walked_by_several_threads() -> None:
    x = leaf(1.0, 2.0)
    y = (Double.apply(x) * x).exp().sum()
    (want,) = torch.autograd.grad(y, x, retain_graph=True)

    def work() -> None:
        for _ in range(50):
            (got,) = torch.autograd.grad(y, x, retain_graph=True)
            assert got.tolist() == want.tolist()

    in_threads(work)


def test_grad_mode_is_the_threads_own() -> None:
    seen: list[bool] = []
    with torch.no_grad():
        in_threads(lambda: seen.append(torch.is_grad_enabled()), 1)
    assert seen == [True]


def test_no_lock_is_held_while_a_hook_runs() -> None:
    x = leaf()
    done: list[Any] = []

    def hook(t: Any) -> None:
        in_threads(lambda: (x.detach().requires_grad_() * 1).sum().backward(), 1)
        in_threads(lambda: done.append(torch.autograd.grad((x * 3).sum(), x)), 1)

    x.register_post_accumulate_grad_hook(hook)
    x.sum().backward()
    assert len(done) == 1


# -- interruptions ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_in_backward_leaves_everything_usable(kind: Any) -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise kind("stop")

    x = leaf()
    with pytest.raises(kind, match="stop"):
        Fails.apply(x).sum().backward()
    assert torch.is_grad_enabled()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_an_exception_in_forward_leaves_the_mode_as_it_was() -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            raise KeyError("no")

    with pytest.raises(KeyError):
        Fails.apply(leaf())
    assert torch.is_grad_enabled()
    y = leaf() * 2
    assert y.requires_grad
    assert y._extra is None  # nothing is taken for an intermediate of that forward


def test_no_grad_holds_over_the_steps_of_a_generator_only() -> None:
    @torch.no_grad()
    def steps() -> Any:
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    seen = []
    for inside in steps():
        seen += [inside, torch.is_grad_enabled()]
    assert seen == [False, True, False, True]


def test_no_grad_holds_over_a_coroutine_only() -> None:
    @torch.no_grad()
    async def inside() -> bool:
        await asyncio.sleep(0)
        return torch.is_grad_enabled()

    async def both() -> Any:
        return await asyncio.gather(inside(), outside())

    async def outside() -> bool:
        await asyncio.sleep(0)
        return torch.is_grad_enabled()

    assert asyncio.run(both()) == [False, True]


# -- memory ----------------------------------------------------------------------------


class Token:
    """Something whose death can be seen."""


def watched(ctx: Any) -> weakref.ref[Any]:
    ctx.token = Token()
    return weakref.ref(ctx.token)


@pytest.mark.usefixtures("without_gc")
def test_a_graph_dies_with_its_result() -> None:
    x = leaf()
    y = Double.apply(x).exp().sum()
    ref = watched(y.grad_fn.next_functions[0][0].next_functions[0][0])
    del y
    assert ref() is None


@pytest.mark.usefixtures("without_gc")
def test_a_function_that_saves_its_output_dies_with_it() -> None:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[1]

    y = Exp.apply(leaf())
    ref = watched(y.grad_fn)
    y.sum().backward()
    del y
    assert ref() is None


@pytest.mark.usefixtures("without_gc")
def test_saved_tensors_are_let_go_by_backward() -> None:
    big = torch.tensor([3.0])
    ref = weakref.ref(big)
    x = leaf(1.0)
    y = (x * big).sum()
    del big
    assert ref() is not None
    y.backward()
    assert ref() is None


@pytest.mark.usefixtures("without_gc")
def test_a_failed_second_backward_leaves_no_cycle() -> None:
    x = leaf()
    y = (x * x).sum()
    ref = weakref.ref(y.grad_fn)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    del y
    assert ref() is None


def test_grad_takes_over_a_gradient_that_nobody_else_holds() -> None:
    made: list[int] = []

    class Remembers(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            out = g * 5
            made.append(out.data_ptr())
            return out

    x = leaf(*[1.0] * 64)
    Remembers.apply(x).sum().backward()
    assert x.grad.data_ptr() == made[0]


def test_gradients_of_siblings_do_not_share_memory() -> None:
    a, b = leaf(), leaf()
    (a + b).sum().backward()
    a.grad.mul_(7)
    assert b.grad.tolist() == [1.0, 1.0]


def test_a_backward_that_writes_into_its_gradient_changes_nobody_elses() -> None:
    class Writes(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.mul_(3)

    a, b = leaf(), leaf()
    (Writes.apply(a) + b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([3.0, 3.0], [1.0, 1.0])


def test_a_tensor_is_multiplied_by_itself_in_place_with_the_right_gradient() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    y.mul_(y)
    y.sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]


def test_steps_do_not_pile_up() -> None:
    w = leaf(*[0.5] * 4)

    def step() -> None:
        x = w * 1.5
        x.register_hook(lambda g: g * 1.0)
        x.view(2, 2)[0] *= 2
        a, b = Double.apply(x).tanh().view(2, 2).unbind()
        (a * b).sum().backward()
        w.grad = None

    for _ in range(50):
        step()
    gc.collect()
    before = len(gc.get_objects())
    gc.disable()
    for _ in range(200):
        step()
    after = len(gc.get_objects())
    gc.enable()
    assert after - before < 20


def test_no_warning_of_numpy_reaches_the_user() -> None:
    x = leaf(0.0, -1.0, 1e38)
    with np.errstate(all="raise"):
        y = x.log() + x.sqrt() + x * 1e38 + x / 0.0
        y.sum().backward()
    assert torch.isnan(x.grad).any()
