"""Decompositions: gauge checks of their gradients, info of singular matrices, edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradfn as torch

INF = float("inf")


def complex_matrix() -> Any:
    rng = np.random.default_rng(5)
    z = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    return torch.tensor(z, requires_grad=True)


@pytest.mark.parametrize("name", ["svd", "eigh", "eig"])
def test_a_loss_that_depends_on_phases_is_refused(name: str) -> None:
    z = complex_matrix()
    vectors = getattr(torch.linalg, name)(z)[0 if name == "svd" else 1]
    with pytest.raises(
        RuntimeError, match=r"specified up to multiplication by e\^\{i phi"
    ):
        vectors.real.sum().backward()


@pytest.mark.parametrize(("mode", "text"), [("r", "depends on Q"), ("complete", "nrows")])
def test_qr_without_a_derivative_says_so(mode: str, text: str) -> None:
    a = torch.randn(4, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match=text):
        torch.linalg.qr(a, mode)[1].sum().backward()


def test_info_names_the_matrix_that_failed() -> None:
    a = torch.stack([torch.eye(3), torch.ones(3, 3)])
    assert torch.linalg.inv_ex(a).info.tolist() == [0, 2]
    assert torch.linalg.cholesky_ex(-a).info.tolist() == [1, 1]
    with pytest.raises(
        torch.linalg.LinAlgError, match=r"Batch element 1.*element 2 is zero"
    ):
        torch.linalg.inv(a)


def test_nothing_but_minus_infinity_has_no_gradient() -> None:
    a = torch.tensor([-INF, 0.0, -INF], requires_grad=True)
    b = torch.tensor([-INF, -INF, 1.0], requires_grad=True)
    both = torch.logaddexp(a, b).sum()
    first = torch.autograd.grad(both, [a, b], create_graph=True)
    assert [g.tolist() for g in first] == [[0, 1, 0], [0, 0, 1]]
    second = torch.autograd.grad(first[0].sum() + first[1].sum(), [a, b])
    assert all(bool(g.isfinite().all()) for g in second)


def test_what_as_strided_scatter_overwrote_has_no_gradient() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    torch.as_strided_scatter(x, torch.zeros(2), (2,), (3,), 1).sum().backward()
    assert x.grad.tolist() == [[1, 0, 1], [1, 0, 1]]
