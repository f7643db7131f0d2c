"""`gradfn profile`: runs a program and tells where time and memory went."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from gradfn.autograd.profiler import profile as profiling
from gradfn.autograd.profiler_util import memory_text, time_text
from gradfn.profiler.summary import SORTS, Half, lines_of, outside

Run = Callable[[list[str]], int]  # what `gradfn run` does with its arguments


@click.command(
    "profile",
    context_settings={
        "allow_interspersed_args": False,
        "help_option_names": ["-h", "--help"],
    },
)
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="time",
    show_default=True,
    help="time: without what runs inside; total: with it.",
)
@click.option("--rows", default=25, show_default=True, help="Show at most so many lines.")
@click.option(
    "--memory",
    is_flag=True,
    help="Measure memory, too: through tracemalloc, which slows the program down.",
)
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a trace for Perfetto or chrome://tracing (.json or .json.gz).",
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def profile(
    sort: str, rows: int, memory: bool, trace: Path | None, program: tuple[str, ...]
) -> Callable[[Run], int]:
    """Run PROGRAM, written for PyTorch or gradfn, and show where its time went.

    PROGRAM is what `gradfn run` takes: a file, `-` or, after `--`, `-m MODULE`; what
    stands behind it are the program's own arguments. The table is for standard error: a
    line for each op and custom Function, forward beside backward. It comes also where
    the program ends with an error.
    """
    path = trace.resolve() if trace is not None else None
    if memory and sort == "time":
        sort = "memory"

    def act(run: Run) -> int:
        measured = profiling(profile_memory=memory, record_shapes=path is not None)
        try:
            with measured:
                return run(list(program))
        finally:
            _report(measured, sort, rows, path)

    return act


def _report(measured: profiling, sort: str, rows: int, path: Path | None) -> None:
    console = Console(stderr=True)
    if not console.is_terminal:
        console.width = 120
    console.print(_table(measured, sort, rows))
    wall = measured.wall_ns / 1000
    rest = outside(measured.function_events, wall)
    console.print(
        f"{time_text(wall)} in all, of it {time_text(rest)} outside of ops: imports and "
        "the program's own Python",
        highlight=False,
    )
    if measured.peak_bytes is not None:
        console.print(f"peak memory: {memory_text(measured.peak_bytes)}", highlight=False)
    if path is not None:
        measured.export_chrome_trace(str(path))
        console.print(f"trace: {path.name}", highlight=False)


def _table(measured: profiling, sort: str, rows: int) -> Table:
    events = measured.function_events
    lines = lines_of(events, sort)
    every = sum(line.own for line in lines) or 1.0
    table = Table(title=_title(len(lines), rows, sort), title_justify="left")
    table.add_column("name", overflow="fold")
    table.add_column("kind")
    for heading in ("share", "calls", "forward", "with inner", "calls", "backward"):
        table.add_column(heading, justify="right")
    table.add_column("with inner", justify="right")
    if measured.profile_memory:
        table.add_column("memory", justify="right")
    for line in lines[:rows]:
        cells: list[Any] = [line.name, line.kind, f"{100 * line.own / every:.1f} %"]
        cells += [*_half(line.forward), *_half(line.backward)]
        if measured.profile_memory:
            cells.append(memory_text(line.bytes))
        style = "bold yellow" if line.kind == "Function" else None
        table.add_row(*cells, style=style)
    return table


def _title(lines: int, rows: int, sort: str) -> str:
    return f"by {sort}" + (f", the first {rows} of {lines}" if lines > rows else "")


def _half(half: Half) -> tuple[str, str, str]:
    if not half.calls:
        return "", "", ""
    return str(half.calls), time_text(half.own), time_text(half.total)
