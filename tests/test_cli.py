"""The command line: what a program sees of itself, and what is seen of the program."""

from __future__ import annotations

import os
import signal
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import Run

import gradfn
from gradfn import cli

Completed = subprocess.CompletedProcess[str]


@pytest.fixture
def run(python: Run) -> Callable[..., Completed]:
    """``gradfn run`` in the test's own folder."""

    def run(*arguments: str, **how: str) -> Completed:
        return python("-m", "gradfn", "run", *arguments, **how)

    return run


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return tmp_path / "program.py"


def lines(ran: Completed) -> list[str]:
    assert (ran.stderr, ran.returncode) == ("", 0)
    return ran.stdout.splitlines()


# --- the program's surroundings are its own -----------------------------------------


def test_torch_is_gradfn_and_math_works(run: Run, program: Path) -> None:
    program.write_text(
        "import torch\n"
        "import torch.autograd.graph as G\n"
        "from torch import autograd\n"
        "from torch.autograd import Function\n"
        "x = torch.tensor([1.0, 2.0], requires_grad=True)\n"
        "(x * x).sum().backward()\n"
        "print(x.grad)\n"
        "print(torch.__name__, G.__name__, autograd.__name__, Function.__name__)\n"
    )
    assert lines(run("program.py")) == [
        "tensor([2., 4.])",
        "gradfn gradfn.autograd.graph gradfn.autograd Function",
    ]


def test_arguments_are_left_as_they_are(run: Run, program: Path) -> None:
    program.write_text("import sys\nprint(sys.argv)\n")
    given = ["-m", "--help", "a b", "--", "-"]
    assert lines(run("program.py", *given)) == [repr(["program.py", *given])]


def test_main_is_the_program(run: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "neighbour.py").write_text("")
    (tmp_path / "folder" / "program.py").write_text(
        "import sys, pickle, neighbour\n"
        "class Thing: pass\n"
        "assert type(pickle.loads(pickle.dumps(Thing()))) is Thing\n"
        "assert sys.modules['__main__'].__dict__ is globals()\n"
        "assert __package__ is None and __spec__ is None and __doc__ is None\n"
        "print(__name__, __file__, sys.path[0], sep='\\n')\n"
    )
    folder = tmp_path.resolve() / "folder"
    ran = run(os.path.join("folder", "program.py"))
    assert lines(ran) == ["__main__", str(folder / "program.py"), str(folder)]


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_processes_that_the_program_starts(method: str, run: Run, program: Path) -> None:
    program.write_text(
        "import multiprocessing, sys, torch\n"
        "def twice(x): return torch.__name__, x * 2\n"
        "if __name__ == '__main__':\n"
        f"    if {method!r} not in multiprocessing.get_all_start_methods():\n"
        "        sys.exit('absent')\n"
        f"    with multiprocessing.get_context({method!r}).Pool(1) as pool:\n"
        "        print(pool.map(twice, [1, 2]))\n"
    )
    ran = run("program.py", PYTHONWARNINGS="default")
    if ran.stderr == "absent\n":
        pytest.skip(f"no {method} on this system")
    assert ran.stdout == "[('gradfn', 2), ('gradfn', 4)]\n", ran.stderr


def test_a_module(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import torch\n")
    (package / "__main__.py").write_text("from . import part\n")
    (package / "part.py").write_text(
        "import sys\nprint(__name__, __package__, sys.argv[1:], sys.path[0])\n"
    )
    here = str(tmp_path.resolve())
    assert lines(run("-m", "package", "-x")) == [f"package.part package ['-x'] {here}"]
    ran = run("-m", "package.part", "a")
    assert lines(ran) == [f"__main__ package ['a'] {here}"]


def test_code_and_standard_input(run: Run) -> None:
    code = "import sys, torch; print(torch.__name__, sys.argv, repr(sys.path[0]))"
    assert lines(run("-c", code, "-x")) == ["gradfn ['-c', '-x'] ''"]
    assert lines(run("-", "-x", input=code)) == ["gradfn ['-', '-x'] ''"]


def test_an_encoding_that_the_program_declares(run: Run, program: Path) -> None:
    program.write_bytes("# coding: koi8-r\nprint('тензор')\n".encode("koi8-r"))
    assert lines(run("program.py")) == ["тензор"]


# --- exit status and tracebacks are Python's ----------------------------------------


@pytest.mark.parametrize(
    ("code", "status", "message"),
    [
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit('told why')", 1, "told why\n"),
        ("raise SystemExit(3)", 3, ""),
    ],
)
def test_exit_status(code: str, status: int, message: str, run: Run) -> None:
    ran = run("-c", code)
    assert (ran.returncode, ran.stderr) == (status, message)


FAULTY = {
    "error": "def f():\n    return 1 / 0\nf()\n",
    "syntax": "import torch\nx = = 1\n",
    "chain": (
        "try:\n    {}['key']\nexcept KeyError as error:\n"
        "    raise ValueError('outer') from error\n"
    ),
    "group": "raise ExceptionGroup('both', [ValueError('a'), TypeError('b')])\n",
    "import": "import no_such_module_at_all\n",
    "hook": (
        "import sys\nsys.excepthook = lambda kind, error, frames: "
        "print(kind.__name__, frames.tb_lineno, file=sys.stderr)\n1 / 0\n"
    ),
}


@pytest.mark.parametrize("source", FAULTY.values(), ids=FAULTY)
def test_tracebacks_are_the_programs(
    source: str, run: Run, python: Run, program: Path
) -> None:
    program.write_text(source)
    with_gradfn, plain = run("program.py"), python("program.py", PYTHONPATH="")
    if "torch" in source:  # a fault that is found before the import
        assert "SyntaxError" in plain.stderr
    assert with_gradfn.stderr == plain.stderr
    assert with_gradfn.returncode == plain.returncode == 1


def test_a_traceback_of_a_module(run: Run, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("1 / 0\n")
    shown = run("-m", "module").stderr
    assert shown.count("File ") == 1
    assert "module.py" in shown


def test_a_missing_part_of_torch_is_told_at_the_import(run: Run, program: Path) -> None:
    program.write_text("import torch.no_such\n")
    ran = run("program.py")
    assert ran.returncode == 1
    assert ran.stderr.count("File ") == 1
    assert ran.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: No module named 'torch.no_such': gradfn (standing in "
        "for torch) has no such module"
    )


def test_a_missing_name_of_torch_is_told_where_it_is_used(run: Run) -> None:
    ran = run("-c", "import torch; torch.no_such")
    assert ran.returncode == 1
    assert ran.stderr.count("File ") == 1
    assert "gradfn" in ran.stderr.splitlines()[-1]
    assert "'no_such'" in ran.stderr.splitlines()[-1]


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_an_interrupt_ends_the_process_as_it_ends_python(run: Run) -> None:
    ran = run("-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    assert ran.returncode == -signal.SIGINT
    assert ran.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert "cli.py" not in ran.stderr


# --- what cannot be run -------------------------------------------------------------


def test_a_missing_file(run: Run, tmp_path: Path) -> None:
    ran = run("no_such.py")
    assert ran.returncode == 2
    assert ran.stderr == (
        f"gradfn run: can't open file '{tmp_path.resolve() / 'no_such.py'}': "
        "[Errno 2] No such file or directory\n"
    )


@pytest.mark.parametrize("name", ["no_such", "no_such.part", "json.no_such"])
def test_a_missing_module(name: str, run: Run) -> None:
    ran = run("-m", name)
    assert ran.returncode == 1
    assert ran.stderr == f"gradfn run: No module named {name} that can be run\n"


@pytest.mark.parametrize("arguments", [[], ["-x", "program.py"], ["-m"], ["-c"]])
def test_no_program(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", *arguments]) == 2
    assert "gradfn run --help" in capsys.readouterr().err


# --- the command itself -------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"], ["run", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.startswith("usage: gradfn run PROGRAM.py")


def test_an_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["walk"]) == 2
    assert capsys.readouterr().err == ("gradfn: no command 'walk'; try `gradfn --help`\n")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"gradfn {gradfn.__version__} (Python 3.")
    assert f"NumPy {np.__version__})" in shown


def test_the_version_is_that_of_the_distribution() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]
    assert gradfn.__version__ == declared


def test_run_needs_neither_click_nor_rich(run: Run) -> None:
    code = "import sys, torch; print({'click', 'rich', 'argparse'} & {*sys.modules})"
    assert lines(run("-c", code)) == ["set()"]
