"""Histograms, combinations, differences and copies: errors and edges."""

from __future__ import annotations

import math

import pytest

import gradfn as torch

X = torch.arange(12.0).reshape(3, 4)

REFUSED = [
    (lambda: torch.histogram(X, 0), "bins must be > 0"),
    (lambda: torch.histogram(X, 2, range=(3.0, 1.0)), "min should not exceed max"),
    (lambda: torch.histogram(X * math.nan, 2), "range .nan, nan. is not finite"),
    (lambda: torch.histogram(X, 2, range=(0.0,)), "range should have 2 elements"),
    (lambda: torch.histogram(X.long(), 2), "not implemented for"),
    (lambda: torch.histogram(X, 2, weight=X[0]), "same shape"),
    (lambda: torch.histogram(X, X), "bins tensor should have one dimension"),
    (lambda: torch.histogram(X, X[0].double()), "should have the same dtype"),
    (lambda: torch.histogramdd(X[0], 2), "at least 2 dimensions"),
    (lambda: torch.histogramdd(X, [2]), "equal to the innermost dimension"),
    (lambda: torch.nonzero_static(X, size=-1), "must be an non-negative integer"),
    (lambda: torch.unravel_index(X, (2,)), "to be integer dtype"),
    (lambda: torch.unravel_index(X.long(), 2.5), "int or sequence of ints"),
    (lambda: torch.unravel_index(X.long(), (2, -1)), "cannot have negative values"),
    (lambda: torch.combinations(X), "Expect a 1D vector"),
    (lambda: torch.combinations(X[0], -1), "Expect a non-negative number"),
    (lambda: torch.frexp(X.long()), "only supports floating-point dtypes"),
    (lambda: torch.hash_tensor(X, mode=1), "mode 0"),
    (lambda: torch.gradient(X[:1]), r"at least edge_order\+1"),
    (lambda: torch.gradient(X, edge_order=3), "only supports edge_order=1"),
    (lambda: torch.gradient(X, spacing=[1.0, 2.0, 3.0]), "a list of length 3"),
    (lambda: torch.gradient(X, spacing=(X[0],), dim=0), "tensor of 3 elements"),
    (lambda: torch.gradient(X, dim=(0, 0)), "appears multiple times"),
    (lambda: torch.gradient(X.byte()), "does not support torch.uint8"),
    (lambda: torch.slice_copy(X, 0, 0, 2, 0), "slice step must be positive"),
    (lambda: torch.constant_pad_nd(X, (1,)), "Length of pad must be even"),
    (lambda: torch.constant_pad_nd(X, (1,) * 6), "no more than twice the number"),
    (lambda: torch.constant_pad_nd(X, (-3, -3)), "resulted in a negative output size"),
    (lambda: torch.empty_permuted((2, 3), (0, 0)), "Duplicate dim not allowed"),
    (lambda: torch.empty_permuted((2, 3), (0, 2)), "Dimension out of range"),
    (lambda: torch.empty_permuted((2, 3), (0,)), "does not match the length"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_what_is_refused(call: object, words: str) -> None:
    with pytest.raises((RuntimeError, TypeError, ValueError), match=words):
        call()  # type: ignore[operator]


def test_histograms_of_few_values() -> None:
    hist, edges = torch.histogram(torch.ones(2), 3)
    assert hist.tolist() == [0, 2, 0]
    assert edges.tolist() == pytest.approx([0.5, 5 / 6, 7 / 6, 1.5])
    assert torch.histogram(torch.empty(0), 3).hist.tolist() == [0, 0, 0]
    some = torch.tensor([1.0, math.nan, 2.0, 5.0])
    assert torch.histogram(some, 2, range=(0.0, 2.0)).hist.tolist() == [0, 2]


def test_mantissas_have_an_exact_derivative() -> None:
    x = torch.tensor([3.0, 0.1, 0.0, 1e-300], dtype=torch.float64, requires_grad=True)
    mantissa, exponent = torch.frexp(x)
    assert torch.equal(torch.ldexp(mantissa.detach(), exponent), x.detach())
    (g,) = torch.autograd.grad(mantissa.sum(), x)
    assert g.tolist() == [math.ldexp(1, -e) for e in exponent.tolist()]


def test_copies_share_no_memory() -> None:
    for name, args in {
        "view": ((4, 3),),
        "alias": (),
        "t": (),
        "narrow": (0, 0, 2),
    }.items():
        copy = getattr(torch, f"{name}_copy")(X, *args)
        assert copy.is_contiguous()
        before = X.clone()
        copy.zero_()
        assert torch.equal(X, before)
    out = torch.empty(4, 3)
    assert torch.t_copy(X, out=out) is out


def test_unsafe_pieces_can_be_written() -> None:
    x = torch.ones(4, requires_grad=True)
    first, second = torch.unsafe_split(x * 2, 2)
    first.mul_(3)
    (first.sum() + second.sum()).backward()
    assert x.grad.tolist() == [6, 6, 2, 2]
