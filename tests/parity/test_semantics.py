"""Small programs of the graph's rules print the same on gradfn and on PyTorch.

They stand in semantics/*.txt, each under a `###` title; `P` prints a line. An error
ends a program and counts as a line: its type and the beginning of its text. What gradfn
does otherwise on purpose is left out there and tested elsewhere.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import gradfn
import gradfn.utils.checkpoint
import pytest
import torch
import torch.utils.checkpoint

FOLDER = Path(__file__).parent / "semantics"
PHRASE = 40  # characters of an error's text that must agree


def programs() -> list[Any]:
    """(file: title, source) of each."""
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        for block in re.split(r"(?m)^### ", text)[1:]:
            title, _, source = block.partition("\n")
            found.append(pytest.param(source, id=f"{path.stem}: {title.strip()}"))
    return found


def printed(library: Any, source: str) -> list[str]:
    """What the program prints, addresses left out."""
    lines: list[str] = []

    def show(*things: object) -> None:
        lines.append(" ".join(map(str, things)))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(source, {"torch": library, "P": show})
    except Exception as error:
        lines.append(f"{type(error).__name__}: {str(error)[:PHRASE]}")
    finally:
        library.set_grad_enabled(True)
    return [re.sub(r"0x[0-9a-f]+", "0x…", line) for line in lines]


@pytest.mark.parametrize("source", programs())
def test_prints_what_pytorch_prints(source: str) -> None:
    mine, theirs = printed(gradfn, source), printed(torch, source)
    if theirs and re.match(r"\w+(Error|Exception): ", theirs[-1]):
        mine[-1] = mine[-1][: len(theirs[-1])]  # gradfn may say more
    assert mine == theirs
