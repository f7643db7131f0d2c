"""The table of a profile, in PyTorch's form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradfn.autograd.profiler_util import memory_text, time_text

GAP = "  "
COLUMN = 12
Cell = Callable[[Any], str]


def table(
    rows: Sequence[Any],
    all_events: Any,
    widths: tuple[int, int, int],
    header: str | None,
    unit: str | None,
) -> str:
    """Lines for `rows`; percentages are of all events."""
    total = all_events.self_cpu_time_total
    names, shapes, places = widths
    columns = [("Name", _fitting([row.key for row in rows], names), _cut("key", names))]
    columns += [(name, COLUMN, cell) for name, cell in _times(total, unit)]
    if all_events.profile_memory:
        columns += [(name, COLUMN, cell) for name, cell in _MEMORY]
    columns.append(("# of Calls", COLUMN, lambda row: str(row.count)))
    if any(row.input_shapes for row in rows):
        texts = [str(row.input_shapes) for row in rows]
        columns.append(
            ("Input Shapes", _fitting(texts, shapes), _cut("input_shapes", shapes))
        )
    if any(row.stack for row in rows):
        firsts = [row.stack[0] if row.stack else "" for row in rows]
        columns.append(("Source Location", _fitting(firsts, places), _first(places)))
    rule = GAP.join("-" * width for _, width, _ in columns) + GAP
    lines = [] if header is None else ["=" * len(rule), header]
    lines += [rule, _line([name for name, _, _ in columns], columns), rule]
    for row in rows:
        lines.append(_line([cell(row) for _, _, cell in columns], columns))
    lines += [rule, f"Self CPU time total: {time_text(total, unit)}", ""]
    return "\n".join(lines)


def _line(cells: Sequence[str], columns: Sequence[tuple[str, int, Cell]]) -> str:
    pairs = zip(cells, columns, strict=True)
    return "".join(f"{cell:>{width}}{GAP}" for cell, (_, width, _) in pairs)


def _times(total: float, unit: str | None) -> list[tuple[str, Cell]]:
    return [
        ("Self CPU %", lambda row: _share(row.self_cpu_time_total, total)),
        ("Self CPU", lambda row: time_text(row.self_cpu_time_total, unit)),
        ("CPU total %", lambda row: _share(row.cpu_time_total, total)),
        ("CPU total", lambda row: time_text(row.cpu_time_total, unit)),
        ("CPU time avg", lambda row: time_text(row.cpu_time, unit)),
    ]


_MEMORY: list[tuple[str, Cell]] = [
    ("CPU Mem", lambda row: memory_text(row.cpu_memory_usage)),
    ("Self CPU Mem", lambda row: memory_text(row.self_cpu_memory_usage)),
]


def _share(part: float, total: float) -> str:
    return f"{100 * part / total:.2f}%" if total else "NaN"


def _fitting(texts: Sequence[str], most: int) -> int:
    return min(max(map(len, texts), default=0) + 4, most)


def _cut(attribute: str, most: int) -> Cell:
    return lambda row: _shortened(str(getattr(row, attribute)), most)


def _first(most: int) -> Cell:
    return lambda row: _shortened(row.stack[0] if row.stack else "", most)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
