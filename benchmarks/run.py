"""Compare gradfn, PyTorch and NumPy by hand; see README.md in this folder."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from catalogue import BY_NAME, NAMES, STARTUP
from figures import Figure, table
from processes import BenchmarkError, Worker, pin
from rich.console import Console
from rounds import Workers, measure_time
from startup import can_launch, measure_startup
from weighing import can_weigh, measure_memory

Measurement = Callable[[], list[Figure]]


@click.command(help=__doc__)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Those with this in their name."
)
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--json", "file", type=click.Path(path_type=Path), help="Write all figures."
)
@click.option("--cpu", type=int, help="The CPU on which all runs; the last by default.")
@click.option(
    "--candidate", default="gradfn", show_default=True, help="The module measured."
)
@click.option("--list", "listing", is_flag=True, help="Only show the names.")
def main(
    only: tuple[str, ...],
    rounds: int,
    file: Path | None,
    cpu: int | None,
    candidate: str,
    listing: bool,
) -> None:
    names = [n for n in NAMES if not only or any(part in n for part in only)]
    if not names:
        raise click.UsageError(f"no workload is named so; there are {', '.join(NAMES)}")
    if listing:
        click.echo("\n".join(names))
        return
    cpu = pin(cpu)
    try:
        figures, failed = measure(names, candidate, rounds)
    except BenchmarkError as error:  # a library cannot be imported
        raise click.ClickException(str(error)) from None
    Console().print(table(figures, candidate))
    if file:
        about = {"candidate": candidate, "cpu": cpu, "versions": versions()}
        record = about | {"figures": [asdict(figure) for figure in figures]}
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if failed:
        raise click.ClickException(f"failed: {', '.join(failed)}")


def measure(
    names: list[str], candidate: str, rounds: int
) -> tuple[list[Figure], list[str]]:
    """The figures, and the names of what has failed, which does not stop the others."""
    figures: list[Figure] = []
    failed: list[str] = []
    with ExitStack() as stack:
        libraries = {"torch": "torch", "candidate": candidate, "numpy": "numpy"}
        workers = {
            role: stack.enter_context(Worker(library))
            for role, library in libraries.items()
        }
        for name, measurement in measurements(names, workers, rounds):
            # A line each: a moving display would need the CPU that is measured.
            click.echo(f"{name} ...", err=True)
            try:
                figures += measurement()
            except BenchmarkError as error:
                click.secho(f"{name}: {error}", fg="red", err=True)
                failed.append(name)
    return figures, failed


def measurements(
    names: list[str], workers: Workers, rounds: int
) -> Iterator[tuple[str, Measurement]]:
    candidate = workers["candidate"].library
    for name in names:
        if name == STARTUP:
            if can_launch():
                yield name, partial(measure_startup, candidate, rounds)
            continue
        entry = BY_NAME[name]
        yield name, partial(measure_time, entry, workers, rounds)
        if entry.memory and can_weigh():
            weighing = partial(measure_memory, entry, entry.memory, candidate)
            yield f"{name} memory", weighing


def versions() -> dict[str, Any]:
    found = {name: version(name) for name in ("numpy", "torch")}
    return {"python": platform.python_version(), **found}


if __name__ == "__main__":
    main()
