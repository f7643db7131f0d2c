"""`gradfn show`: a program runs as with `gradfn run`, and its graph is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Run

PROGRAM = """\
import sys
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
for step in range(2):
    loss = (w * w).sum() if step else w.sum()
    loss.backward()
print(w.grad, sys.argv)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_it_runs_the_program_and_draws_the_last_pass(
    python: Run, program: Path, tmp_path: Path
) -> None:
    ran = python("-m", "gradfn", "show", "-o", "g.mmd", "program.py", "-o", "x")
    assert ran.stdout == "tensor([3., 5.]) ['program.py', '-o', 'x']\n"
    assert (
        ran.stderr
        == "gradfn show: g.mmd: 2 recorded operations; 8 B saved for backward\n"
    )
    assert ran.returncode == 0
    text = (tmp_path / "g.mmd").read_text(encoding="utf-8")
    assert "<b>w</b>" in text
    assert "<b>mul</b>" in text


def test_the_page_names_lines_of_the_program(
    python: Run, program: Path, tmp_path: Path
) -> None:
    assert python("-m", "gradfn", "show", "program.py").returncode == 0
    text = (tmp_path / "graph.html").read_text(encoding="utf-8")
    assert "program.py:6" in text
    assert "gradient norm" in text


def test_it_draws_a_program_that_fails_and_keeps_its_error(
    python: Run, program: Path, tmp_path: Path
) -> None:
    program.write_text(PROGRAM + "raise SystemExit(7)\n")
    ran = python("-m", "gradfn", "show", "-o", "g.dot", "program.py")
    assert ran.returncode == 7
    assert (tmp_path / "g.dot").exists()
    program.write_text(PROGRAM + "1 / 0\n")
    ran = python("-m", "gradfn", "show", "-o", "g.dot", "program.py")
    shown = ran.stderr.partition("Traceback")[2]
    assert shown.count("File ") == 1
    assert shown.endswith("ZeroDivisionError: division by zero\n")


def test_a_program_without_a_backward_pass(python: Run, program: Path) -> None:
    program.write_text("print(1)")
    ran = python("-m", "gradfn", "show", "program.py")
    assert ran.stderr == "gradfn show: the program ran no backward pass\n"


def test_code_and_modules_can_be_shown(
    python: Run, program: Path, tmp_path: Path
) -> None:
    ran = python("-m", "gradfn", "show", "-o", "g.mmd", "--", "-m", "program")
    assert (ran.returncode, (tmp_path / "g.mmd").exists()) == (0, True)


def test_an_unknown_ending_is_refused_before_the_program_runs(
    python: Run, program: Path
) -> None:
    ran = python("-m", "gradfn", "show", "-o", "g.gif", "program.py")
    assert (ran.stdout, ran.returncode) == ("", 2)
    assert ".html" in ran.stderr


def test_a_missing_library_is_named_with_its_extra(python: Run, program: Path) -> None:
    for name, extra in (("click", "cli"), ("graphviz", "draw")):
        code = (
            f"import sys; sys.modules[{name!r}] = None\n"
            "from gradfn.cli import main; sys.exit(main(['show', 'program.py']))"
        )
        ran = python("-c", code)
        assert ran.returncode in (1, 2)
        assert f"needs {name}" in ran.stderr
        assert f"pip install 'gradfn[{extra}]'" in ran.stderr
