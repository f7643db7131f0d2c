"""gradcheck and gradgradcheck: what they accept, what they find, what they say."""

from __future__ import annotations

from typing import Any

import pytest
from support import function

import gradfn as torch
from gradfn.autograd import gradcheck, gradgradcheck
from gradfn.autograd.gradcheck import GradcheckError


def double(*values: Any, dtype: Any = torch.float64) -> Any:
    """A leaf in the precision that gradcheck needs."""
    return torch.tensor(values or (0.5, 1.5), dtype=dtype, requires_grad=True)


def times(true: float, claimed: float) -> Any:
    """x * true, whose gradient is said to be `claimed`."""
    return function(lambda ctx, x: x * true, lambda ctx, g: g * claimed).apply


def other_each_time() -> Any:
    """2x, whose gradient is a little different in each pass."""
    calls = []

    def backward(ctx: Any, g: Any) -> Any:
        calls.append(1)
        return g * (2 + 1e-7 * len(calls))

    return function(lambda ctx, x: x * 2, backward).apply


# -- what is right ---------------------------------------------------------------------


def test_a_right_gradient_passes() -> None:
    assert gradcheck(times(3, 3), double()) is True


def test_built_in_ops_pass() -> None:
    assert gradcheck(lambda x, y: (x * y).exp().sum(), [double(), double()])


def test_several_outputs_pass() -> None:
    assert gradcheck(lambda x: (x * 2, x.sin()), [double()])


def test_arguments_that_are_no_tensors_are_passed_on() -> None:
    assert gradcheck(lambda x, n: x * n, (double(), 3))


def test_tensors_that_need_no_gradient_are_left_alone() -> None:
    assert gradcheck(lambda x, y: x * y, (double(), torch.ones(2, dtype=torch.float64)))


def test_the_inputs_are_not_changed() -> None:
    x = double(0.5, 1.5)
    gradcheck(lambda x: x.exp(), x)
    assert (x.tolist(), x.grad) == ([0.5, 1.5], None)


def test_complex_inputs_pass() -> None:
    z = double(1 + 2j, 3 - 1j, dtype=torch.complex128)
    assert gradcheck(lambda z: z * z, z)


def test_a_real_function_of_a_complex_input_passes() -> None:
    z = double(1 + 2j, 3 - 1j, dtype=torch.complex128)
    assert gradcheck(lambda z: z.abs(), z)


def test_a_complex_function_of_a_real_input_passes() -> None:
    assert gradcheck(lambda x: x * (1 + 2j), double())


def test_an_empty_input_passes() -> None:
    x = torch.zeros(0, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: x * 2, x)


def test_it_works_under_no_grad() -> None:
    with torch.no_grad():
        assert gradcheck(times(3, 3), double())


def test_fast_mode_is_accepted() -> None:
    assert gradcheck(times(3, 3), double(), fast_mode=True)


# -- what is wrong ---------------------------------------------------------------------


def test_a_wrong_gradient_is_found() -> None:
    with pytest.raises(
        GradcheckError, match="Jacobian mismatch for output 0 with respect"
    ):
        gradcheck(times(3, 4), double())


def test_the_error_shows_both_jacobians() -> None:
    with pytest.raises(GradcheckError, match=r"numerical:tensor(?s:.*)analytical:tensor"):
        gradcheck(times(3, 4), double())


def test_the_error_names_output_and_input() -> None:
    with pytest.raises(GradcheckError, match="output 1 with respect to input 2"):
        gradcheck(lambda n, x, y: (x, x * times(3, 4)(y)), (5, double(), double()))


def test_the_error_names_the_worst_element() -> None:
    wrong = torch.tensor([3.0, 7.0], dtype=torch.float64)
    made = function(lambda ctx, x: x * 3, lambda ctx, g: g * wrong).apply
    with pytest.raises(GradcheckError, match="element 1 of the output by element 1"):
        gradcheck(made, double())


def test_the_error_is_a_runtime_error() -> None:
    assert issubclass(GradcheckError, RuntimeError)


def test_instead_of_raising_it_returns_false() -> None:
    assert gradcheck(times(3, 4), double(), raise_exception=False) is False


def test_tolerances_decide() -> None:
    assert gradcheck(times(3, 3.1), double(), atol=0.2)


def test_a_wrong_complex_gradient_is_found() -> None:
    z = double(1 + 2j, dtype=torch.complex128)
    conjugated = function(lambda ctx, z: z * 1j, lambda ctx, g: g * 1j).apply
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(conjugated, z)


def test_a_gradient_that_is_missing_is_found() -> None:
    made = function(lambda ctx, x, y: x * y, lambda ctx, g: (g * 0, None)).apply
    with pytest.raises(GradcheckError, match="with respect to input 0"):
        gradcheck(made, (double(), double()))


def test_an_output_that_hides_its_dependence_is_found() -> None:
    with pytest.raises(
        GradcheckError, match="Numerical gradient for function expected to"
    ):
        gradcheck(lambda x: x.detach() * 2, double())


def test_a_constant_output_passes() -> None:
    assert gradcheck(lambda x: torch.ones(2), double())


def test_a_backward_that_differs_each_time_is_found() -> None:
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(other_each_time(), double())


def test_nondet_tol_allows_small_differences() -> None:
    assert gradcheck(other_each_time(), double(), nondet_tol=1e-4)


def test_a_backward_that_cannot_do_without_a_gradient_is_found() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2

    made = function(forward, lambda ctx, g: g * 2).apply
    with (
        pytest.warns(UserWarning, match="undefined gradient support"),
        pytest.raises(GradcheckError, match="handle undefined output grads"),
    ):
        gradcheck(made, double())


def test_a_backward_that_can_do_without_a_gradient_passes() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        parts = [t * n for t, n in ((g, 2), (h, 3)) if t is not None]
        return sum(parts) if parts else None

    assert gradcheck(function(forward, backward).apply, double())


# -- what is not accepted --------------------------------------------------------------


def test_an_input_must_require_grad() -> None:
    with pytest.raises(ValueError, match="requires_grad"):
        gradcheck(lambda x: x, torch.ones(2))


def test_single_precision_warns() -> None:
    x = double(1.0, dtype=torch.float32)
    with pytest.warns(UserWarning, match="double precision"):
        gradcheck(lambda x: x * 1, x, eps=0.125)


def test_an_expanded_input_is_refused() -> None:
    x = torch.ones(1, dtype=torch.float64).expand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="dimension with stride 0"):
        gradcheck(lambda x: x * 1, x)


# -- second derivatives ----------------------------------------------------------------


def test_right_second_derivatives_pass() -> None:
    assert gradgradcheck(lambda x: x * x * x, double()) is True


def test_second_derivatives_by_several_inputs_pass() -> None:
    assert gradgradcheck(lambda x, y: x * x * y, (double(), double()))


def test_a_wrong_second_derivative_is_found() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    made = function(forward, lambda ctx, g: g * 2 * ctx.saved_tensors[0].detach()).apply
    assert gradcheck(made, double())
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(made, double())


def test_cotangents_may_be_given() -> None:
    assert gradgradcheck(lambda x: x * x, double(), double(1.0, 2.0))


def test_complex_second_derivatives_pass() -> None:
    z = double(1 + 2j, 3 - 1j, dtype=torch.complex128)
    assert gradgradcheck(lambda z: z * z * z, z)


def test_a_linear_function_passes() -> None:
    assert gradgradcheck(lambda x: x * 2, double())


def test_gradgradcheck_returns_false_if_told_not_to_raise() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    made = function(forward, lambda ctx, g: g * 2 * ctx.saved_tensors[0].detach()).apply
    assert gradgradcheck(made, double(), raise_exception=False) is False
