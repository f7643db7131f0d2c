"""A profile op by op and Function by Function: forward beside backward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SORTS = ("time", "total", "calls", "memory")
# kind of event: what to call a line of such
KINDS = {
    "op": "op",
    "function": "Function",
    "accumulate": "into .grad",
    "engine": "engine",
    "user": "block",
}


@dataclass(slots=True)
class Half:
    """What one direction took: microseconds without and with what ran inside."""

    calls: int = 0
    own: float = 0.0
    total: float = 0.0

    def add(self, event: Any) -> None:
        """Adds an event; inside one of the same name, its time is in the total already."""
        self.calls += 1
        self.own += event.self_cpu_time_total
        if not _inside_its_like(event):
            self.total += event.cpu_time_total


@dataclass(slots=True)
class Line:
    """An op, a Function, a named block, or a part of the engine."""

    name: str
    kind: str
    forward: Half
    backward: Half
    bytes: int = 0

    @property
    def own(self) -> float:
        """Microseconds in both directions, without what ran inside."""
        return self.forward.own + self.backward.own

    def key(self, sort: str) -> float:
        """What it is sorted by."""
        keys: dict[str, float] = {
            "time": self.own,
            "total": self.forward.total + self.backward.total,
            "calls": self.forward.calls + self.backward.calls,
            "memory": self.bytes,
        }
        return keys[sort]


def lines_of(events: Sequence[Any], sort: str = "time") -> list[Line]:
    """A line for each op, Function and block, the largest first."""
    lines: dict[tuple[str, str], Line] = {}
    functions = {e.of for e in events if e.kind == "function"}
    for event in events:
        kind = event.kind
        if kind == "backward":
            kind = "function" if event.of in functions else "op"
        line = lines.get((kind, event.of))
        if line is None:
            name = ".grad" if kind == "accumulate" else event.of.rpartition("::")[2]
            line = lines[kind, event.of] = Line(name, KINDS[kind], Half(), Half())
        backward = event.kind in ("backward", "accumulate", "engine")
        (line.backward if backward else line.forward).add(event)
        line.bytes += event.self_cpu_memory_usage
    return sorted(lines.values(), key=lambda line: line.key(sort), reverse=True)


def outside(events: Sequence[Any], wall_us: float) -> float:
    """Microseconds of the whole time in which nothing of this ran, on the main thread."""
    main = events[0].thread if events else 0
    covered: float = sum(
        e.cpu_time_total for e in events if e.cpu_parent is None and e.thread == main
    )
    return max(wall_us - covered, 0.0)


def _inside_its_like(event: Any) -> bool:
    around = event.cpu_parent
    while around is not None:
        if (around.kind, around.of) == (event.kind, event.of):
            return True
        around = around.cpu_parent
    return False
