"""Checkpointing: what a function saves for backward is computed again when needed.

Note [Without reentering]
    The function runs as usual, under saved-tensor hooks that keep, in place of each
    tensor, no more than its number. When backward wants one, the function runs a second
    time; the tensors that it saves then fill the numbered places, and it is stopped as
    soon as the last one is there. The arguments are saved by a Function of their own, so
    that a checkpoint inside another keeps nothing alive that the outer one would not.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import numpy as np

from gradfn._state import MODE, mode
from gradfn.autograd.backward import backward
from gradfn.autograd.function import Function
from gradfn.autograd.grad_mode import enable_grad, no_grad
from gradfn.autograd.graph import saved_tensors_hooks
from gradfn.graph.engine import current_run
from gradfn.ops.random import default_generator
from gradfn.tensor import Tensor, wrap

__all__ = [
    "CheckpointError",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_early_stop",
]

ContextFn = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]
_early_stop: ContextVar[bool | None] = ContextVar("checkpoint_early_stop", default=None)


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function differs from the first."""


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing."""
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Says for the checkpoints of a block whether second runs stop early."""
    token = _early_stop.set(enable)
    try:
        yield
    finally:
        _early_stop.reset(token)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: ContextFn = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Runs `function(*args, **kwargs)` without keeping what backward needs of it.

    Backward runs it a second time, with the same random numbers unless
    `preserve_rng_state` is False. `context_fn` gives a context for each of the two runs
    (not with `use_reentrant=True`). Raises CheckpointError in backward if the second run
    saves other tensors than the first, unless `determinism_check` is "none"; ValueError
    for arguments that the reentrant form has not.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed "
            "explicitly. Pass use_reentrant=False, which has fewer limitations; True is "
            "the default for now.",
            UserWarning,
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return _Reentrant.apply(function, preserve_rng_state, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of 'default', 'none', got {determinism_check}"
        )
    forward_context, again_context = context_fn()
    wanted = _early_stop.get()
    frame = _Frame(function, args, kwargs, again_context, preserve_rng_state)
    frame.check = determinism_check == "default"
    frame.stops = early_stop if wanted is None else wanted
    with _recording(frame), forward_context:
        out = function(*args, **kwargs)
    frame.complete = True
    return out


# -- without reentering ------------------------------------------------------------------


class _SaveInputs(Function):
    """Keeps the arguments as saved tensors, for an outer checkpoint to take over."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return anchor.clone()  # type: ignore[no-any-return]


class _Place:
    """Stands where a saved tensor would: its number, and its value for each pass."""

    __slots__ = ("__weakref__", "index", "values")

    def __init__(self, index: int) -> None:
        self.index = index
        self.values: dict[Any, Tensor] = {}


class _Frame:
    """One call of a checkpointed function."""

    check = stops = True
    complete = False  # has the first run ended?

    def __init__(
        self, function: Any, args: Any, kwargs: Any, context: Any, keep_random: bool
    ) -> None:
        self.function, self.kwargs, self.context = function, kwargs, context
        self.places: list[weakref.ref[_Place]] = []
        self.facts: list[Any] = []  # shape and dtype of each saved tensor
        self.done: weakref.WeakSet[Any] = (
            weakref.WeakSet()
        )  # passes that have run it again
        self.random = default_generator.get_state() if keep_random else None
        self.mode = mode()
        tensors = [t for t in args if isinstance(t, Tensor)]
        anchor = wrap(np.empty(0)).requires_grad_()
        with enable_grad():
            self.inputs = _SaveInputs.apply(anchor, *tensors).grad_fn
        self.flags = [t.requires_grad for t in tensors]
        self.args = [None if isinstance(t, Tensor) else t for t in args]
        self.tensor_places = [i for i, t in enumerate(args) if isinstance(t, Tensor)]

    def arguments(self) -> list[Any]:
        """The arguments of the first run, cut off from their history."""
        args = list(self.args)
        saved = self.inputs.saved_tensors
        for place, t, flag in zip(self.tensor_places, saved, self.flags, strict=True):
            args[place] = t.detach().requires_grad_(flag)
        return args

    def run_again(self, key: Any) -> None:
        """Fills the places for a backward pass."""
        args = self.arguments()
        count = [0]

        def keep(t: Tensor) -> Tensor:
            index = count[0]
            count[0] += 1
            place = self.places[index]() if index < len(self.places) else None
            if place is not None:
                place.values[key] = t.detach()
            if self.check and index < len(self.facts) and self.facts[index] != _facts(t):
                raise _differs(index, self.facts[index], _facts(t))
            if self.stops and count[0] == len(self.places):
                raise _StopError
            return t.detach()  # type: ignore[no-any-return]

        token = MODE.set(self.mode)
        try:
            with (
                _random_state(self.random),
                self.context,
                enable_grad(),
                saved_tensors_hooks(keep, lambda t: t),
            ):
                self.function(*args, **self.kwargs)
        except _StopError:
            pass
        finally:
            MODE.reset(token)
        if self.check and count[0] != len(self.places):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.places)}\n"
                f"Number of tensors saved during recomputation: {count[0]}."
            )


class _StopError(Exception):
    """All that was saved is there again."""


def _facts(t: Tensor) -> Any:
    return t._array.shape, t._array.dtype


def _differs(index: int, first: Any, second: Any) -> CheckpointError:
    def text(facts: Any) -> str:
        return f"{{'shape': torch.Size({list(facts[0])}), 'dtype': torch.{facts[1]}}}"

    return CheckpointError(
        "torch.utils.checkpoint: Recomputed values for the following tensors have different "
        f"metadata than during the forward pass.\ntensor at position {index}:\n"
        f"saved metadata: {text(first)}\nrecomputed metadata: {text(second)}"
    )


def _recording(frame: _Frame) -> saved_tensors_hooks:
    """The hooks under which the function runs the first time."""

    def pack(t: Tensor) -> _Place:
        place = _Place(len(frame.places))
        frame.places.append(weakref.ref(place))
        frame.facts.append(_facts(t))
        return place

    def unpack(place: _Place) -> Tensor:
        key: Any = current_run() or _NO_RUN
        if key not in frame.done or key not in place.values:
            frame.run_again(key)
            frame.done.add(key)
        value = place.values.get(key)
        if value is None:
            raise CheckpointError(
                "torch.utils.checkpoint: trying to backward through a place that the second "
                "run has not filled; unpack is being triggered for a tensor that was already "
                "unpacked once, or never saved again."
            )
        if key is not _NO_RUN and not key.keep:
            del place.values[key]
        return value

    return saved_tensors_hooks(pack, unpack)


class _NoRun:
    """Stands for the pass when a saved tensor is looked at outside of one."""


_NO_RUN = _NoRun()


@contextmanager
def _random_state(state: Tensor | None) -> Iterator[None]:
    """Draws in this block begin with a state; afterwards they go on as before."""
    if state is None:
        yield
        return
    before = default_generator.get_state()
    default_generator.set_state(state)
    try:
        yield
    finally:
        default_generator.set_state(before)


# -- reentering --------------------------------------------------------------------------


class _Reentrant(Function):
    """The older form: backward runs the function again and calls backward on it."""

    @staticmethod
    def forward(ctx: Any, function: Any, keep_random: bool, *args: Any) -> Any:
        if not any(isinstance(t, Tensor) and t.requires_grad for t in args):
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None",
                UserWarning,
                stacklevel=4,
            )
        ctx.function = function
        ctx.random = default_generator.get_state() if keep_random else None
        ctx.args = [None if isinstance(t, Tensor) else t for t in args]
        ctx.places = [i for i, t in enumerate(args) if isinstance(t, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if current_run().captures is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() "
                "or passing an `inputs` parameter to .backward(). To resolve this error, you "
                "can either set use_reentrant=False, or call .backward() without passing the "
                "`inputs` argument."
            )
        args = list(ctx.args)
        for i, t in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = t.detach().requires_grad_(t.requires_grad)
        with _random_state(ctx.random), enable_grad():
            out = ctx.function(*args)
        outs = [out] if isinstance(out, Tensor) else list(out)
        pairs = [
            (t, g)
            for t, g in zip(outs, grads, strict=True)
            if isinstance(t, Tensor) and t.requires_grad and g is not None
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([t for t, _ in pairs], [g for _, g in pairs])
        got = [t.grad if isinstance(t, Tensor) else None for t in args]
        return None, None, *got


# -- sequences ---------------------------------------------------------------------------


def checkpoint_sequential(
    functions: Sequence[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Runs functions one after the other, in checkpointed segments but for the last."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter "
            "should be passed explicitly.",
            UserWarning,
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = (
        list(functions.children()) if hasattr(functions, "children") else list(functions)
    )

    def run(start: int, end: int) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for step in steps[start:end]:
                x = step(x)
            return x

        return forward

    size = max(len(steps) // segments, 1)
    end = 0
    for _ in range(segments - 1):
        input = checkpoint(
            run(end, end + size),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
        end += size
    return run(end, len(steps))(input)
