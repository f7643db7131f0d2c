"""The command `gradfn check`."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from gradfn.check import run
from gradfn.check.audits import AUDITS
from gradfn.check.find import functions
from gradfn.check.junit import junit
from gradfn.check.table import show
from gradfn.check.verdict import Report


@click.command(name="check")
@click.argument("targets", nargs=-1)
@click.option(
    "--with",
    "library",
    type=click.Choice(["gradfn", "torch"]),
    default="gradfn",
    show_default=True,
    help="Whose Functions they are: the file is loaded on gradfn or on PyTorch itself.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the reports as JSON.")
@click.option(
    "--junit", "xml", type=click.Path(dir_okay=False), help="Write JUnit XML to a file."
)
@click.option("--skip", multiple=True, metavar="AUDIT", help="Leave an audit out.")
@click.option("--only", multiple=True, metavar="AUDIT", help="Run this audit alone.")
@click.option("-q", "--quiet", is_flag=True, help="Show only what failed or warns.")
@click.option("--list", "listed", is_flag=True, help="List the audits and what they ask.")
def check(
    targets: Sequence[str],
    library: str,
    as_json: bool,
    xml: str | None,
    skip: Sequence[str],
    only: Sequence[str],
    quiet: bool,
    listed: bool,
) -> int:
    """Audit custom Functions: are their derivatives right, and if not, why not?

    TARGETS are files (path.py, path.py::Square) or modules (package.module:Square). Where
    none is named, every Function that the module defines is checked. A static method
    examples() on a Function gives the arguments to try; without one they are found.

    Exits with 1 if a Function failed, with 2 if a target cannot be loaded.
    """
    console = Console()
    if listed:
        for audit in AUDITS:
            console.print(f"[bold]{audit.name}[/]  {audit.question}", highlight=False)
        return 0
    if not targets:
        raise click.UsageError("which file or module? Try `gradfn check --help`")
    found = [f for target in targets for f in _functions(target, library)]
    try:
        reports = _reports(found, skip, only)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if xml:
        Path(xml).write_text(junit(reports), encoding="utf-8")
    if as_json:
        click.echo(json.dumps([r.to_dict() for r in reports], indent=2))
    else:
        show(reports, console, quiet=quiet)
    return 0 if all(r.ok for r in reports) else 1


def _functions(target: str, library: str) -> list[Any]:
    """The Functions of a target; the errors of finding them are the user's to read."""
    if library == "gradfn" and "torch" not in sys.modules:
        importlib.import_module("gradfn.compat").install()
    try:
        importlib.import_module(library)
    except ModuleNotFoundError:
        raise click.ClickException(
            f"--with {library}: it is not installed (pip install torch)"
        ) from None
    try:
        return functions(target, library)
    except (OSError, ImportError, LookupError) as error:
        raise click.BadParameter(f"{target}: {error}") from None


def _reports(found: list[Any], skip: Sequence[str], only: Sequence[str]) -> list[Report]:
    """The reports, with a bar on the terminal's standard error meanwhile."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    reports = []
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(found))
        for function in found:

            def now(audit: str, name: str = function.__qualname__) -> None:
                bar.update(task, description=f"{name}: {audit}")

            reports.append(run.check(function, skip=skip, only=only, progress=now))
            bar.advance(task)
    return reports
