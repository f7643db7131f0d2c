"""Are the gradients right? Compares them with differences of values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradfn._names import callable_as
from gradfn.autograd import gradchecks as checks
from gradfn.autograd.backward import grad
from gradfn.autograd.grad_mode import enable_grad
from gradfn.autograd.gradchecks import GradcheckError
from gradfn.autograd.jacobians import Subject, as_tuple, is_active
from gradfn.tensor import Tensor, wrap

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: Any = None,
) -> bool:
    """Do the derivatives of `func` at `inputs` agree with differences of its values?

    Each element of each input that requires grad is moved by `eps` both ways. Entries
    of the Jacobian may differ by `atol + rtol * |numerical|`. In `fast_mode`, where all
    numbers are real, only its product with a random vector from each side is compared.

    check_backward_ad, check_forward_ad: which mode's derivatives. check_undefined_grad:
    outputs without gradient (inputs without tangent) count as zero. check_grad_dtypes:
    gradients have their inputs' dtypes. check_batched_grad, check_batched_forward_grad:
    both modes work under vmap. nondet_tol: how far two passes may be apart. `masked` is
    for sparse tensors, and nothing here.

    Raises GradcheckError (a RuntimeError) that names output and input, shows both
    Jacobians, and says what is probably wrong; or returns False if `raise_exception` is
    not set. ValueError if no input requires grad, RuntimeError for an expanded input,
    AssertionError for options that exclude each other.
    """
    del masked
    _demand(
        check_forward_ad or check_backward_ad,
        "Expected at least one of check_forward_ad or check_backward_ad to be True",
    )
    _demand(
        check_backward_ad or not check_batched_grad,
        "Setting check_batched_grad=True requires check_backward_ad to be True",
    )
    _demand(
        check_forward_ad or not check_batched_forward_grad,
        "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
    )
    given = list(as_tuple(inputs))
    _check_inputs(given)
    of = Subject(func, given, eps)
    try:
        with enable_grad():
            if not of.places:
                checks.check_flat(of)
                return True
            fast = fast_mode and not of.has_complex
            if check_backward_ad:
                if fast:
                    checks.compare_fast(of, atol, rtol, backward=True)
                else:
                    checks.compare_backward(of, atol, rtol)
                checks.check_determinism(of, nondet_tol)
                if check_grad_dtypes:
                    checks.check_dtypes(of)
            if check_forward_ad:
                if fast:
                    checks.compare_fast(of, atol, rtol, backward=False)
                else:
                    checks.compare_forward(of, atol, rtol)
                if check_undefined_grad:
                    checks.check_undefined_forward(of)
            if check_batched_forward_grad:
                checks.check_batched_forward(of)
            if check_batched_grad:
                checks.check_batched_backward(of)
            if check_backward_ad:
                checks.check_proportional(of)
                if check_undefined_grad:
                    checks.check_undefined(of)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: Any = None,
) -> bool:
    """gradcheck for the gradients of `func`: are its second derivatives right?

    They are derived by the inputs and by `grad_outputs`, which are drawn at random if
    they are not given (with gaps in memory if gen_non_contig_grad_outputs), in backward
    mode (check_rev_over_rev), in forward mode (check_fwd_over_rev), or in both. The
    other options and what is raised are gradcheck's.
    """
    _demand(
        check_fwd_over_rev or check_rev_over_rev,
        "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True",
    )
    _demand(
        check_rev_over_rev or not check_undefined_grad,
        "Setting check_undefined_grad=True requires check_rev_over_rev to be True",
    )
    _demand(
        check_rev_over_rev or not check_batched_grad,
        "Setting check_batched_grad=True requires check_rev_over_rev to be True",
    )
    given = list(as_tuple(inputs))
    active = [i for i, t in enumerate(given) if is_active(t)]
    if grad_outputs is None:
        with enable_grad():
            outputs = [t for t in as_tuple(func(*given)) if is_active(t)]
        seeds = random_seeds(outputs, gen_non_contig_grad_outputs)
    else:
        seeds = list(as_tuple(grad_outputs))
    n = len(seeds)

    def first(*args: Any) -> Any:
        own, cotangents = args[: len(args) - n], args[len(args) - n :]
        own = tuple(  # forward mode gives tensors that do not require grad
            t.requires_grad_() if i in active and not t.requires_grad else t
            for i, t in enumerate(own)
        )
        outs = [t for t in as_tuple(func(*own)) if is_active(t)]
        wanted = [own[i] for i in active]
        got = grad(outs, wanted, cotangents, create_graph=True, allow_unused=True)
        return tuple(g for g in got if g is not None)

    return gradcheck(
        first,
        [*given, *seeds],
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _demand(condition: Any, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _check_inputs(given: list[Any]) -> None:
    """ValueError if no input requires grad, RuntimeError if one overlaps itself."""
    active = [i for i, t in enumerate(given) if is_active(t)]
    if not active:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of "
            "the them have requires_grad=True."
        )
    for i in active:
        array = given[i]._array
        if array.dtype not in (np.dtype("float64"), np.dtype("complex128")):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex.",
                UserWarning,
                stacklevel=3,
            )
        if any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports "
                "inputs that are non-overlapping to be able to compute the numerical "
                "gradients correctly. You should call .contiguous on the input before "
                "passing it to gradcheck."
            )


def random_seeds(outputs: list[Tensor], with_gaps: bool = False) -> list[Tensor]:
    """Cotangents for outputs, which require grad themselves."""
    rng = np.random.default_rng(0)
    seeds = []
    for t in outputs:
        shape = (*t._array.shape, 2) if with_gaps else t._array.shape
        values = rng.uniform(-1, 1, shape)
        if t._array.dtype.kind == "c":
            values = values + 1j * rng.uniform(-1, 1, shape)
        array = np.asarray(values).astype(t._array.dtype)
        seeds.append(wrap(array[..., 0] if with_gaps else array).requires_grad_())
    return seeds


callable_as(__name__, gradcheck)
