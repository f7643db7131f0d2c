"""The shape of the code: who imports whom, what `import gradfn` loads, file sizes."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from support import Run

import gradfn

SOURCE = Path(gradfn.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# Imports point from later to earlier layers only. What stands in no layer is free.
LAYERS = [
    {
        "_state",
        "_dtypes",
        "_guard",
        "_kinds",
        "_device",
        "_memory",
        "_names",
        "_pytree",
        "printing",
    },
    {"tensor", "_dtype_info"},
    {"graph"},
    {"ops"},
    {"autograd"},
    {
        "func",
        "nn",
        "optim",
        "utils",
        "testing",
        "linalg",
        "special",
        "fft",
        "signal",
        "_threads",
    },
    {
        "amp",
        "backends",
        "check",
        "compiler",
        "cuda",
        "distributions",
        "drawing",
        "hub",
        "jit",
        "library",
        "profiler",
        "random",
    },
    {"serialization"},
    {"", "cli", "compat", "__main__", "_spawn"},
]


def layer_of(module: str) -> int:
    """The number of the layer to which `gradfn.<module>…` belongs."""
    first = module.removeprefix("gradfn").strip(".").partition(".")[0]
    return next(i for i, names in enumerate(LAYERS) if first in names)


def imported(tree: ast.AST) -> list[str]:
    """The modules of gradfn that are imported at a module's top level."""
    found = []
    for node in getattr(tree, "body", []):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gradfn"):
            names = [f"{node.module}.{a.name}" for a in node.names]
            found += names if node.module == "gradfn" else [str(node.module)]
        elif isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.startswith("gradfn")]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    me = "" if parts == ("__init__",) else parts[0]
    for module in imported(ast.parse(path.read_text(encoding="utf-8"))):
        assert layer_of(module) <= layer_of(f"gradfn.{me}"), module


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_file_is_longer_than_600_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600


def test_import_loads_numpy_and_the_standard_library_only(python: Run) -> None:
    code = (
        "import numpy, sys; before = set(sys.modules); import gradfn;"
        "print(*sorted({m.partition('.')[0] for m in set(sys.modules) - before}))"
    )
    loaded = python("-c", code).stdout.split()
    known = {*sys.stdlib_module_names, "numpy", "gradfn"}
    assert "gradfn" in loaded
    assert [name for name in loaded if name not in known] == []


def test_what_few_programs_use_is_not_loaded(python: Run) -> None:
    code = "import sys, gradfn; print(*sorted(m for m in sys.modules if 'gradfn.' in m))"
    loaded = python("-c", code).stdout.split()
    late = {*LAYERS[5], *LAYERS[6], *LAYERS[7], "compat", "cli"}
    assert [m for m in loaded if m.split(".")[1] in late] == []
