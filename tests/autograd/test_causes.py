"""The likely cause of a wrong gradient: each mistake is told by its pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import function

import gradfn as torch
from gradfn.autograd import gradcheck
from gradfn.autograd.causes import Jacobians, likely_cause
from gradfn.autograd.gradcheck import GradcheckError

RNG = np.random.default_rng(7)


def matrix(*shape: int) -> Any:
    return RNG.uniform(0.5, 2, shape)


def named(mine: Any, true: Any, out: Any, inn: Any, **more: Any) -> str:
    """The name of the likely cause, or "" if there is none."""
    found = likely_cause(Jacobians(np.array(mine), np.array(true), out, inn, **more))
    return found.name if found else ""


def text(mine: Any, true: Any, out: Any, inn: Any, **more: Any) -> str:
    found = likely_cause(Jacobians(np.array(mine), np.array(true), out, inn, **more))
    assert found is not None
    return found.text


# -- from matrices ---------------------------------------------------------------------


def test_a_gradient_that_is_not_there() -> None:
    assert named(np.zeros((3, 3)), matrix(3, 3), (3,), (3,)) == "no gradient"


def test_a_gradient_of_a_constant() -> None:
    assert named(np.eye(3), np.zeros((3, 3)), (3,), (3,)) == "no dependence"


def test_nan() -> None:
    mine = np.diag([1.0, np.nan])
    assert named(mine, np.eye(2), (2,), (2,)) == "not finite"
    assert "NaN" in text(mine, np.eye(2), (2,), (2,))


def test_what_is_not_known_is_no_evidence() -> None:
    true = np.diag([2.0, np.nan])
    assert named(np.diag([-2.0, 5.0]), true, (2,), (2,)) == "sign"


def test_the_sign() -> None:
    j = matrix(2, 3)
    assert named(-j, j, (2,), (3,)) == "sign"


@pytest.mark.parametrize(
    ("factor", "said"),
    [(2, "2 times"), (0.5, "1/2 times"), (1 / 3, "1/3"), (1.234, "1.234")],
)
def test_a_constant_factor(factor: float, said: str) -> None:
    j = matrix(2, 2)
    assert named(factor * j, j, (2,), (2,)) == "constant factor"
    assert said in text(factor * j, j, (2,), (2,))


def test_a_mean_for_a_sum() -> None:
    j = matrix(5, 3)
    assert "a mean for a sum" in text(j / 5, j, (5,), (3,))
    assert "a sum for a mean" in text(j * 15, j, (5, 3), ())


def test_numbers_of_gradcheck_are_good_enough() -> None:
    j = matrix(3, 3)
    noisy = j * (1 + 1e-7 * RNG.normal(size=(3, 3)))
    assert named(3 * j, noisy, (3,), (3,)) == "constant factor"


def product(x: Any, w: Any) -> tuple[Any, Any]:
    """The Jacobians of x @ w by x and by w."""
    m, k = x.shape
    _, n = w.shape
    by_x = np.einsum("ip,qj->ijpq", np.eye(m), w).reshape(m * n, m * k)
    by_w = np.einsum("ip,jq->ijpq", x, np.eye(n)).reshape(m * n, k * n)
    return by_x, by_w


def test_a_weight_that_is_not_transposed() -> None:
    x, w = matrix(3, 3), matrix(3, 3)
    by_x, by_w = product(x, w)
    assert named(product(x, w.T)[0], by_x, (3, 3), (3, 3)) == "transpose"
    assert named(product(x.T, w)[1], by_w, (3, 3), (3, 3)) == "transpose"


def test_a_gradient_that_is_transposed() -> None:
    by_x = product(matrix(3, 3), matrix(3, 3))[0]
    mine = by_x.reshape(9, 3, 3).transpose(0, 2, 1).reshape(9, 9)
    assert named(mine, by_x, (3, 3), (3, 3)) == "transpose"


def test_a_gradient_that_is_reshaped_for_transposed() -> None:
    true = matrix(4, 6)
    mine = np.stack([row.reshape(2, 3).T.reshape(2, 3) for row in true]).reshape(4, 6)
    assert named(mine, true, (4,), (2, 3)) == "reshaped"


def test_a_sum_over_the_wrong_dim() -> None:
    true = np.einsum("i,jk->ijk", np.ones(3), np.eye(3)).reshape(9, 3)
    mine = np.einsum("j,ik->ijk", np.ones(3), np.eye(3)).reshape(9, 3)
    assert named(mine, true, (3, 3), (3,)) == "wrong dim"


def test_a_broadcast_sum_that_is_missing() -> None:
    true = np.einsum("i,jk->ijk", np.ones(4), np.diag(matrix(3))).reshape(12, 3)
    mine = true.copy()
    mine[3:] = 0  # the first row of the batch alone
    assert named(mine, true, (4, 3), (3,)) == "broadcast sum"


def test_arguments_and_outputs_that_are_swapped() -> None:
    a, b = matrix(3, 3), matrix(3, 3)
    assert named(b, a, (3,), (3,), by_inputs={"y": b}) == "swapped argument"
    assert named(b, a, (3,), (3,), of_outputs={"the second": b}) == "swapped output"
    assert "of y:" in text(b, a, (3,), (3,), by_inputs={"y": b})


def test_a_backward_that_ignores_its_argument() -> None:
    j = np.diag(matrix(3))
    mine = np.repeat(j.sum(0)[None], 3, 0)
    assert named(mine, j, (3,), (3,)) == "grad_output ignored"


def test_a_conjugate_that_is_missing() -> None:
    a, b = np.diag(matrix(2)), np.diag(matrix(2))
    right, wrong = np.block([[a, -b], [b, a]]), np.block([[a, b], [-b, a]])
    known = {"complex_out": True, "complex_in": True}
    assert named(wrong, right, (2,), (2,), **known) == "conjugate"


def test_an_imaginary_part_that_is_missing() -> None:
    true = matrix(2, 4)
    mine = true.copy()
    mine[:, 2:] = 0
    assert named(mine, true, (2,), (2,), complex_in=True) == "imaginary part"


def test_a_factor_of_the_formula() -> None:
    x = matrix(4)
    values = {"x": x}
    assert (
        text(np.eye(4), np.diag(x), (4,), (4,), values=values) == "a factor x is missing"
    )
    mine = np.diag(x * (1 - x * x))
    said = text(mine, np.diag(x), (4,), (4,), values=values)
    assert said == "a factor (1 - x**2) is too many"


def test_a_part_of_the_input() -> None:
    x = np.array([1.0, -2.0, 3.0, -0.5])
    mine = np.diag([1, 0.3, 1, 0.7])
    said = text(mine, np.eye(4), (4,), (4,), values={"x": x}, here="x")
    assert said == "it is wrong where the input is negative, and right elsewhere"


def test_single_elements() -> None:
    mine = np.eye(6)
    mine[4, 4] = 3
    said = text(mine, np.eye(6), (6,), (2, 3), values={"x": matrix(2, 3)}, here="x")
    assert said.endswith("[1, 1]")


def test_no_cause_is_invented() -> None:
    assert named(matrix(4, 4), matrix(4, 4), (4,), (2, 2)) == ""
    assert named(np.zeros((0, 3)), np.zeros((0, 3)), (0,), (3,)) == ""


# -- from gradcheck --------------------------------------------------------------------


def double(*values: Any) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(
    ("forward", "backward", "said"),
    [
        (lambda ctx, x: x * 3, lambda ctx, g: g * 6, "2 times what it should be"),
        (lambda ctx, x: -x, lambda ctx, g: g, "the sign is wrong"),
        (lambda ctx, x: x * 3, lambda ctx, g: g * 0, "no gradient reaches"),
        (lambda ctx, x: x * 3, lambda ctx, g: torch.full((2,), 3.0), "multiply by grad"),
        (lambda ctx, x: x.round(), lambda ctx, g: g, "does not change with this input"),
    ],
)
def test_gradcheck_names_the_cause(forward: Any, backward: Any, said: str) -> None:
    with pytest.raises(GradcheckError, match=f"Likely cause: .*{said}"):
        gradcheck(function(forward, backward).apply, double(0.6, 1.7))


def test_gradcheck_names_swapped_arguments() -> None:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y

    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * x, g * y

    with pytest.raises(
        GradcheckError, match="gradient of input 1: arguments are swapped"
    ):
        gradcheck(function(forward, backward).apply, (double(0.6, 1.7), double(2.0, 3.0)))


def test_gradcheck_names_a_missing_conjugate() -> None:
    def forward(ctx: Any, z: Any) -> Any:
        ctx.save_for_backward(z)
        return z * z

    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * ctx.saved_tensors[0]

    z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
    with pytest.raises(GradcheckError, match="a conjugate is missing"):
        gradcheck(function(forward, backward).apply, z)


def test_gradcheck_says_no_more_than_it_knows() -> None:
    wrong = torch.tensor([[0.3, 1.9], [4.0, 0.1]], dtype=torch.float64)
    made = function(lambda ctx, x: x.cumsum(0), lambda ctx, g: wrong @ g).apply
    with pytest.raises(GradcheckError) as caught:
        gradcheck(made, double(0.6, 1.7))
    assert "Likely cause" not in str(caught.value)
