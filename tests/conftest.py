"""What every test shares: when PyTorch takes part, and Python in processes."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

import pytest
from hypothesis import settings
from support import Run, python_in

# --- PyTorch ------------------------------------------------------------------------
#
# tests/parity compares with one version of PyTorch, and is left out where it is not
# installed. Where it must not be missed (CI), GRADFN_REQUIRE_TORCH makes that an error.

PYTORCH = "2.13"


def _why_no_parity() -> str | None:
    try:
        found = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "PyTorch is not installed"
    if found.startswith(f"{PYTORCH}."):
        return None
    return f"they compare with PyTorch {PYTORCH}, and {found} is installed"


NO_PARITY = _why_no_parity()
collect_ignore = ["parity"] if NO_PARITY else []


def pytest_configure(config: pytest.Config) -> None:
    if NO_PARITY and os.environ.get("GRADFN_REQUIRE_TORCH"):
        raise pytest.UsageError(f"GRADFN_REQUIRE_TORCH is set, but {NO_PARITY}")


def pytest_report_header() -> str:
    if NO_PARITY:
        return f"parity tests: left out ({NO_PARITY}; try pip install torch)"
    return "parity tests: included, PyTorch " + importlib.metadata.version("torch")


# --- Hypothesis ---------------------------------------------------------------------

# Times vary with the machine's load. In CI the same examples are made each time, so
# that a change is judged by what it changes; at home each run looks further.
settings.register_profile("home", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")


# --- processes ----------------------------------------------------------------------


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """Run Python with warnings as errors, in the test's own folder, to its end."""
    return python_in(tmp_path)
