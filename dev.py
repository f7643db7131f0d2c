"""Set up this checkout and do one thing with it; needs Python 3.11 or newer, no more.

    python3 dev.py try       run an example, or the program that is named
    python3 dev.py test      run the tests; takes pytest's arguments
    python3 dev.py check     lint, format and types
    python3 dev.py docs      build the documentation into site/
    python3 dev.py install   only set up

The first run makes a virtual environment in .venv, where everything is installed;
nothing outside the checkout changes.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent

# command: what it needs installed besides gradfn, one of pyproject.toml's extras
EXTRAS = {"try": "", "test": "test", "check": "dev", "docs": "docs", "install": "dev"}


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036  so that older ones are told why
        sys.exit(f"gradfn needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    options, arguments = _parse()
    python = set_up(options.venv.resolve(), EXTRAS[options.command])
    os.chdir(ROOT)
    match options.command:
        case "try":
            return run(python, "gradfn", "run", *(arguments or ["examples/square.py"]))
        case "test":
            return run(python, "pytest", "-n", "auto", *arguments)
        case "check":
            steps = (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"])
            return max([run(python, *step) for step in steps])
        case "docs":
            os.environ["NO_MKDOCS_2_WARNING"] = "1"  # pyproject.toml has mkdocs<2
            return run(python, "mkdocs", "build", "--strict", *arguments)
    return 0


def _parse() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=EXTRAS, metavar="COMMAND")
    parser.add_argument(
        "--venv", type=Path, default=ROOT / ".venv", help="use this folder, not .venv"
    )
    return parser.parse_known_args()


def run(python: Path, module: str, *arguments: str) -> int:
    """Run a module in the environment, and show how it can be done by hand."""
    where = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
    print("$", where, "-m", module, *arguments, flush=True)
    return subprocess.run([python, "-m", module, *arguments], check=False).returncode


def set_up(folder: Path, extra: str) -> Path:
    """Have an environment with gradfn and an extra installed; return its Python."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / f"gradfn-{extra or 'alone'}-installed"
    wanted = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    print(f"Setting up {folder.name}; this takes a minute, once.", flush=True)
    if not python.exists():
        venv.create(folder, symlinks=os.name != "nt", with_pip=_has_ensurepip())
    target = f"{ROOT}[{extra}]" if extra else str(ROOT)
    pip = [*_pip(python), "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--editable", target], check=False).returncode:
        sys.exit("pip could not install what is needed; its message stands above")
    done.write_text(wanted, encoding="utf-8")
    return python


def _pip(python: Path) -> list[str | Path]:
    """The environment's own pip, or this interpreter's working on the environment."""
    own = subprocess.run([python, "-m", "pip", "--version"], capture_output=True)
    if own.returncode == 0:
        return [python, "-m", "pip"]
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "--python", python]
    sys.exit("pip is missing: install your system's packages python3-venv or pip")


def _has_ensurepip() -> bool:
    """Whether a new environment can have pip: some systems package it apart."""
    return importlib.util.find_spec("ensurepip") is not None


if __name__ == "__main__":
    sys.exit(main())
