"""Each example prints, byte for byte, what PyTorch printed for it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from support import Run

EXAMPLES = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))


def test_there_are_examples_and_each_has_its_output() -> None:
    assert len(PROGRAMS) >= 6
    assert {p.stem for p in PROGRAMS} == {p.stem for p in EXAMPLES.glob("*.out")}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_example_prints_what_it_should(program: Path, python: Run) -> None:
    source = program.read_text(encoding="utf-8")
    if "scipy" in source and not importlib.util.find_spec("scipy"):
        pytest.skip("SciPy is not installed")
    ran = python("-m", "gradfn", "run", program)
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert ran.stdout == program.with_suffix(".out").read_text(encoding="utf-8")
