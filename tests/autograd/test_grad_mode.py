"""no_grad, enable_grad, set_grad_enabled, inference_mode: blocks and decorators."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from support import leaf

import gradfn as torch
from gradfn import is_grad_enabled, is_inference_mode_enabled

modes = pytest.mark.parametrize(
    ("guard", "within"),
    [
        (torch.no_grad, False),
        (torch.enable_grad, True),
        (lambda: torch.set_grad_enabled(False), False),
        (torch.inference_mode, False),
    ],
    ids=["no_grad", "enable_grad", "set_grad_enabled", "inference_mode"],
)


# -- blocks ----------------------------------------------------------------------------


def test_grad_mode_is_on_at_first() -> None:
    assert is_grad_enabled()


@modes
def test_a_block_sets_the_mode(guard: Any, within: bool) -> None:
    with guard():
        assert is_grad_enabled() is within


@modes
def test_the_mode_is_as_before_after_a_block(guard: Any, within: bool) -> None:
    with guard():
        pass
    assert is_grad_enabled()


@modes
def test_the_mode_is_as_before_after_an_error(guard: Any, within: bool) -> None:
    with pytest.raises(KeyError), guard():
        raise KeyError
    assert is_grad_enabled()


@modes
def test_blocks_nest(guard: Any, within: bool) -> None:
    with torch.no_grad():
        with guard():
            assert is_grad_enabled() is within
        assert not is_grad_enabled()


def test_one_guard_may_be_entered_again_inside_itself() -> None:
    guard = torch.no_grad()
    with guard, guard:
        pass
    assert is_grad_enabled()


def test_results_under_no_grad_require_no_grad() -> None:
    with torch.no_grad():
        y = leaf() * 2
    assert (y.requires_grad, y.grad_fn) == (False, None)


def test_results_under_enable_grad_are_recorded() -> None:
    with torch.no_grad(), torch.enable_grad():
        assert (leaf() * 2).requires_grad


def test_a_new_leaf_may_require_grad_under_no_grad() -> None:
    with torch.no_grad():
        assert leaf().requires_grad


# -- set_grad_enabled ------------------------------------------------------------------


def test_set_grad_enabled_acts_at_once() -> None:
    torch.set_grad_enabled(False)
    off = is_grad_enabled()
    torch.set_grad_enabled(True)
    assert (off, is_grad_enabled()) == (False, True)


def test_set_grad_enabled_keeps_for_its_block_only() -> None:
    with torch.set_grad_enabled(False):
        assert not is_grad_enabled()
    assert is_grad_enabled()


@pytest.mark.parametrize("mode", [True, False])
def test_set_grad_enabled_as_a_decorator_leaves_the_mode_alone(mode: bool) -> None:
    decorated = torch.set_grad_enabled(mode)(is_grad_enabled)
    assert (is_grad_enabled(), decorated()) == (True, mode)


# -- decorators ------------------------------------------------------------------------


@modes
def test_a_decorated_function_runs_in_the_mode(guard: Any, within: bool) -> None:
    assert guard()(is_grad_enabled)() is within


@pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
def test_a_decorator_needs_no_parentheses(guard: Any) -> None:
    assert guard(is_grad_enabled)() is False


def test_a_decorated_function_keeps_its_name() -> None:
    assert torch.no_grad()(is_grad_enabled).__name__ == "is_grad_enabled"


def test_a_decorated_function_may_call_itself() -> None:
    @torch.no_grad()
    def depth(n: int) -> Any:
        return [*(depth(n - 1) if n else []), is_grad_enabled()]

    assert depth(2) == [False] * 3
    assert is_grad_enabled()


def test_a_decorated_class_is_made_in_the_mode() -> None:
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Thing:
            def __init__(self) -> None:
                self.recording = is_grad_enabled()

    assert Thing().recording is False


# -- generators ------------------------------------------------------------------------


@torch.no_grad()
def counting(n: int) -> Any:
    """Yields whether ops record, adds up what it is sent, and returns the sum."""
    total = 0
    for _ in range(n):
        total += (yield is_grad_enabled()) or 0
    return total


def test_a_generator_runs_in_the_mode_and_its_caller_does_not() -> None:
    assert [(inside, is_grad_enabled()) for inside in counting(2)] == [(False, True)] * 2


def test_a_generator_gets_what_it_is_sent_and_returns_its_value() -> None:
    steps = counting(2)
    next(steps)
    steps.send(3)
    with pytest.raises(StopIteration) as stop:
        steps.send(4)
    assert stop.value.value == 7


def test_a_generator_gets_what_is_thrown_into_it() -> None:
    @torch.no_grad()
    def patient() -> Any:
        try:
            yield 1
        except KeyError:
            yield is_grad_enabled()

    steps = patient()
    next(steps)
    assert steps.throw(KeyError()) is False


def test_a_closed_generator_cleans_up_in_the_mode() -> None:
    seen = []

    @torch.no_grad()
    def careful() -> Any:
        try:
            yield
        finally:
            seen.append(is_grad_enabled())

    steps = careful()
    next(steps)
    steps.close()
    assert (seen, is_grad_enabled()) == ([False], True)


def test_a_generator_that_is_left_half_way_leaves_the_mode_alone() -> None:
    steps = counting(3)
    next(steps)
    del steps
    assert is_grad_enabled()


def test_a_block_inside_a_plain_generator_leaks_as_in_pytorch() -> None:
    def leaky() -> Any:
        with torch.no_grad():
            yield

    steps = leaky()
    next(steps)
    inside = is_grad_enabled()
    steps.close()
    assert (inside, is_grad_enabled()) == (False, True)


# -- coroutines ------------------------------------------------------------------------


def test_a_coroutine_runs_in_the_mode_and_others_do_not() -> None:
    @torch.no_grad()
    async def inside() -> bool:
        await asyncio.sleep(0)
        return is_grad_enabled()

    async def outside() -> bool:
        await asyncio.sleep(0)
        return is_grad_enabled()

    async def both() -> Any:
        return await asyncio.gather(inside(), outside(), inside())

    assert asyncio.run(both()) == [False, True, False]


def test_an_awaited_coroutine_leaves_the_callers_mode() -> None:
    @torch.no_grad()
    async def inside() -> bool:
        await asyncio.sleep(0)
        return is_grad_enabled()

    async def caller() -> Any:
        return await inside(), is_grad_enabled()

    assert asyncio.run(caller()) == (False, True)


def test_a_block_in_a_task_is_that_tasks_own() -> None:
    async def off() -> None:
        with torch.no_grad():
            await asyncio.sleep(0.01)

    async def main() -> bool:
        task = asyncio.create_task(off())
        await asyncio.sleep(0)
        during = is_grad_enabled()
        await task
        return during

    assert asyncio.run(main()) is True


def test_an_async_generator_runs_in_the_mode_and_its_caller_does_not() -> None:
    @torch.no_grad()
    async def steps() -> Any:
        yield is_grad_enabled()
        yield is_grad_enabled()

    async def main() -> Any:
        return [(inside, is_grad_enabled()) async for inside in steps()]

    assert asyncio.run(main()) == [(False, True)] * 2


def test_an_async_generator_that_is_closed_cleans_up() -> None:
    seen = []

    @torch.no_grad()
    async def steps() -> Any:
        try:
            yield
        finally:
            seen.append(is_grad_enabled())

    async def main() -> None:
        stream = steps()
        await anext(stream)
        await stream.aclose()

    asyncio.run(main())
    assert seen == [False]


def test_an_async_generator_gets_what_it_is_sent() -> None:
    @torch.no_grad()
    async def echo() -> Any:
        got = yield 1
        yield got

    async def main() -> Any:
        stream = echo()
        await anext(stream)
        return await stream.asend(5)

    assert asyncio.run(main()) == 5


# -- threads ---------------------------------------------------------------------------


def in_a_thread(work: Any) -> Any:
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_a_new_thread_records() -> None:
    with torch.no_grad():
        assert in_a_thread(is_grad_enabled) is True


def test_a_threads_mode_is_its_own() -> None:
    in_a_thread(lambda: torch.set_grad_enabled(False))
    assert is_grad_enabled()


# -- inference mode --------------------------------------------------------------------


def inference_tensor() -> Any:
    with torch.inference_mode():
        return torch.ones(2)


def test_inference_mode_knows_that_it_is_on() -> None:
    with torch.inference_mode():
        inside = is_inference_mode_enabled()
    assert (inside, is_inference_mode_enabled()) == (True, False)


def test_results_in_inference_mode_are_inference_tensors() -> None:
    with torch.inference_mode():
        y = leaf() * 2
    assert (y.is_inference(), y.requires_grad) == (True, False)


def test_inference_mode_false_records() -> None:
    with torch.inference_mode(), torch.inference_mode(False):
        assert (leaf() * 2).requires_grad


def test_an_inference_tensor_is_not_saved_for_backward() -> None:
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for back"):
        leaf() * inference_tensor()


def test_an_inference_tensor_takes_part_where_it_is_not_saved() -> None:
    assert (leaf() + inference_tensor()).requires_grad


def test_an_inference_tensor_is_not_written_outside() -> None:
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        inference_tensor().add_(1)


def test_an_inference_tensor_is_written_inside() -> None:
    t = inference_tensor()
    with torch.inference_mode():
        t.add_(1)
    assert t.tolist() == [2, 2]


def test_an_inference_tensor_never_requires_grad() -> None:
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference"):
        inference_tensor().requires_grad_()


def test_a_clone_of_an_inference_tensor_is_an_ordinary_one() -> None:
    t = inference_tensor().clone()
    assert (t.is_inference(), (leaf() * t).requires_grad) == (False, True)
