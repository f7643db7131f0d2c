"""The programs in tests/semantics print what PyTorch prints."""

from __future__ import annotations

import pytest
from semantics import Program, agree, printed, programs

import gradfn


@pytest.mark.parametrize("program", programs(), ids=lambda p: p.title)
def test_prints_what_pytorch_prints(program: Program) -> None:
    mine = printed(gradfn, program.source)
    assert agree(mine, program.expected), (mine, program.expected)
