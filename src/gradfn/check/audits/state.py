"""What outlives a call: memory that is kept, and state that calls share."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

from gradfn.check.audit import Finding, audit, fail, ok, skip, warn
from gradfn.check.errors import words
from gradfn.check.spy import spied
from gradfn.check.subject import Example, Subject, same

# -- memory ----------------------------------------------------------------------------


@audit("memory", after=("gradients",), once=True)
def memory(subject: Subject, example: Example) -> Finding:
    """Does the graph die with its results, and are inputs kept where they are checked?"""
    kept = attributes(subject, example)
    for name, (what, place) in kept.items():
        if what == "output":
            return fail(
                "output kept alive",
                f"ctx.{name} holds an output, which holds ctx: a cycle that is never freed in "
                "time; use save_for_backward",
            )
        if place in example.active:
            return fail(
                "input outside save_for_backward",
                f"ctx.{name} holds an input: if it is overwritten, gradients are silently "
                "wrong; use save_for_backward",
            )
    alive = _survivors(subject, example)
    if alive:
        return fail(
            "kept alive", f"{alive} is still alive after all results were dropped"
        )
    for name in kept:
        return warn("input outside save_for_backward", f"ctx.{name} holds an input")
    return ok()


def attributes(subject: Subject, example: Example) -> dict[str, tuple[str, int]]:
    """ctx's attributes that are outputs or inputs: ("output" or "input", the place)."""
    contexts: list[Any] = []

    def notice(method: str, args: tuple[Any, ...]) -> Callable[[Any], None]:
        if method in ("forward", "setup_context") and args:
            contexts.append(args[0])
        return lambda result: None

    call = subject.call(example, cls=spied(subject, notice))
    own = Example(call.args, ()).leaves
    found: dict[str, tuple[str, int]] = {}
    for ctx in contexts[-1:]:
        for name, value in getattr(ctx, "__dict__", {}).items():
            if hasattr(type(ctx), name):  # the library's
                continue
            for t in subject.tensors(value):
                if any(t is y for y in call.outs):
                    found[name] = ("output", 0)
                for place, x in enumerate(own):
                    if t is x:
                        found[name] = ("input", place)
    return found


def _survivors(subject: Subject, example: Example) -> str:
    """What the Function keeps alive after everything else has let go of it."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        call = subject.call(example)
        subject.grad(call.live, call.active, subject.seeds(call.live))
        known = {
            **{f"output {i}": weakref.ref(t) for i, t in enumerate(call.outs)},
            **{f"input {i}": weakref.ref(t) for i, t in enumerate(call.active)},
        }
        del call
        return next((name for name, ref in known.items() if ref() is not None), "")
    finally:
        if enabled:
            gc.enable()


# -- threads ---------------------------------------------------------------------------


@audit("threads", after=("gradients", "determinism"), once=True)
def threads(subject: Subject, example: Example) -> Finding:
    """Are calls that overlap, also in other threads, independent?"""
    other = subject.jittered(example)
    try:
        expected = [_alone(subject, e) for e in (example, other)]
    except Exception:
        return skip("it takes these very values only")
    calls = [subject.call(e) for e in (example, other)]
    got = [subject.gradients(c, subject.seeds(c.live)) for c in calls]
    if not _equal(got, expected):
        return fail(
            "shared state",
            "a call between forward and backward of another one changes its gradients: state "
            "is kept on the class or in a global, not on ctx",
        )
    call = subject.call(example)
    try:
        elsewhere = _in_thread(lambda: subject.gradients(call, subject.seeds(call.live)))
    except Exception as error:
        return fail(
            "thread-local state",
            f"backward in another thread than forward raises {words(error)}",
        )
    if not _equal([elsewhere], expected[:1]):
        return fail(
            "thread-local state",
            "backward in another thread than forward gives other gradients",
        )
    return _together(subject, (example, other), expected)


def _alone(subject: Subject, example: Example) -> list[Any]:
    call = subject.call(example)
    return subject.gradients(call, subject.seeds(call.live))


def _equal(a: list[Any], b: list[Any]) -> bool:
    return all(
        same(x, y) for p, q in zip(a, b, strict=True) for x, y in zip(p, q, strict=True)
    )


def _in_thread(run: Callable[[], Any]) -> Any:
    """What a function gives in a thread of its own; raises what it raises."""
    box: list[Any] = []

    def body() -> None:
        try:
            box.append((True, run()))
        except Exception as error:
            box.append((False, error))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    done, value = box[0]
    if not done:
        raise value
    return value


def _together(subject: Subject, examples: Any, expected: Any) -> Finding:
    """Both at once, several times. Seeds are global, so only backward is compared."""
    results: list[list[Any]] = [[], []]
    barrier = threading.Barrier(2)

    def body(i: int) -> None:
        for _ in range(5):
            barrier.wait()
            try:
                results[i].append(_alone(subject, examples[i]))
            except Exception as error:
                results[i].append(error)

    team = [threading.Thread(target=body, args=(i,)) for i in range(2)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    for i, found in enumerate(results):
        for got in found:
            if isinstance(got, Exception):
                return fail("shared state", f"two threads at once: {words(got)}")
            if not _equal([got], [expected[i]]) and not draws(subject, examples[i]):
                return fail("shared state", "two threads at once give other gradients")
    return ok()


def draws(subject: Subject, example: Example) -> bool:
    """Does it draw from a global generator of random numbers?"""
    torch = subject.torch
    before = torch.get_rng_state()
    subject.call(example)
    with_seed = torch.get_rng_state()
    torch.manual_seed(0)
    fresh = torch.get_rng_state()
    torch.set_rng_state(before)
    return not torch.equal(with_seed, fresh)
