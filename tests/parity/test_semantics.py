"""What tests/semantics says that PyTorch prints is what it prints."""

from __future__ import annotations

import pytest
import torch
import torch.utils.checkpoint
from semantics import Program, printed, programs


@pytest.mark.parametrize("program", programs(), ids=lambda p: p.title)
def test_the_record_is_true(program: Program) -> None:
    assert printed(torch, program.source) == program.expected
