"""torch.profiler: steps of a loop, some of which are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import leaf

from gradfn.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

X = leaf()
NONE, WARMUP, RECORD, SAVE = (
    ProfilerAction.NONE,
    ProfilerAction.WARMUP,
    ProfilerAction.RECORD,
    ProfilerAction.RECORD_AND_SAVE,
)


def test_without_a_schedule_all_is_measured() -> None:
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        with record_function("block"):
            X.sin()
        prof.step()
        X.cos()
    assert [e.name for e in prof.events()] == ["block", "aten::sin", "aten::cos"]
    assert "aten::sin" in prof.key_averages(group_by_input_shape=True).table()


def test_schedules() -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [plan(i) for i in range(11)] == [
        NONE,
        *[NONE, WARMUP, RECORD, SAVE] * 2,
        NONE,
        NONE,
    ]
    assert [schedule(wait=0, warmup=0, active=1)(i) for i in range(3)] == [SAVE] * 3
    plan = schedule(wait=2, warmup=0, active=1, skip_first_wait=1)
    assert [plan(i) for i in range(4)] == [SAVE, NONE, NONE, SAVE]
    with pytest.raises(ValueError, match="Invalid profiler schedule"):
        schedule(wait=0, warmup=0, active=0)


def test_groups_of_steps_are_handed_over() -> None:
    groups: list[list[str]] = []

    def ready(prof: Any) -> None:
        groups.append([e.name for e in prof.events()])

    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready
    ) as prof:
        for _ in range(10):
            X.sin()
            prof.step()
    steps = [name for group in groups for name in group if name != "aten::sin"]
    assert steps == [f"ProfilerStep#{n}" for n in (2, 3, 6, 7)]
    assert [group.count("aten::sin") for group in groups] == [2, 2]


def test_what_is_left_at_the_end_is_handed_over() -> None:
    ready: list[int] = []
    with profile(on_trace_ready=lambda prof: ready.append(len(prof.events()))):
        X.sin()
    assert ready == [1]


def test_traces_for_tensorboard(tmp_path: Path) -> None:
    for gz in (False, True):
        with profile(
            on_trace_ready=tensorboard_trace_handler(str(tmp_path / "t"), "w", gz)
        ):
            X.sin()
    found = sorted(p.name.split(".", 2)[2] for p in (tmp_path / "t").iterdir())
    assert found == ["pt.trace.json", "pt.trace.json.gz"]
    assert all(p.name.startswith("w.") for p in (tmp_path / "t").iterdir())


def test_it_can_be_started_and_stopped_by_hand(tmp_path: Path) -> None:
    prof = profile(with_stack=True)
    with pytest.raises(AssertionError, match="must be initialized"):
        prof.events()
    prof.start()
    X.sin()
    prof.stop()
    X.cos()
    assert [e.name for e in prof.events()] == ["aten::sin"]
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    prof.export_stacks(str(tmp_path / "stacks"))
    assert supported_activities() == {ProfilerActivity.CPU}
