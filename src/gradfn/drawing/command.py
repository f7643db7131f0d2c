"""`gradfn show`: runs a program and draws the graph of its last backward pass."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gradfn.drawing.extras import load
from gradfn.drawing.facts import summary
from gradfn.drawing.graph import graph_of
from gradfn.drawing.names import variables
from gradfn.drawing.picture import WRITERS, picture_of
from gradfn.drawing.recorder import Recorder, record

Run = Callable[[list[str]], int]  # what `gradfn run` does with its arguments


def _known(context: click.Context, option: click.Parameter, path: Path) -> Path:
    """The path, if its ending is known before the program runs."""
    if path.suffix.lower() not in WRITERS:
        raise click.BadParameter(f"the ending must be one of {' '.join(sorted(WRITERS))}")
    return path


@click.command(
    "show",
    context_settings={
        "allow_interspersed_args": False,
        "help_option_names": ["-h", "--help"],
    },
)
@click.option(
    "-o",
    "--output",
    default="graph.html",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_known,
    help="File to write: .html .svg .png .pdf .dot or .mmd (Mermaid).",
)
@click.option(
    "--direction",
    type=click.Choice(["forward", "backward"]),
    default="forward",
    show_default=True,
    help="Do arrows follow the values or the gradients?",
)
@click.option("--saved", is_flag=True, help="Draw what is kept for backward, too.")
@click.option("--no-fold", is_flag=True, help="Draw repeated blocks in full.")
@click.option(
    "--limit", default=600, show_default=True, help="Draw at most so many vertices."
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def show(
    output: Path,
    direction: Any,
    saved: bool,
    no_fold: bool,
    limit: int,
    program: tuple[str, ...],
) -> Callable[[Run], int]:
    """Run PROGRAM, written for PyTorch or gradfn, and draw its last backward pass.

    PROGRAM is what `gradfn run` takes: a file, `-` or, after `--`, `-m MODULE`; what
    stands behind it are the program's own arguments. The drawing shows the lines that
    made each step, the norms of the gradients and what was saved. It is written also
    where the program ends with an error.
    """
    path = output.resolve()  # the program may change the folder
    try:
        load("graphviz")
    except ImportError as error:
        raise click.ClickException(str(error)) from None

    def act(run: Run) -> int:
        with record() as recorder:
            try:
                return run(list(program))
            finally:
                _draw(recorder, path, direction, saved, not no_fold, limit)

    return act


def _draw(
    recorder: Recorder, path: Path, direction: Any, saved: bool, fold: bool, limit: int
) -> None:
    if not recorder.roots:
        click.echo("gradfn show: the program ran no backward pass", err=True)
        return
    roots = list(recorder.roots)
    names = variables(vars(sys.modules["__main__"]))
    graph = graph_of(roots, names, ["result"] * len(roots))
    picture = picture_of(graph, saved=saved, direction=direction, fold=fold, limit=limit)
    picture.save(path)
    click.echo(f"gradfn show: {path.name}: {summary(picture.graph)}", err=True)
