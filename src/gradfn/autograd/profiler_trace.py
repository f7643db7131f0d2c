"""A profile in the Trace Event Format, which Perfetto and chrome://tracing open.

Arrows lead from each op to the node of its backward. Format: the Trace Event Format of
the Chromium project; times are microseconds.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

_CATEGORIES = {"user": "user_annotation", "function": "custom_function"}
_FORWARD = ("op", "function")


def write(events: Sequence[Any], path: str | os.PathLike[str]) -> None:
    """Writes the file; its name ends in .gz if it is to be compressed."""
    trace = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "traceEvents": [*_names(events), *map(_event, events), *_arrows(events)],
    }
    text = json.dumps(trace)
    name = os.fspath(path)
    if name.endswith(".gz"):
        with gzip.open(name, "wt", encoding="utf-8") as file:
            file.write(text)
    else:
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)


def _names(events: Sequence[Any]) -> Iterator[dict[str, Any]]:
    pid = os.getpid()
    yield _meta("process_name", pid, 0, {"name": "gradfn"})
    for thread in dict.fromkeys(event.thread for event in events):
        yield _meta("thread_name", pid, thread, {"name": f"thread {thread}"})


def _meta(name: str, pid: int, tid: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def _event(event: Any) -> dict[str, Any]:
    args: dict[str, Any] = {"External id": event.id}
    if event.input_shapes:
        args["Input Dims"] = event.input_shapes
    if event.sequence_nr >= 0:
        args["Sequence number"] = event.sequence_nr
    if event.cpu_memory_usage:
        args["Bytes"] = event.cpu_memory_usage
    if event.stack:
        args["Call stack"] = ";".join(event.stack)
    return {
        "ph": "X",
        "cat": _CATEGORIES.get(event.kind, "cpu_op"),
        "name": event.name,
        "pid": os.getpid(),
        "tid": event.thread,
        "ts": event.time_range.start,
        "dur": event.cpu_time_total,
        "args": args,
    }


def _arrows(events: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """From the innermost op that recorded a node to each run of that node."""
    makers: dict[int, Any] = {}
    for event in events:  # inner ones come later
        if event.kind in _FORWARD and event.sequence_nr >= 0:
            makers[event.sequence_nr] = event
    arrow = 0
    for event in events:
        maker = makers.get(event.sequence_nr)
        if event.kind == "backward" and maker is not None:
            arrow += 1
            yield _end("s", arrow, maker)
            yield {**_end("f", arrow, event), "bp": "e"}


def _end(phase: str, number: int, event: Any) -> dict[str, Any]:
    return {
        "ph": phase,
        "id": number,
        "cat": "fwdbwd",
        "name": "fwdbwd",
        "pid": os.getpid(),
        "tid": event.thread,
        "ts": event.time_range.start,
    }
