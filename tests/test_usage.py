"""The names that public programs with custom Functions touch when they run are there."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import gradfn

ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "usage.tsv").read_text("utf-8").splitlines()[1:]
]


def known(kind: str, name: str) -> bool:
    """Has gradfn this attribute of tensors, or this name below torch?"""
    if kind == "tensor":
        return hasattr(gradfn.tensor([1.0]), name)
    found, path = gradfn, "gradfn"
    for part in name.split(".")[1:]:
        path += f".{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = import_module(path)
            except ModuleNotFoundError:
                return False
    return True


@pytest.mark.parametrize("row", [r for r in ROWS if int(r[2]) >= 3], ids=lambda r: r[1])
def test_what_several_programs_use_is_there(row: list[str]) -> None:
    assert known(row[0], row[1])


def test_most_of_the_rest_is_there() -> None:
    rest = [row for row in ROWS if int(row[2]) < 3]
    missing = [row[1] for row in rest if not known(row[0], row[1])]
    assert len(missing) <= 0.2 * len(rest), missing


def test_what_is_not_there_is_not_claimed() -> None:
    assert not known("torch", "torch.quaternion")
    assert not known("tensor", "quaternion")
