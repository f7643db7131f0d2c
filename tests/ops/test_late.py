"""The ops that are loaded late are there, whichever way they are asked for."""

from __future__ import annotations

import pytest
from support import Run

import gradfn as torch
from gradfn.ops import late


@pytest.mark.parametrize("name", sorted(late.FUNCTIONS))
def test_functions_are_found(name: str) -> None:
    assert callable(getattr(torch, name))


def test_each_group_makes_the_names_that_are_said(python: Run) -> None:
    code = """
from gradfn.ops import late
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor
for group, (functions, methods) in late.GROUPS.items():
    had, was = set(PUBLIC), dict(vars(Tensor))
    late.load(group)
    changed = {k for k, v in vars(Tensor).items() if was.get(k) is not v}
    assert set(PUBLIC) - had == set(functions.split()), group
    assert changed == set(methods.split()), group
print("ok")
"""
    assert python("-c", code).stdout == "ok\n"


def test_methods_and_numpy_functions_find_them(python: Run) -> None:
    code = """
import numpy as np
import gradfn as torch
x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
print(x.cov().tolist(), np.frexp(x)[1].tolist(), x.abs().i0_().shape)
"""
    expected = "[[0.5, 1.0], [1.0, 2.0]] [[1, 2], [2, 3]] torch.Size([2, 2])\n"
    assert python("-c", code).stdout == expected


def test_what_no_group_has_is_refused() -> None:
    with pytest.raises(AttributeError, match="no op is called 'quaternion'"):
        late.quaternion
    with pytest.raises(KeyError):
        late.PUBLIC["quaternion"]
