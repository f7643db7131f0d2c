"""A profile that is told where each step of a loop ends, and measures some of them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any

from gradfn.autograd import profiler as autograd_profiler
from gradfn.autograd.profiler import record_function
from gradfn.autograd.profiler_util import EventList


class ProfilerActivity(Enum):
    """What can be measured: here the CPU alone."""

    CPU = 0
    XPU = 1
    CUDA = 2


class ProfilerAction(Enum):
    """What to do with a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The CPU."""
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """What to do with step number n: `wait` steps nothing, `warmup` steps measured for
    nothing, `active` steps measured; the same again, `repeat` times (0: for ever).

    `skip_first` steps are left out before. With `skip_first_wait` (not 0) the first
    round does not wait. ValueError if a number is negative or `active` is 0.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError("Invalid profiler schedule arguments")
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step >= 0 and skip_first_wait:
            step += wait
        if step < 0 or (repeat and step >= repeat * length):
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == length - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """For `on_trace_ready`: writes each trace into the folder, for TensorBoard."""

    def handle(prof: profile) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        prof.export_chrome_trace(str(folder / f"{worker}.{time.time_ns()}{ending}"))

    return handle


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Measures a block, or those steps of it that `schedule` picks; `step()` ends one.

    `on_trace_ready(self)` is called after each group of measured steps. `activities`
    other than the CPU measure nothing. The other options are autograd.profiler's.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        **ignored: Any,
    ) -> None:
        self.activities = set(activities or supported_activities())
        self.step_num = 0
        self.on_trace_ready = on_trace_ready
        self.profiler: autograd_profiler.profile | None = None
        self.current_action = ProfilerAction.NONE
        self._schedule = schedule
        self._options: dict[str, Any] = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
        }
        self._step: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins with step 0."""
        self._begin(self._action())

    def stop(self) -> None:
        """Ends it; what was measured and not handed over yet is."""
        recording = self.current_action in _RECORDING
        self._close_step()
        self._close()
        self.current_action = ProfilerAction.NONE
        if recording and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """Ends a step of the loop."""
        before = self.current_action
        self._close_step()
        self.step_num += 1
        action = self._action()
        ready = before is ProfilerAction.RECORD_AND_SAVE
        if ready or action is ProfilerAction.NONE or before not in _RECORDING:
            self._close()
        self.current_action = ProfilerAction.NONE
        if ready and self.on_trace_ready is not None:
            self.on_trace_ready(self)
        self._begin(action)

    def _action(self) -> ProfilerAction:
        if self._schedule is None:
            return ProfilerAction.RECORD
        return self._schedule(self.step_num)

    def _begin(self, action: ProfilerAction) -> None:
        """Goes on measuring, or begins; a warm-up is measured and thrown away."""
        self.current_action = action
        if action is ProfilerAction.NONE:
            return
        if self.profiler is None or not self._is_open():
            self.profiler = autograd_profiler.profile(**self._options)
            self.profiler.__enter__()
        if self._schedule is not None:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _is_open(self) -> bool:
        return self.profiler in autograd_profiler.ACTIVE.get()

    def _close_step(self) -> None:
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def _close(self) -> None:
        if self.profiler is not None and self._is_open():
            self.profiler.__exit__()

    # -- results ---------------------------------------------------------------------

    def _measured(self) -> autograd_profiler.profile:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before exporting a trace")
        return self.profiler

    def events(self) -> EventList:
        """All events of the last measured steps."""
        return self._measured().function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **more: Any
    ) -> EventList:
        """Events of one name added up; see autograd.profiler."""
        return self._measured().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str) -> None:
        """Writes a file for Perfetto or chrome://tracing; .gz is compressed."""
        self._measured().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with their time, as tools for flame graphs read them."""
        self._measured().export_stacks(path, metric)
