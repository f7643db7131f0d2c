"""Where a Python number may stand for a tensor: of two operands, just where PyTorch has it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradfn
import gradfn.special
from gradfn.ops.rule import TABLE

ROWS = [n for n, row in TABLE.items() if row.numbers and not n.startswith("_")]
ROWS += ["pow", "float_power"]
WAYS = {
    "second": lambda x: (x, 2),
    "first": lambda x: (2, x),
    "both": lambda x: (2, 3),
}


def accepts(library: Any, name: str, args: Any) -> bool:
    """Does the function take the arguments? (Some are for integers only.)"""
    space = library.special if name.startswith("special_") else library
    function = getattr(space, name.removeprefix("special_"))
    for dtype in (library.float32, library.int64):
        try:
            function(*args(library.ones(2, dtype=dtype)))
            return True
        except TypeError:
            return False
        except (RuntimeError, NotImplementedError):
            continue
    raise AssertionError(f"{name} takes neither floats nor integers")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ROWS)
def test_as_pytorch(name: str, way: str) -> None:
    args = WAYS[way]
    assert accepts(gradfn, name, args) is accepts(torch, name, args)


@pytest.mark.parametrize("name", [n for n in ROWS if hasattr(gradfn.Tensor, f"{n}_")])
def test_the_same_in_place(name: str) -> None:
    def second(x: Any) -> bool:
        try:
            getattr(x, f"{name}_")(2)
        except TypeError:
            return False
        except (RuntimeError, NotImplementedError):
            return True  # for this dtype
        return True

    assert second(gradfn.ones(2)) is second(torch.ones(2))
