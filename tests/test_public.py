"""The names that gradfn shows."""

from __future__ import annotations

import pytest
from support import Run

import gradfn


def test_all_is_sorted_and_true() -> None:
    assert gradfn.__all__ == sorted(gradfn.__all__)
    assert all(hasattr(gradfn, name) for name in gradfn.__all__)
    assert {"Tensor", "tensor", "no_grad", "float32", "mul"} <= set(gradfn.__all__)


def test_no_helper_is_public() -> None:
    assert not [n for n in gradfn.__all__ if n.startswith("_")]
    assert not {"annotations", "ops", "graph", "printing"} & set(gradfn.__all__)


def test_a_name_that_gradfn_lacks_is_refused_by_name() -> None:
    with pytest.raises(AttributeError, match=r"gradfn, not PyTorch.*'quaternion'"):
        gradfn.quaternion


def test_every_public_function_is_documented() -> None:
    bare = [
        name
        for name in gradfn.__all__
        if callable(getattr(gradfn, name))
        and not getattr(gradfn, name).__doc__
        and getattr(getattr(gradfn, name), "__module__", "") != "gradfn"  # rows
    ]
    assert bare == []


def test_vmap_has_torchs_short_name() -> None:
    doubled = gradfn.vmap(lambda x: x * 2)(gradfn.ones(3))
    assert gradfn.vmap is gradfn.func.vmap
    assert doubled.tolist() == [2.0] * 3


def test_functions_of_nn_that_torch_also_has_at_the_top() -> None:
    assert gradfn.conv2d is gradfn.nn.functional.conv2d
    assert gradfn.pixel_shuffle(gradfn.ones(4, 1, 1), 2).shape == (1, 2, 2)
    assert gradfn.max_pool3d.__doc__ == (
        "The largest element of each window over the last 3 dims."
    )


@pytest.mark.parametrize(
    "path", ["autograd.gradcheck", "nn.utils.weight_norm"], ids=lambda p: p
)
def test_a_function_may_be_called_after_its_module_was_imported(
    path: str, python: Run
) -> None:
    """Importing `torch.nn.utils.weight_norm` binds that name to the module."""
    code = (
        f"import gradfn as torch, importlib; importlib.import_module('gradfn.{path}');"
        f"torch.{path}(*[])"
    )
    assert "missing" in python("-c", code).stderr
