"""Inverses, determinants and solutions of linear equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


class LinAlgError(RuntimeError):
    """A matrix for which the result does not exist."""


def check_square(name: str, a: Any) -> None:
    if a.ndim < 2:
        raise RuntimeError(
            f"linalg.{name}: The input tensor A must have at least 2 dimensions."
        )
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"linalg.{name}: A must be batches of square matrices, but they are "
            f"{a.shape[-2]} by {a.shape[-1]} matrices"
        )
    if a.dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.{name}: Expected a floating point or complex tensor as input. Got "
            f"{a.dtype}"
        )


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return x.mT.conj()


def _singular(name: str, function: Any) -> Any:
    """A kernel whose LinAlgError says what torch's does."""

    def kernel(*arrays: Any) -> Any:
        check_square(name, arrays[0])
        try:
            return np.asarray(function(*arrays)).astype(arrays[0].dtype, copy=False)
        except np.linalg.LinAlgError as error:
            raise LinAlgError(
                f"linalg.{name}: The diagonal element is zero, the inversion could not be "
                f"completed because the input matrix is singular ({error})."
            ) from None

    return kernel


# -- inverses and determinants -----------------------------------------------------------

inverse_row = op(
    "linalg_inv(self)",
    _singular("inv", np.linalg.inv),
    function=False,
    method=False,
    node="LinalgInvEx",
    self=lambda g, xp, result: (
        -xp._matmul(xp._matmul(adjoint(result), g), adjoint(result))
    ),
).function


def inv(A: Tensor, *, out: Any = None) -> Any:
    """The inverse. LinAlgError (a RuntimeError) if a matrix is singular."""
    return inverse_row(A)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """`(inverse, info)`; info is 0 everywhere, for singular matrices raise here."""
    return inverse_row(A), PUBLIC["zeros"](
        A.shape[:-2], dtype=PUBLIC["tensor"](0).int().dtype
    )


def _det(a: Any) -> Any:
    check_square("det", a)
    return np.asarray(np.linalg.det(a)).astype(a.dtype)


def _cofactors(a: Any) -> Any:
    """The derivative of the determinant by each element, right for singular ones too."""
    check_square("det", a)
    u, s, vh = np.linalg.svd(a)
    n = a.shape[-1]
    others = (
        np.stack([np.prod(np.delete(s, i, -1), -1) for i in range(n)], -1) if n else s
    )
    phase = np.linalg.det(u @ vh) if n else np.ones(a.shape[:-2], a.dtype)
    core = (u * others[..., None, :]) @ vh
    return (core.conj() * np.asarray(phase)[..., None, None]).astype(a.dtype)


op(
    "_cofactors(self)",
    _cofactors,
    function=False,
    method=False,
    # C = det * inv(A).T, so dC = C tr(inv(A) dA) - C dA.T inv(A).T; for regular A only.
    self=lambda g, xp, self, result: _cofactors_grad(g, xp, self, result),
)


def _cofactors_grad(g: Any, xp: Any, self: Any, result: Any) -> Any:
    inverse = adjoint(xp.linalg_inv(self))
    trace = xp.sum(xp.sum(g * result.conj(), -1, True), -2, True)
    return trace * inverse - xp._matmul(xp._matmul(result.conj(), g.mT), inverse)


_det_row = op(
    "linalg_det(self)",
    _det,
    function=False,
    method=False,
    node="LinalgDet",
    self=lambda g, xp, self: (
        xp.unsqueeze(xp.unsqueeze(g, -1), -1) * xp._cofactors(self).conj()
    ),
).function


def det(A: Tensor, *, out: Any = None) -> Any:
    """The determinant."""
    return _det_row(A)


def _slogdet(a: Any) -> Any:
    check_square("slogdet", a)
    sign, size = np.linalg.slogdet(a)
    return np.asarray(sign).astype(a.dtype), np.asarray(size).astype(a.real.dtype)


def _slogdet_grad(gs: Any, xp: Any, self: Any, sign: Any) -> Any:
    g_sign, g_log = gs
    inverse = adjoint(xp.linalg_inv(self))
    out = None
    if g_log is not None:
        out = xp.unsqueeze(xp.unsqueeze(g_log, -1), -1) * inverse
    if g_sign is not None and xp.is_complex(self):
        # d sign = sign * i * Im tr(inv(A) dA)
        turn = xp._imag_part(g_sign.conj() * sign) * -1j
        part = xp.unsqueeze(xp.unsqueeze(turn, -1), -1) * inverse
        out = -part if out is None else out - part
    return xp._zeros_like(self) if out is None else out


_slogdet_row = op(
    "slogdet(self)",
    _slogdet,
    function=False,
    method=False,
    outputs="sign logabsdet",
    differentiable=2,
    node="LinalgSlogdet",
    self=_slogdet_grad,
).function


def slogdet(A: Tensor, *, out: Any = None) -> Any:
    """`(sign, logabsdet)` of the determinant."""
    return _slogdet_row(A)


def _solve(a: Any, b: Any) -> Any:
    check_square("solve", a)
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found {a.dtype} and "
            f"{b.dtype}"
        )
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A {list(a.shape)} and B {list(b.shape)}"
        )
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "torch.linalg.solve: The solver failed because the input matrix is singular."
        ) from None


_solve_row = op(
    "_solve(self, b)",
    _solve,
    function=False,
    method=False,
    node="LinalgSolveEx",
    self=lambda g, xp, self, result: (
        -xp._matmul(xp._solve(adjoint(self), g), adjoint(result))
    ),
    b=lambda g, xp, self: xp._solve(adjoint(self), g),
).function


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Any = None) -> Any:
    """X with A X = B (or X A = B if not `left`); B may be a vector or a batch of them."""
    vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    b = B.unsqueeze(-1) if vector else B
    if not left:
        return _solve_row(A.mT, b.mT).mT
    x = _solve_row(A, b)
    return x.squeeze(-1) if vector else x


def _triangular(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    check_square("solve_triangular", a)
    part = np.triu(a) if upper else np.tril(a)
    if unit:
        n = a.shape[-1]
        part[..., np.arange(n), np.arange(n)] = 1
    return _solve(part, b)


def _triangle(x: Any, xp: Any, upper: bool, unit: bool) -> Any:
    shift = 1 if unit else 0
    return xp.triu(x, shift) if upper else xp.tril(x, -shift)


_triangular_row = op(
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


def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Any = None,
) -> Any:
    """`solve` for a triangular A, of which the other triangle is not looked at."""
    if not left:
        return _triangular_row(A.mT, B.mT, not upper, unitriangular).mT
    return _triangular_row(A, B, upper, unitriangular)
