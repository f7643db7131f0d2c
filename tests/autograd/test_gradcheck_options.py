"""What gradcheck can be asked to check besides, and what it refuses to be asked."""

from __future__ import annotations

from typing import Any

import pytest
from support import function

import gradfn as torch
from gradfn.autograd import Function, forward_ad, gradcheck, gradgradcheck
from gradfn.autograd.gradcheck import GradcheckError


def double(*values: Any, dtype: Any = torch.float64) -> Any:
    return torch.tensor(values or (0.5, 1.5), dtype=dtype, requires_grad=True)


def shifted(x: Any) -> Any:
    """x, whose gradients are all too large by 0.01."""
    y = x.clone()
    y.register_hook(lambda g: g + 0.01)
    return y


class Twice(Function):
    """2x; class attributes say what its derivatives claim."""

    backward_factor = forward_factor = 2.0

    @classmethod
    def claiming(cls, **factors: float) -> Any:
        return type(cls.__name__, (cls,), factors).apply

    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx._forward_cls.backward_factor

    @staticmethod
    def jvp(ctx: Any, v: Any) -> Any:
        return v * ctx._forward_cls.forward_factor


# -- fast mode -------------------------------------------------------------------------


def test_fast_mode_calls_the_function_less_often() -> None:
    def calls(**options: Any) -> int:
        count = 0

        def f(x: Any) -> Any:
            nonlocal count
            count += 1
            return x.sin()

        assert gradcheck(
            f, torch.rand(40, dtype=torch.float64).requires_grad_(), **options
        )
        return count

    assert calls(fast_mode=True) * 3 < calls()


def test_fast_mode_finds_a_wrong_element_and_says_why() -> None:
    wrong = Twice.claiming(backward_factor=3.0)
    with pytest.raises(
        GradcheckError, match="mismatch for output 0 with respect"
    ) as error:
        gradcheck(wrong, double(), fast_mode=True)
    assert "Likely cause" in str(error.value)
    assert "slow mode" in str(error.value)


def test_complex_functions_are_checked_in_full_all_the_same() -> None:
    z = double(1 + 2j, 3 - 1j, dtype=torch.complex128)
    assert gradcheck(lambda z: z * z, z, fast_mode=True)
    with pytest.raises(GradcheckError, match="imaginary part of complex outputs only"):
        gradcheck(shifted, z, fast_mode=True)


def test_a_real_output_of_complex_numbers_needs_no_such_words() -> None:
    z = double(1 + 2j, dtype=torch.complex128)
    with pytest.raises(GradcheckError, match=r"^Jacobian mismatch for output 0"):
        gradcheck(lambda z: shifted(z.real), z)


# -- forward mode ------------------------------------------------------------------------


@pytest.mark.parametrize("fast_mode", [True, False])
def test_a_wrong_jvp_is_found(fast_mode: bool) -> None:
    assert gradcheck(Twice.apply, double(), check_forward_ad=True, fast_mode=fast_mode)
    wrong = Twice.claiming(forward_factor=3.0)
    assert gradcheck(wrong, double(), fast_mode=fast_mode)
    message = "Jacobian computed with forward mode mismatch for output 0 with respect to"
    with pytest.raises(GradcheckError, match=message):
        gradcheck(wrong, double(), check_forward_ad=True, fast_mode=fast_mode)


def test_forward_mode_may_be_checked_alone() -> None:
    wrong = Twice.claiming(backward_factor=3.0)
    options: Any = {"check_backward_ad": False, "check_forward_ad": True}
    assert gradcheck(wrong, double(), **options)


def test_forward_mode_is_given_tensors_that_do_not_require_grad() -> None:
    seen = []

    def f(x: Any, y: Any) -> Any:
        if forward_ad.unpack_dual(x).tangent is not None:
            seen.append(x.requires_grad or y.requires_grad)
        return x * y

    assert gradcheck(f, (double(), double()), check_forward_ad=True)
    assert seen
    assert not any(seen)


def test_a_tangent_that_is_missing_must_count_as_zero() -> None:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def jvp(ctx: Any, v: Any, w: Any) -> Any:
            x, y = ctx.saved_tensors
            if v is None:
                return x * w * 2  # wrong
            return v * y + (0 if w is None else x * w)

    options: Any = {"check_backward_ad": False, "check_forward_ad": True}
    inputs = (double(), double(2.0, 3.0))
    assert gradcheck(Product.apply, inputs, check_undefined_grad=False, **options)
    with pytest.raises(GradcheckError, match="has an undefined tangent value"):
        gradcheck(Product.apply, inputs, **options)


# -- batches -----------------------------------------------------------------------------


def test_a_backward_that_has_no_rule_for_batches_is_found() -> None:
    through_numpy = function(
        lambda ctx, x: x * 2, lambda ctx, g: torch.from_numpy(g.numpy() * 2)
    ).apply
    assert gradcheck(through_numpy, double())
    with pytest.raises(GradcheckError, match="failed while testing batched gradient"):
        gradcheck(through_numpy, double(), check_batched_grad=True)
    assert gradcheck(lambda x: x.exp(), double(), check_batched_grad=True)


def test_a_jvp_that_cannot_be_batched_is_found() -> None:
    def jvp(ctx: Any, v: Any) -> Any:
        torch.rand(2)
        return v * 2

    random = type("Random", (Twice,), {"jvp": staticmethod(jvp)})
    options: Any = {"check_forward_ad": True, "check_batched_forward_grad": True}
    assert gradcheck(Twice.apply, double(), **options)
    with pytest.raises(GradcheckError, match="failed while testing batched gradient"):
        gradcheck(random.apply, double(), **options)


# -- what a backward must keep to ----------------------------------------------------------


def test_a_gradient_must_be_proportional_to_what_comes_in() -> None:
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(shifted, double(), atol=0.1)


@pytest.mark.parametrize("fast_mode", [True, False])
@pytest.mark.parametrize("what", ["shape", "dtype"])
def test_outputs_may_not_change_with_the_values(what: str, fast_mode: bool) -> None:
    def f(x: Any) -> Any:
        if (x < 1).all():
            return x
        return torch.cat([x, x]) if what == "shape" else x.float()

    with pytest.raises(
        AssertionError, match=f"the same {what} when inputs are perturbed"
    ):
        gradcheck(f, double(1.0), fast_mode=fast_mode)


# -- second derivatives --------------------------------------------------------------------


def test_forward_over_reverse() -> None:
    options: Any = {"check_fwd_over_rev": True, "check_rev_over_rev": False}
    for fast_mode in (True, False):
        assert gradgradcheck(
            lambda x: x**3,
            double(),
            check_undefined_grad=False,
            fast_mode=fast_mode,
            **options,
        )


def test_seeds_with_gaps_in_memory() -> None:
    strides = []

    def f(x: Any) -> Any:
        y = x**3
        y.register_hook(lambda g: strides.append(g.stride()))
        return y

    assert gradgradcheck(f, double(), gen_non_contig_grad_outputs=True)
    assert (2,) in strides


def test_batches_of_second_derivatives() -> None:
    assert gradgradcheck(lambda x: x.sin(), double(), check_batched_grad=True)


# -- options that exclude each other -------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "options", "message"),
    [
        (gradcheck, {"check_backward_ad": False}, "Expected at least one of"),
        (
            gradcheck,
            {
                "check_backward_ad": False,
                "check_forward_ad": True,
                "check_batched_grad": True,
            },
            "check_batched_grad=True requires check_backward_ad",
        ),
        (
            gradcheck,
            {"check_batched_forward_grad": True},
            "check_batched_forward_grad=True requires check_forward_ad",
        ),
        (gradgradcheck, {"check_rev_over_rev": False}, "Expected at least one of"),
        (
            gradgradcheck,
            {"check_rev_over_rev": False, "check_fwd_over_rev": True},
            "check_undefined_grad=True requires check_rev_over_rev",
        ),
    ],
)
def test_options_that_exclude_each_other(check: Any, options: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(lambda x: x, double(), **options)
