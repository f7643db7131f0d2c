"""PyTorch itself prints for each example what the file beside it says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from support import Run

PROGRAMS = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_pytorch_prints_the_same(program: Path, python: Run) -> None:
    source = program.read_text(encoding="utf-8")
    if "scipy" in source and not importlib.util.find_spec("scipy"):
        pytest.skip("SciPy is not installed")
    ran = python(program)
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert ran.stdout == program.with_suffix(".out").read_text(encoding="utf-8")
