"""torch.special: what samples don't show."""

from __future__ import annotations

import math

import pytest
from support import Run

import gradfn as torch

sp = torch.special


def test_scipy_is_imported_on_first_use(python: Run) -> None:
    code = (
        "import sys, gradfn, gradfn.special; print('scipy' in sys.modules);"
        "gradfn.special.ndtr(gradfn.tensor(0.0)); print('scipy' in sys.modules)"
    )
    assert python("-c", code).stdout.split() == ["False", "True"]


@pytest.mark.parametrize("name", ["i0", "ndtr", "bessel_j0", "airy_ai", "entr"])
def test_complex_numbers_are_refused(name: str) -> None:
    with pytest.raises(NotImplementedError, match=name):
        getattr(sp, name)(torch.tensor([1j]))


def test_degrees_below_zero_give_zero_and_parts_of_them_are_dropped() -> None:
    x = torch.tensor([0.5, 2.0])
    for name in sp.__all__:
        if "polynomial" in name:
            f = getattr(sp, name)
            assert f(x, -2).tolist() == [0.0, 0.0]
            assert f(x, 0).tolist() == [1.0, 1.0]
            assert f(x, 1.9).tolist() == f(x, 1).tolist()


def test_a_derivative_without_a_simple_form_is_refused_by_name() -> None:
    x = torch.tensor([1.5], requires_grad=True)
    with pytest.raises(NotImplementedError, match="'igamma: self' is not implemented"):
        torch.igamma(x, torch.tensor([1.0])).backward()
    with pytest.raises(NotImplementedError, match="'zeta' by its first argument"):
        sp.zeta(x, 2.0).backward()


def test_igamma_is_for_real_numbers() -> None:
    with pytest.raises(NotImplementedError, match="igamma"):
        torch.igamma(torch.tensor([1]), torch.tensor([2]))
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        torch.mvlgamma(torch.tensor([3.0]), 0)


def test_limits_at_infinity() -> None:
    far = torch.tensor(math.inf)
    assert sp.spherical_bessel_j0(far) == 0
    assert sp.modified_bessel_k0(far) == 0


def test_double_precision_is_double() -> None:
    at = torch.tensor([5.05388471177945], dtype=torch.float64)
    assert sp.bessel_j0(at).item() == pytest.approx(-0.15979134504616479, rel=1e-13)


def test_second_derivatives_of_i1_at_zero() -> None:
    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    for f, bend in ((sp.i1, 0.0), (sp.i1e, 0.0)):
        (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        assert g.tolist() == [0.5, 0.5]
        assert torch.autograd.grad(g.sum(), x)[0].tolist() == [bend, bend]


@pytest.mark.parametrize("name", ["i0", "i1e", "ndtr", "log_ndtr", "erfcx", "entr"])
def test_all_samples_of_a_batch_at_once(name: str) -> None:
    x = torch.rand(4, 3, dtype=torch.float64) + 0.5
    f = getattr(sp, name)
    assert torch.equal(torch.func.vmap(f)(x), f(x))
