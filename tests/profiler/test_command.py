"""`gradfn profile`: a program runs as with `gradfn run`; then comes a table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import Run, function, leaf

from gradfn.autograd.profiler import profile, record_function
from gradfn.profiler.summary import Line, lines_of, outside

PROGRAM = """\
import sys
import torch

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

x = torch.ones(100, 100, requires_grad=True)
for _ in range(3):
    (Twice.apply(x) @ x).sum().backward()
print(sys.argv)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def rows(table: str) -> dict[str, list[str]]:
    """{name: cells} of a printed table."""
    lines = [line.split("│")[1:-1] for line in table.splitlines() if "│" in line]
    return {cells[0].strip(): [c.strip() for c in cells[1:]] for cells in lines}


def test_it_runs_the_program_and_prints_a_table(python: Run, program: Path) -> None:
    ran = python("-m", "gradfn", "profile", "program.py", "--sort", "x")
    assert ran.stdout == "['program.py', '--sort', 'x']\n"
    assert ran.returncode == 0
    found = rows(ran.stderr)
    kind, share, calls, forward, inner, back_calls, backward, _ = found["Twice"]
    assert (kind, calls, back_calls) == ("Function", "3", "3")
    assert share.endswith(" %")
    assert all(re.fullmatch(r"[\d.]+(us|ms|s)", x) for x in (forward, inner, backward))
    assert found["mm"][2] == "3"
    assert found[".grad"][0] == "into .grad"
    assert re.search(r"in all, of it .* outside of ops", ran.stderr)


def test_memory_and_trace(python: Run, program: Path, tmp_path: Path) -> None:
    ran = python("-m", "gradfn", "profile", "--memory", "--trace", "t.json", "program.py")
    assert ran.returncode == 0
    assert "by memory" in ran.stderr
    assert re.search(r"peak memory: [\d.]+ [KM]B", ran.stderr)
    trace = json.loads((tmp_path / "t.json").read_text())
    assert "TwiceBackward" in {e["name"] for e in trace["traceEvents"]}


def test_rows_and_sort(python: Run, program: Path) -> None:
    ran = python(
        "-m", "gradfn", "profile", "--sort", "calls", "--rows", "2", "program.py"
    )
    assert "by calls, the first 2 of" in ran.stderr
    assert len(rows(ran.stderr)) == 2


def test_a_program_that_fails_keeps_its_error(python: Run, program: Path) -> None:
    program.write_text(PROGRAM + "1 / 0\n")
    ran = python("-m", "gradfn", "profile", "program.py")
    assert "Twice" in rows(ran.stderr)
    assert ran.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert ran.returncode == 1


def test_a_missing_library_is_named_with_its_extra(python: Run, program: Path) -> None:
    code = (
        "import sys; sys.modules['rich'] = None\n"
        "from gradfn.cli import main; sys.exit(main(['profile', 'program.py']))"
    )
    ran = python("-c", code)
    assert (ran.returncode, "pip install 'gradfn[cli]'" in ran.stderr) == (2, True)


# -- what the table says -------------------------------------------------------------------


def measured() -> profile:
    Twice = function(lambda ctx, x: x * 2, lambda ctx, g: g * 2)
    with profile() as prof:
        with record_function("step"):
            y = Twice.apply(leaf()).sin()
        y.sum().backward()
    return prof


def by_name(lines: list[Line]) -> dict[str, Line]:
    return {line.name: line for line in lines}


def test_forward_and_backward_stand_side_by_side() -> None:
    found = by_name(lines_of(measured().function_events))
    assert (found["sin"].forward.calls, found["sin"].backward.calls) == (1, 1)
    assert (found["Mine"].forward.calls, found["Mine"].backward.calls) == (1, 1)
    assert found["mul"].forward.calls == 2  # one of them in Mine's backward
    assert found["step"].kind == "block"
    assert found["engine"].backward.calls == 1


def test_shares_add_up_to_all_that_was_measured() -> None:
    prof = measured()
    lines = lines_of(prof.function_events)
    assert sum(line.own for line in lines) == pytest.approx(prof.self_cpu_time_total)
    wall = prof.wall_ns / 1000
    rest = outside(prof.function_events, wall)
    assert rest == pytest.approx(wall - prof.self_cpu_time_total)


def test_a_function_inside_itself_counts_its_time_once() -> None:
    def forward(ctx: object, x: object, depth: int) -> object:
        return Nested.apply(x, depth - 1) if depth else x.sin()  # type: ignore[attr-defined]

    Nested = function(forward, lambda ctx, g: (g, None))
    x = leaf()
    with profile() as prof:
        Nested.apply(x, 3)
    line = by_name(lines_of(prof.function_events))["Mine"]
    outer = prof.function_events[0]
    assert line.forward.calls == 4
    assert line.forward.total == pytest.approx(outer.cpu_time_total)


@pytest.mark.parametrize("sort", ["time", "total", "calls", "memory"])
def test_lines_are_sorted(sort: str) -> None:
    lines = lines_of(measured().function_events, sort)
    keys = [line.key(sort) for line in lines]
    assert keys == sorted(keys, reverse=True)
