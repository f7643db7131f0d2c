"""Custom Functions under vmap: what their methods are given, and what they return."""

from __future__ import annotations

from typing import Any

import pytest

import gradfn as torch
from gradfn.autograd import Function
from gradfn.func import grad, vmap

X = torch.arange(6.0).reshape(2, 3)


class Scaled(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, *, by: Any = 1.0) -> Any:
        return x * by

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 3


class Doubled(Scaled):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, *, by: Any = 1.0) -> Any:
        assert in_dims == (0,)
        return x * by * 2, 0


def test_keyword_only_arguments_reach_the_rules() -> None:
    assert torch.equal(vmap(lambda x: Scaled.apply(x, by=3.0))(X), X * 3)
    assert torch.equal(vmap(lambda x: Doubled.apply(x, by=3.0))(X), X * 6)
    by_sample = vmap(grad(lambda x: Scaled.apply(x, by=3.0).sum()))(X)
    assert torch.equal(by_sample, torch.full_like(X, 3.0))


def test_a_keyword_only_tensor_of_each_sample_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        vmap(lambda x, y: Scaled.apply(x, by=y))(X, X)


@pytest.mark.parametrize("dims", [(None,), (0, 0), {"a": 0}])
def test_out_dims_must_fit_the_output(dims: Any) -> None:
    class Wrong(Doubled):
        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return x, dims

    with pytest.raises(RuntimeError, match="returned an incompatible"):
        vmap(Wrong.apply)(X)


def test_two_outputs_one_of_them_shared() -> None:
    class Both(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2, torch.ones(2)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return (x.mT * 2, torch.ones(2)), (1, None)

    twice, shared = vmap(Both.apply, out_dims=(0, None))(X)
    assert torch.equal(twice, X * 2)
    assert torch.equal(shared, torch.ones(2))
