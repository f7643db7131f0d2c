"""Helpers that tests import by name; fixtures are in conftest.py."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradfn

Run = Callable[..., subprocess.CompletedProcess[str]]

_ROOT = str(Path(gradfn.__file__).parents[1])


def python_in(folder: Path) -> Run:
    """A function that runs Python in ``folder``, with warnings as errors, to its end.

    It takes the arguments of the command; ``input`` and variables of the environment
    by keyword.
    """

    def run(
        *arguments: str | Path, input: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", *arguments],
            input=input,
            env={**os.environ, "PYTHONPATH": _ROOT, "PYTHONUTF8": "1", **environment},
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )

    return run


def leaf(*values: float, **options: Any) -> Any:
    """A tensor that requires grad; [1, 2] if no values are given."""
    floats = [v * 1.0 for v in values or (1, 2)]
    return gradfn.tensor(floats, requires_grad=True, **options)


def function(forward: Any, backward: Any, **more: Any) -> Any:
    """A custom Function made of plain functions."""
    body = {"forward": forward, "backward": backward, **more}
    static = {name: staticmethod(method) for name, method in body.items()}
    return type("Mine", (gradfn.autograd.Function,), static)
