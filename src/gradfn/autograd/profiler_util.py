"""What a profile has measured: events, their sums, tables and traces.

Times are microseconds, as in PyTorch. An event lies inside another if it ran on the same
thread during it; what an event took without those inside is its self time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gradfn.graph.place import Place

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


class Measured(NamedTuple):
    """One thing that ran, as it was written down."""

    name: str
    kind: str  # op, function, backward, accumulate, engine, user
    of: str  # the op or Function that it belongs to
    thread: int
    start: int  # ns
    end: int
    shapes: list[list[int]] | None
    stack: list[Place] | None
    bytes: int
    seq: int  # of the node that it made or ran, or -1


class Interval(NamedTuple):
    """Microseconds since the profile began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """How long it took."""
        return self.end - self.start


class Times:
    """What events and sums of events have in common."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = cuda_time_total = 0.0  # there is no other device
    self_device_time_total = self_cuda_time_total = 0.0
    device_memory_usage = cuda_memory_usage = 0
    self_device_memory_usage = self_cuda_memory_usage = 0

    @property
    def cpu_time(self) -> float:
        """The average of one call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    device_time = cuda_time = 0.0

    @property
    def cpu_time_str(self) -> str:
        """The average as text."""
        return time_text(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """The sum as text."""
        return time_text(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """The sum of self times as text."""
        return time_text(self.self_cpu_time_total)


class FunctionEvent(Times):
    """Something that ran once."""

    count = 1
    node_id = -1
    device_type = "cpu"
    is_async = is_remote = is_legacy = False

    def __init__(self, id: int, measured: Measured, begin: int) -> None:
        self.id = id
        self.name = self.key = measured.name
        self.kind, self.of = measured.kind, measured.of
        self.thread = measured.thread
        start, end = measured.start - begin, measured.end - begin
        self.time_range = Interval(start / 1000, end / 1000)
        self.input_shapes: Any = measured.shapes or []
        self.stack = [
            f"{place.file}({place.line}): {place.function}"
            for place in measured.stack or ()
        ]
        self.cpu_memory_usage = measured.bytes
        self.sequence_nr = measured.seq
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.is_user_annotation = measured.kind == "user"

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """How long it took."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """How long without the events inside it."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes it left allocated, without the events inside it."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[c.id for c in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(Times):
    """Events of one name, added up."""

    node_id = -1
    device_type = "cpu"
    is_async = is_remote = is_legacy = False

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.input_shapes: Any = []
        self.stack: list[str] = []

    def add(self, other: Any) -> FunctionEventAvg:
        """Adds an event, or another sum."""
        self.key = self.key or other.key
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} "
            f"self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list[Any]):
    """Events, or sums of events."""

    def __init__(self, events: Iterable[Any] = (), profile_memory: bool = False) -> None:
        super().__init__(events)
        self.profile_memory = profile_memory

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of all self times."""
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """Events of one name added up; also by shapes, and by so many innermost lines."""
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            stack = tuple(event.stack[:group_by_stack_n])
            key = event.key, shapes, stack
            if key not in sums:
                sums[key] = FunctionEventAvg(event.key)
                sums[key].input_shapes = event.input_shapes if shapes else []
                sums[key].stack = list(stack)
            sums[key].add(event)
        return EventList(sums.values(), self.profile_memory)

    def total_average(self) -> FunctionEventAvg:
        """All of them added up, under the name Total."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """A table in PyTorch's form; the largest first by the attribute `sort_by`.

        `sort_by`: self_cpu_time_total, cpu_time_total, cpu_time, cpu_memory_usage,
        self_cpu_memory_usage, count … (AttributeError for another); without it, in the
        order in which they came. At most `row_limit` rows (-1: all). `time_unit`: s, ms
        or us.
        """
        from gradfn.autograd.profiler_table import table

        events: list[Any] = list(self)
        if top_level_events_only:
            events = [e for e in events if getattr(e, "cpu_parent", None) is None]
        if sort_by is not None:
            events.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        rows = events if row_limit < 0 else events[:row_limit]
        widths = max_name_column_width, max_shapes_column_width, max_src_column_width
        return table(rows, self, widths, header, time_unit)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for Perfetto or chrome://tracing; .gz is compressed."""
        from gradfn.autograd.profiler_trace import write

        write(self, path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes a line for each stack, outermost first, with its time in us."""
        known = ("self_cpu_time_total", "self_cuda_time_total")
        if metric not in known:
            raise ValueError(f"metric should be one of: {list(known)}")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                took = int(getattr(event, metric))
                if event.stack and took:
                    places = ";".join(s.translate(_PLAIN) for s in reversed(event.stack))
                    file.write(f"{places} {took}\n")

    def __str__(self) -> str:
        return self.table()


_PLAIN = str.maketrans(" ;\t\n", "____")


def build(measured: Sequence[Measured], begin: int, memory: bool) -> EventList:
    """Events in the order in which they began, with what ran inside them."""
    order = sorted(measured, key=lambda m: (m.start, -m.end))
    open_: dict[int, list[FunctionEvent]] = {}
    events: list[FunctionEvent] = []
    for m in order:
        event = FunctionEvent(len(events), m, begin)
        stack = open_.setdefault(m.thread, [])
        while stack and stack[-1].time_range.end < event.time_range.end:
            stack.pop()
        parent = stack[-1] if stack else None
        if parent is not None and parent.name == event.name and m.kind == "op":
            continue  # an op that calls itself with its arguments sorted
        event.cpu_parent = parent
        if parent is not None:
            parent.cpu_children.append(event)
        stack.append(event)
        events.append(event)
    return EventList(events, memory)


UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def time_text(us: float, unit: str | None = None) -> str:
    """1.234ms: in the unit given, or one that fits."""
    if unit is None:
        unit = next((u for u, size in UNITS.items() if us >= size), "us")
    return f"{us / UNITS[unit]:.3f}{unit}"


def memory_text(n: int) -> str:
    """1.50 KB: bytes as PyTorch writes them."""
    for name, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {name}"
    return f"{n} B"
