"""Compare single ops, on few, some and many elements; see README.md in this folder."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import click
from figures import Figure, number
from processes import BenchmarkError, Worker, pin
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rounds import Workers, measure_time
from single import ENTRIES, LIMITS, OPS, SIZES, name_of

Found = dict[str, Figure]


@click.command(help=__doc__)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Ops with this in their name."
)
@click.option(
    "--size", "sizes", multiple=True, type=click.Choice([str(n) for n in SIZES])
)
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--json", "file", type=click.Path(path_type=Path), help="Write all figures."
)
@click.option("--cpu", type=int, help="The CPU on which all runs; the last by default.")
@click.option(
    "--candidate", default="gradfn", show_default=True, help="The module measured."
)
def main(
    only: tuple[str, ...],
    sizes: tuple[str, ...],
    rounds: int,
    file: Path | None,
    cpu: int | None,
    candidate: str,
) -> None:
    ops = [op for op in OPS if not only or any(part in op for part in only)]
    if not ops:
        raise click.UsageError(f"no op is named so; there are {', '.join(OPS)}")
    chosen = [n for n in SIZES if not sizes or str(n) in sizes]
    names = [name_of(op, n, both) for op in ops for n in chosen for both in (False, True)]
    pin(cpu)
    try:
        found, failed = measure(names, candidate, rounds)
    except BenchmarkError as error:  # a library cannot be imported
        raise click.ClickException(str(error)) from None
    Console().print(table(found, ops, chosen))
    if file:
        record = [asdict(figure) for figure in found.values()]
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if failed:
        raise click.ClickException(f"failed: {', '.join(failed)}")


def measure(names: list[str], candidate: str, rounds: int) -> tuple[Found, list[str]]:
    """The figures, and the names of what has failed, which does not stop the others."""
    found: Found = {}
    failed: list[str] = []
    with ExitStack() as stack:
        workers: Workers = {
            role: stack.enter_context(Worker(library))
            for role, library in {"torch": "torch", "candidate": candidate}.items()
        }
        for name in names:
            click.echo(f"{name} ...", err=True)
            try:
                (found[name],) = measure_time(ENTRIES[name], workers, rounds)
            except BenchmarkError as error:
                click.secho(f"{name}: {error}", fg="red", err=True)
                failed.append(name)
    return found, failed


def table(found: Found, ops: list[str], sizes: list[int]) -> Table:
    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    limits = ", ".join(f"{LIMITS[n]} on {n:,} elements" for n in sizes)
    made.caption = f"ratios to torch; red: above {limits}"
    made.add_column("op", no_wrap=True)
    for size in sizes:
        for part in ("forward", "both"):
            made.add_column(f"{size:,}\n{part}", justify="right", no_wrap=True)
    for op in ops:
        names = [name_of(op, n, both) for n in sizes for both in (False, True)]
        made.add_row(op, *(cell(found.get(name)) for name in names))
    return made


def cell(figure: Figure | None) -> str:
    if figure is None:
        return "[bold red]failed[/]"
    text = number(figure.candidate)
    return f"[bold red]{text}[/]" if figure.missed else text


if __name__ == "__main__":
    main()
