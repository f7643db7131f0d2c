"""`out=`: what it may be, and what is refused."""

from __future__ import annotations

import pytest

import gradfn as torch

X = torch.tensor([[3.0, 1.0], [2.0, 4.0]])
I = torch.tensor([[0, 1], [1, 0]])

REFUSED = [
    (lambda: torch.add(X, X, out=3), TypeError, "'out' must be Tensor, not int"),
    (lambda: torch.sort(X, out=X.clone()), TypeError, "must be tuple of Tensors"),
    (
        lambda: torch.sort(X, out=(X,)),
        TypeError,
        "expected tuple of 2 elements but got 1",
    ),
    (lambda: torch.where(X > 0, X, X, out="x"), TypeError, "must be Tensor, not str"),
    (
        lambda: torch.gather(X, 0, I, out=torch.empty(0, dtype=torch.float64)),
        RuntimeError,
        "Expected out tensor to have dtype Float, but got Double",
    ),
    (
        lambda: torch.linalg.inv(X, out=torch.empty(2, 2, dtype=torch.float64)),
        RuntimeError,
        "Expected out tensor to have dtype Float, but got Double",
    ),
    (lambda: torch.add(X, X, out=I.clone()), RuntimeError, "can't be cast"),
    (lambda: torch.gather(X, 0, I, out=X), RuntimeError, "single memory location"),
    (lambda: torch.cat([X[:1], X[1:]], out=X), RuntimeError, "single memory location"),
    (
        lambda: torch.sin(X[:, 0], out=torch.ones(1).expand(2)),
        RuntimeError,
        "more than one",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), REFUSED)
def test_refused(call: object, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()  # type: ignore[operator]


def test_a_wider_dtype_takes_the_result_of_arithmetic() -> None:
    out = torch.empty(0, dtype=torch.float64)
    assert torch.add(X, X, out=out) is out
    assert out.tolist() == [[6, 2], [4, 8]]


def test_an_argument_may_be_written_over_as_a_whole() -> None:
    x = X.clone()
    torch.mul(x, 2, out=x)
    assert x.tolist() == [[6, 2], [4, 8]]
    y = torch.arange(5.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.add(y[:-1], 1, out=y[1:])


@pytest.mark.parametrize(
    "call",
    [
        lambda out: torch.hstack([X, X], out=out),
        lambda out: torch.where(X > 2, X, -X, out=out),
        lambda out: torch.kron(X, X, out=out),
        lambda out: torch.diag(X, out=out),
        lambda out: torch.linalg.solve(X, X, out=out),
    ],
)
def test_functions_of_several_ops_have_it(call: object) -> None:
    out = torch.empty(0)
    result = call(out)  # type: ignore[operator]
    assert result is out
    assert out.tolist() == call(None).tolist()  # type: ignore[operator]
