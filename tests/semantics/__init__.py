"""Small programs of the graph's rules, each with what PyTorch prints for it.

They stand in the `.txt` files here, each under a `###` title; `P` prints a line. An error
ends a program and counts as a line: its type and the beginning of its text. The lines
that PyTorch 2.13 prints follow behind `#>`; tests/parity checks that they are true. What
gradfn does otherwise on purpose is left out here and tested elsewhere.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
PHRASE = 40  # characters of an error's text that must agree


class Program(NamedTuple):
    """A program, and the lines that it should print."""

    title: str
    source: str
    expected: list[str]


def programs() -> list[Program]:
    """All of them."""
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        for block in re.split(r"(?m)^### ", text)[1:]:
            title, _, body = block.partition("\n")
            lines = body.splitlines()
            source = "\n".join(x for x in lines if not x.startswith("#>"))
            expected = [x[3:] for x in lines if x.startswith("#>")]
            found.append(Program(f"{path.stem}: {title.strip()}", source, expected))
    return found


def printed(library: Any, source: str) -> list[str]:
    """What the program prints, line by line, addresses left out."""
    out: list[str] = []

    def show(*things: object) -> None:
        out.extend(" ".join(map(str, things)).splitlines())

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(source, {"torch": library, "P": show})
    except Exception as error:
        out.append(f"{type(error).__name__}: {str(error)[:PHRASE]}")
    finally:
        library.set_grad_enabled(True)
    return [re.sub(r"0x[0-9a-f]+", "0x…", line).rstrip() for line in out]


def agree(mine: list[str], theirs: list[str]) -> bool:
    """Are the lines the same? An error of gradfn's may say more."""
    if mine and theirs and re.match(r"\w+(Error|Exception): ", theirs[-1]):
        mine = [*mine[:-1], mine[-1][: len(theirs[-1])]]
    return mine == theirs
