"""torch.autograd.profiler: where time and memory go, op by op, forward and backward.

    with profile() as prof:
        loss = model(x)
        loss.backward()
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))

While no `profile` is open nothing of this is on any path: see Note [Nothing to test].
"""

from __future__ import annotations

import importlib
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator
from contextvars import ContextVar, Token
from threading import get_ident
from time import perf_counter_ns as now
from types import FunctionType
from typing import Any

from gradfn.autograd.backward import tensor_backward
from gradfn.autograd.function import Function
from gradfn.autograd.profiler_util import EventList, FunctionEvent, Measured, build
from gradfn.graph import engine
from gradfn.graph.node import Node, Output
from gradfn.graph.observe import OBSERVERS, Observer, observed
from gradfn.graph.place import places_now
from gradfn.ops.instrument import Around, restore, surround
from gradfn.tensor import Tensor

__all__ = ["EventList", "FunctionEvent", "profile", "record_function"]

# The profiles that measure what this context does.
ACTIVE: ContextVar[tuple[profile, ...]] = ContextVar("active_profiles", default=())
_own_bytes = 0  # that measurements themselves keep, while memory is traced


class profile:
    """Measures all ops, custom Functions and backward passes of a `with` block.

    `record_shapes` keeps the shapes of arguments, `with_stack` the lines of the program,
    `profile_memory` the bytes that each op leaves allocated (through tracemalloc, which
    slows everything down). `use_cuda` warns: there is none. The rest of PyTorch's
    options are taken and mean nothing here. Results: `key_averages()`, `table()`,
    `function_events`, `export_chrome_trace(path)`. RuntimeError if it is entered twice,
    or asked before the block has ended.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        **ignored: Any,
    ) -> None:
        if use_cuda or use_device not in (None, "cpu"):
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.measured: list[Measured] = []
        self.wall_ns = self.start_ns = 0
        self.peak_bytes: int | None = None
        self._events: EventList | None = None
        self._token: Token[tuple[profile, ...]] | None = None
        self._started_tracing = False
        self.entered = False

    # -- measuring -------------------------------------------------------------------

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError(
                "Profiler context manager is not reentrant: make another profile()"
            )
        self.entered = True
        importlib.import_module("gradfn.graph.watching")  # so that it is not measured
        if self.profile_memory:
            self._started_tracing = not tracemalloc.is_tracing()
            if self._started_tracing:
                tracemalloc.start(1)
            tracemalloc.reset_peak()
        self._base = tracemalloc.get_traced_memory()[0] if self.profile_memory else 0
        surround(_around_op, _others)
        self._token = ACTIVE.set((*ACTIVE.get(), self))
        self.start_ns = now()
        return self

    def __exit__(self, *error: object) -> None:
        if not self.enabled or self._token is None:
            return
        self.wall_ns = now() - self.start_ns
        ACTIVE.set(tuple(p for p in ACTIVE.get() if p is not self))
        self._token = None
        restore()
        if self.profile_memory:
            self.peak_bytes = tracemalloc.get_traced_memory()[1] - self._base
            if self._started_tracing:
                tracemalloc.stop()

    # -- results ---------------------------------------------------------------------

    @property
    def function_events(self) -> EventList:
        """Each event: an op, a Function, a node's backward, a `record_function`."""
        if self.enabled and (not self.entered or self._token is not None):
            raise RuntimeError("Profiler didn't finish running")
        if self._events is None:
            self._events = build(self.measured, self.start_ns, self.profile_memory)
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **more: Any
    ) -> EventList:
        """Events of one name (and shapes, and innermost lines) added up."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def table(self, sort_by: str | None = None, **options: Any) -> str:
        """Each event as a line; see `EventList.table`."""
        return self.function_events.table(sort_by, **options)

    def total_average(self) -> Any:
        """All events added up."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds spent in what was measured."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str) -> None:
        """Writes a file for Perfetto or chrome://tracing; .gz is compressed."""
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with their time, as tools for flame graphs read them."""
        if not self.with_stack:
            raise RuntimeError("export_stacks() needs profile(with_stack=True)")
        self.function_events.export_stacks(path, metric)

    def __repr__(self) -> str:
        if self._token is not None or not self.entered:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        if self._token is not None or not self.entered:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)


class record_function(ContextDecorator):
    """A block (or a decorated function) that profiles show under a name of its own."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._open: list[Any] = []

    def __enter__(self) -> record_function:
        self._open.append(_begin(()) if ACTIVE.get() else None)
        return self

    def __exit__(self, *error: object) -> None:
        began = self._open.pop()
        if began is not None:
            _end(began, self.name, "user", self.name, -1)

    def _recreate_cm(self) -> record_function:
        return record_function(self.name, self.args)


# -- measuring one thing -----------------------------------------------------------------


def _begin(args: Any) -> tuple[Any, ...]:
    """What is known before it runs: shapes, lines, memory, time."""
    active = ACTIVE.get()
    shapes = _shapes(args) if any(p.record_shapes for p in active) else None
    stack = places_now() if any(p.with_stack for p in active) else None
    bytes_ = _traced() if tracemalloc.is_tracing() else 0
    return shapes, stack, bytes_, now()


def _end(began: tuple[Any, ...], name: str, kind: str, of: str, seq: int) -> None:
    """Writes it down for each profile that is open."""
    end = now()
    shapes, stack, bytes_, start = began
    tracing = tracemalloc.is_tracing()
    kept = _traced() - bytes_ if tracing else 0
    for p in ACTIVE.get():
        p.measured.append(
            Measured(name, kind, of, get_ident(), start, end, shapes, stack, kept, seq)
        )
    if tracing:
        global _own_bytes
        _own_bytes += _traced() - bytes_ - kept


def _traced() -> int:
    """Traced bytes without those of the measurements."""
    return tracemalloc.get_traced_memory()[0] - _own_bytes


def _shapes(args: Any) -> list[list[int]]:
    return [list(x._array.shape) if isinstance(x, Tensor) else [] for x in args]


def _seq_of(out: Any) -> int:
    """The number of the node that an op has recorded, or -1."""
    first = out[0] if isinstance(out, (tuple, list)) and out else out
    node = first._grad_fn if isinstance(first, Tensor) else None
    if isinstance(node, Output):
        node = node._next
    return node._sequence_nr() if isinstance(node, Node) else -1


def _around_op(
    name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if not ACTIVE.get():
        return call(*args, **kwargs)
    began = _begin(args)
    seq = -1
    try:
        out = call(*args, **kwargs)
        seq = _seq_of(out)
        return out
    finally:
        _end(began, name, "op", name.removeprefix("aten::"), seq)


def _around_apply(
    name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if not ACTIVE.get():
        return call(*args, **kwargs)
    began = _begin(args[1:])
    seq = -1
    try:
        out = call(*args, **kwargs)
        seq = _seq_of(out)
        return out
    finally:
        _end(began, args[0].__name__, "function", args[0].__name__, seq)


def _around_backward(
    name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Has the engine tell of each node; the pass as a whole is measured, too."""
    if not ACTIVE.get() or TIMER in OBSERVERS.get():
        return call(*args, **kwargs)
    began = _begin(())
    try:
        with observed(TIMER):
            return call(*args, **kwargs)
    finally:
        _end(began, "autograd::engine", "engine", "autograd::engine", -1)


def _others() -> Iterator[tuple[FunctionType, Around]]:
    """What is measured beside ops."""
    yield Function.apply.__func__, _around_apply  # type: ignore[attr-defined]
    yield engine.backward, _around_backward  # type: ignore[misc]
    yield tensor_backward, _around_backward  # type: ignore[misc]


class Timer(Observer):
    """Measures nodes as they run, and the arrival of gradients at leaves."""

    def ran(self, node: Any, g: Any, needs: int, apply: Callable[..., Any]) -> Any:
        """Measures `apply(node, g, needs)`; passing on an output's gradient is nothing."""
        if isinstance(node, Output) or not ACTIVE.get():
            return apply(node, g, needs)
        began = _begin(())
        try:
            return apply(node, g, needs)
        finally:
            _end(began, node._name(), "backward", _forward_of(node), node._sequence_nr())

    def arrived(self, leaf: Any, grad: Any, keep: Callable[[], None]) -> None:
        """Measures the addition to .grad."""
        began = _begin(())
        try:
            keep()
        finally:
            _end(began, _ACCUMULATE, "accumulate", _ACCUMULATE, -1)


TIMER = Timer()
_ACCUMULATE = "torch::autograd::AccumulateGrad"


def _forward_of(node: Node) -> str:
    """The op or Function whose backward a node is."""
    from gradfn.ops.instrument import plain_name

    cls: Any = type(node)
    if hasattr(cls, "_forward_cls"):
        return str(cls._forward_cls.__name__)
    return plain_name(cls.op) if hasattr(cls, "op") else node._name()
