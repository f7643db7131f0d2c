"""PyTorch refuses what tests/func/test_refusals.py says, with that type and phrase."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

OWN = ("class", "add_")  # where PyTorch says something else
SOURCE = Path(__file__).parents[1] / "func" / "test_refusals.py"


def cases() -> dict[str, Any]:
    """The cases of that file, made for PyTorch."""
    text = SOURCE.read_text(encoding="utf-8")
    text = text.replace("import gradfn as torch", "import torch").replace(
        "gradfn", "torch"
    )
    place: dict[str, Any] = {"__name__": "refusals"}
    exec(compile(text, str(SOURCE), "exec"), place)
    found = {**place["TRANSFORMS"], **place["VMAP"]}
    return {name: case for name, case in found.items() if name not in OWN}


CASES = cases()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_is_refused(case: str) -> None:
    call, kind, phrase = CASES[case]
    with pytest.raises(kind, match=phrase):
        call()
