"""Solutions of linear equations, also of triangular ones and in the least squares sense."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.graph.batched import all_values, by_sample
from gradfn.linalg.entry import (
    LinAlgError,
    adjoint,
    check_matrix,
    check_same_dtype,
    check_square,
    entry,
    named,
)
from gradfn.linalg.inverse import failing
from gradfn.linalg.pseudo import pinv_back, pseudo_inverse
from gradfn.ops.reduce import kind_name
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor, wrap

# -- square ones -------------------------------------------------------------------------


def _fits(name: str, a: Any, b: Any, left: bool = True) -> None:
    if b.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if a.shape[-1] != b.shape[-2]:
        sides = [a.shape[-2:], b.shape[-2:]]
        shown = [f"{m}x{n}" if left else f"{n}x{m}" for m, n in sides]
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({shown[0]} and {shown[1]})"
        )


def _solve(a: Any, b: Any, left: bool = True, check: bool = True) -> Any:
    check_square("linalg.solve", a)
    check_same_dtype("linalg.solve", a, b)
    _fits("linalg.solve", a, b, left)
    x, info = failing(np.linalg.solve, a, b)
    bad = np.flatnonzero(info) if check else np.empty(0)
    if bad.size:
        where = f"(Batch element {bad[0]}): " if info.ndim else ""
        raise LinAlgError(
            f"torch.linalg.solve: {where}The solver failed because the input matrix is "
            "singular."
        )
    return x, info


_solve_row = op(
    "linalg_solve_ex(self, b, left=True, check=True)",
    _solve,
    function=False,
    method=False,
    outputs="solution info",
    self=lambda g, xp, self, solution: (
        -xp._matmul(xp.linalg_solve_ex(adjoint(self), g)[0], adjoint(solution))
    ),
    b=lambda g, xp, self: xp.linalg_solve_ex(adjoint(self), g)[0],
).function


def _solved(A: Tensor, B: Tensor, left: bool, check: bool) -> Any:
    vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for "
            "left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    b = B.unsqueeze(-1) if vector else B
    if not left:
        x, info = _solve_row(A.mT, b.mT, False, check)
        return x.mT, info
    x, info = _solve_row(A, b, True, check)
    return (x.squeeze(-1) if vector else x), info


@entry
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Any:
    """X with A X = B (or X A = B if not `left`); B may be a vector or a batch of them."""
    return _solved(A, B, left, True)[0]


@entry
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> Any:
    """`(result, info)`: info is the place of a zero pivot of a singular matrix, else 0."""
    return named(
        "linalg_solve_ex", "result info", *_solved(A, B, left, bool(check_errors))
    )


# -- triangular ones ---------------------------------------------------------------------

_BASE = 64  # rows; larger matrices are halved, which leaves products


def _triangular(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    name = "linalg.solve_triangular"
    check_square(name, a)
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{kind_name(a.dtype)} and B of type {kind_name(b.dtype)} instead"
        )
    _fits(name, a, b)
    part = np.triu(a) if upper else np.tril(a)
    if unit:
        n = a.shape[-1]
        part[..., np.arange(n), np.arange(n)] = 1
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return _substituted(part, np.broadcast_to(b, (*lead, *b.shape[-2:])), upper)


def _substituted(a: Any, b: Any, upper: bool) -> Any:
    n = a.shape[-1]
    if n > _BASE:
        half = n // 2
        near, far = slice(0, half), slice(half, n)
        first, second = (far, near) if upper else (near, far)
        x = np.empty(b.shape, b.dtype)
        x[..., first, :] = _substituted(a[..., first, first], b[..., first, :], upper)
        rest = b[..., second, :] - a[..., second, first] @ x[..., first, :]
        x[..., second, :] = _substituted(a[..., second, second], rest, upper)
        return x
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:  # a zero on the diagonal divides all the same
        return _divided(a, b, upper)


def _divided(a: Any, b: Any, upper: bool) -> Any:
    x = np.array(b)
    order = range(a.shape[-1])
    for i in reversed(order) if upper else order:
        x[..., i, :] /= a[..., i, i, None]
        others = slice(0, i) if upper else slice(i + 1, None)
        x[..., others, :] -= a[..., others, i, None] * x[..., i, None, :]
    return x


def _triangle(x: Any, xp: Any, upper: bool, unit: bool) -> Any:
    shift = 1 if unit else 0
    return xp.triu(x, shift) if upper else xp.tril(x, -shift)


triangular_row = op(
    "_solve_triangular(self, b, upper, unit)",
    _triangular,
    function=False,
    method=False,
    node="LinalgSolveTriangular",
    self=lambda g, xp, self, result, upper, unit: _triangle(
        -xp._matmul(
            xp._solve_triangular(adjoint(self), g, not upper, unit), adjoint(result)
        ),
        xp,
        upper,
        unit,
    ),
    b=lambda g, xp, self, upper, unit: xp._solve_triangular(
        adjoint(self), g, not upper, unit
    ),
).function


@entry
def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Any:
    """`solve` for a triangular A, of which the other triangle is not looked at."""
    if not left:
        return triangular_row(A.mT, B.mT, not upper, unitriangular).mT
    return triangular_row(A, B, upper, unitriangular)


# -- least squares -----------------------------------------------------------------------


def _least_squares(a: Any, b: Any, rcond: Any) -> Any:
    return pseudo_inverse(a, None, rcond, False) @ b


_least_squares_row = op(
    "_least_squares(self, b, rcond)",
    _least_squares,
    function=False,
    method=False,
    node="LinalgLstsq",
    self=lambda g, xp, self, b, rcond: pinv_back(
        xp._matmul(g, adjoint(b)), xp, self, xp._pinv(self, None, rcond, False)
    ),
    b=lambda g, xp, self, rcond: xp._matmul(
        adjoint(xp._pinv(self, None, rcond, False)), g
    ),
).function

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@entry
def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: Any = None) -> Any:
    """`(solution, residuals, rank, singular_values)` of min |A X - B|.

    What a driver does not compute is empty, as with torch: "gelsy" (the default) has the
    rank, "gels" the residuals, "gelsd" and "gelss" all. All of them solve by the
    pseudo-inverse here. RuntimeErrors.
    """
    a, b, name = A._array, B._array, "torch.linalg.lstsq"
    _check_least_squares(name, a, b, driver)
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    right = B.unsqueeze(-1) if vector else B
    if a.shape[-2] != right.shape[-2]:
        raise RuntimeError(
            f"{name}: input.size(-2) should match other.size(-2), got {a.shape[-2]} and "
            f"{right.shape[-2]}"
        )
    check_matrix(name, a)
    driver = driver or "gelsy"
    m, n = a.shape[-2:]
    limit = np.finfo(a.dtype).eps * max(m, n) if rcond is None else rcond
    limit = 0.0 if driver == "gels" else float(limit)
    x = _least_squares_row(A, right, limit)
    rank = PUBLIC["empty"](0).long()
    residuals = x.reshape(-1)[:0].abs()
    values = residuals.detach()
    s, ranks = _spectrum(A.detach(), limit)
    if driver != "gels":
        rank = ranks
    if driver in ("gelsd", "gelss"):
        values = s
    whole = driver == "gels" or bool((all_values(ranks) == n).all())
    if driver != "gelsy" and m > n and whole:
        residuals = (A @ x - right).abs().square().sum(-2)
    x = x.squeeze(-1) if vector else x
    fields = "solution residuals rank singular_values"
    return named("linalg_lstsq", fields, x, residuals, rank, values)


@by_sample
def _spectrum(A: Tensor, limit: float) -> tuple[Tensor, Tensor]:
    """Singular values, and how many are not negligible."""
    s = np.linalg.svd(A._array, compute_uv=False)
    ranks = (s > limit * s.max(-1, initial=0, keepdims=True)).sum(-1)
    return wrap(s), wrap(np.asarray(ranks))


def _check_least_squares(name: str, a: Any, b: Any, driver: Any) -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's "
            f"dtype {kind_name(a.dtype)} and other's dtype {kind_name(b.dtype)}"
        )
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got "
            f"{driver!r}"
        )
