"""The corpus of Functions, faulty ones and right ones, for `gradfn check` on either library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradfn.check import check
from gradfn.check.find import functions

FOLDER = Path(__file__).parent / "check" / "corpus"
FAULTY = ("faulty_derivatives", "faulty_behaviour")
RIGHT = ("right_formulas", "right_behaviour")


def members(files: tuple[str, ...]) -> list[Any]:
    """Each class of some files of the corpus as a parameter: (file, name)."""
    found = []
    for file in files:
        text = (FOLDER / f"{file}.py").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if line.startswith("class ")]
        names = [line.partition("(")[0].removeprefix("class ") for line in lines]
        found += [pytest.param(file, name, id=name) for name in names]
    return found


def report(file: str, name: str, library: str) -> tuple[Any, Any]:
    """A class of the corpus and its report."""
    (function,) = functions(f"{FOLDER / file}.py::{name}", library)
    return function, check(function)


def assert_named(file: str, name: str, library: str) -> None:
    """Its fault is found, and it is the one that was planted."""
    function, found = report(file, name, library)
    assert not found.ok
    assert function.planted in found.causes, str(found)


def assert_acquitted(file: str, name: str, library: str) -> None:
    """It is not accused of anything."""
    found = report(file, name, library)[1]
    assert found.ok, str(found)
