"""Decompositions of matrices.

Note [Derivatives of decompositions]
    They follow Giles, "An extended collection of matrix derivative results" (2008), and for
    complex matrices Wan and Zhang (2019). Formulas are written with matrix products only,
    so that they can be derived again. Where a decomposition is unique up to signs or
    phases, the derivative holds for functions that do not depend on those.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.linalg.inverse import LinAlgError, adjoint, check_square
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

# -- decompositions ----------------------------------------------------------------------


def _cholesky(a: Any) -> Any:
    check_square("cholesky", a)
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.cholesky: The factorization could not be completed because the input is "
            "not positive-definite."
        ) from None


def _cholesky_grad(g: Any, xp: Any, result: Any) -> Any:
    inner = xp._matmul(adjoint(result), g)
    phi = xp.tril(inner, 0) - xp.tril(inner, 0) * _half_eye(inner)
    middle = phi + adjoint(phi)
    left = xp._solve_triangular(adjoint(result), middle, True, False)
    both = adjoint(xp._solve_triangular(adjoint(result), adjoint(left), True, False))
    return both * 0.5


def _half_eye(x: Any) -> Any:
    """Half the identity matrix that goes with the last dim of `x`."""
    array = x._array if isinstance(x, Tensor) else x
    half = np.eye(array.shape[-1], dtype=array.real.dtype) * 0.5
    return PUBLIC["from_numpy"](half) if isinstance(x, Tensor) else half


_cholesky_row = op(
    "linalg_cholesky(self)",
    _cholesky,
    function=False,
    method=False,
    node="LinalgCholeskyEx",
    self=_cholesky_grad,
).function


def cholesky(A: Tensor, *, upper: bool = False, out: Any = None) -> Any:
    """L with L L.H = A, lower triangular. LinAlgError if A is not positive definite."""
    low = _cholesky_row(A)
    return adjoint(low) if upper else low


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """`(L, info)`; for matrices that are not positive definite raise here."""
    return cholesky(A, upper=upper), PUBLIC["zeros"](A.shape[:-2]).int()


def _eye_mask(xp: Any, x: Any) -> Any:
    return _half_eye(x) * 2


def _eigh(a: Any, uplo: str = "L") -> Any:
    check_square("eigh", a)
    return np.linalg.eigh(a, uplo)


def _gaps(xp: Any, values: Any) -> Any:
    """1 / (values[j] - values[i]), 0 on the diagonal."""
    gap = xp.unsqueeze(values, -2) - xp.unsqueeze(values, -1)
    return (gap != 0) / (gap + (gap == 0) * xp.ones_like(gap))


def _eigh_grad(gs: Any, xp: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    g_values, g_vectors = gs
    v = eigenvectors
    inner = None
    if g_vectors is not None:
        inner = xp._matmul(adjoint(v), g_vectors) * _gaps(xp, eigenvalues)
    if g_values is not None:
        diagonal = xp.unsqueeze(g_values, -2) * _eye_mask(xp, v)
        inner = diagonal if inner is None else inner + diagonal
    full = xp._matmul(xp._matmul(v, inner * xp.ones_like(v)), adjoint(v))
    return (full + adjoint(full)) * 0.5


_eigh_row = op(
    "eigh(self, uplo='L')",
    _eigh,
    function=False,
    method=False,
    outputs="eigenvalues eigenvectors",
    differentiable=2,
    node="LinalgEigh",
    self=_eigh_grad,
).function


def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """`(eigenvalues, eigenvectors)` of Hermitian matrices, the values ascending."""
    return _eigh_row(A, UPLO)


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """The eigenvalues of Hermitian matrices, ascending."""
    return _eigh_row(A, UPLO)[0]


def _svd(a: Any) -> Any:
    if a.ndim < 2:
        raise RuntimeError(
            "linalg.svd: The input tensor A must have at least 2 dimensions."
        )
    return np.linalg.svd(a, full_matrices=False)


def _skew(x: Any) -> Any:
    return x - adjoint(x)


def _svd_grad(gs: Any, xp: Any, U: Any, S: Any, Vh: Any) -> Any:
    g_u, g_s, g_vh = gs
    v, s_row, s_column = adjoint(Vh), xp.unsqueeze(S, -2), xp.unsqueeze(S, -1)
    squares = S * S
    gaps = _gaps(xp, squares)
    inner = None
    if g_s is not None:
        inner = (
            xp.unsqueeze(g_s, -2)
            * _eye_mask(xp, S)
            * xp.ones_like(xp._matmul(adjoint(U), U))
        )
    if g_u is not None:
        part = _skew(xp._matmul(adjoint(U), g_u)) * gaps * s_row
        inner = part if inner is None else inner + part
    if g_vh is not None:
        part = s_column * (_skew(xp._matmul(Vh, adjoint(g_vh))) * gaps)
        inner = part if inner is None else inner + part
    if xp.is_complex(U) and g_u is not None:
        phase = xp._matmul(adjoint(U), g_u) * _eye_mask(xp, S)
        inner = inner + (phase - phase.conj()) * 0.5 / s_row
    out = xp._matmul(xp._matmul(U, inner), Vh)
    m, n, k = U.shape[-2], Vh.shape[-1], S.shape[-1]
    if g_u is not None and m > k:
        rest = g_u - xp._matmul(U, xp._matmul(adjoint(U), g_u))
        out = out + xp._matmul(rest / s_row, Vh)
    if g_vh is not None and n > k:
        rest = g_vh - xp._matmul(xp._matmul(g_vh, v), Vh)
        out = out + xp._matmul(U, rest / s_column)
    return out


svd_row = op(
    "svd(self)",
    _svd,
    function=False,
    method=False,
    outputs="U S Vh",
    differentiable=3,
    node="LinalgSvd",
    self=_svd_grad,
).function


def svd(
    A: Tensor, full_matrices: bool = True, *, driver: Any = None, out: Any = None
) -> Any:
    """`(U, S, Vh)` with A = U diag(S) Vh, singular values descending.

    With full_matrices the extra columns carry no gradient.
    """
    m, n = A.shape[-2:]
    if not full_matrices or m == n:
        return svd_row(A)
    u, _, vh = np.linalg.svd(A._array)
    thin = svd_row(A)
    k = min(m, n)
    more = PUBLIC["from_numpy"]
    if m > k:
        U = PUBLIC["cat"]([thin[0], more(u[..., k:].copy())], -1)
        return type(thin)(U, thin[1], thin[2])
    return type(thin)(
        thin[0], thin[1], PUBLIC["cat"]([thin[2], more(vh[..., k:, :].copy())], -2)
    )


def svdvals(A: Tensor, *, driver: Any = None, out: Any = None) -> Any:
    """The singular values, descending."""
    return svd_row(A)[1]


def _qr(a: Any) -> Any:
    if a.ndim < 2:
        raise RuntimeError(
            "linalg.qr: The input tensor A must have at least 2 dimensions."
        )
    return np.linalg.qr(a)


def _qr_grad(gs: Any, xp: Any, Q: Any, R: Any) -> Any:
    g_q, g_r = gs
    m, n = Q.shape[-2], R.shape[-1]
    if m < n:
        return _wide_qr_grad(g_q, g_r, xp, Q, R)
    return _tall_qr_grad(g_q, g_r, xp, Q, R)


def _wide_qr_grad(g_q: Any, g_r: Any, xp: Any, Q: Any, R: Any) -> Any:
    """A = [A1 A2], A1 = Q R1 square, and A2 = Q R2."""
    m = Q.shape[-2]
    first, rest = (Ellipsis, slice(0, m)), (Ellipsis, slice(m, None))
    if g_r is None:
        left = _tall_qr_grad(g_q, None, xp, Q, xp._slice(R, first))
        return xp._place(left, tuple(R.shape), first)
    r2, g2 = xp._slice(R, rest), xp._slice(g_r, rest)
    through = xp._matmul(xp._matmul(Q, r2), adjoint(g2))
    g_q = through if g_q is None else g_q + through
    left = _tall_qr_grad(g_q, xp._slice(g_r, first), xp, Q, xp._slice(R, first))
    right = xp._matmul(Q, g2)
    shape = (*tuple(left.shape)[:-1], R.shape[-1])
    return xp._place(left, shape, first) + xp._place(right, shape, rest)


def _tall_qr_grad(g_q: Any, g_r: Any, xp: Any, Q: Any, R: Any) -> Any:
    middle: Any = None
    if g_r is not None:
        middle = xp._matmul(R, adjoint(g_r))
    if g_q is not None:
        part = xp._matmul(adjoint(g_q), Q)
        middle = -part if middle is None else middle - part
    low = xp.tril(middle, 0)
    sym = low + adjoint(low) - low * _eye_mask(xp, low)
    if xp.is_complex(Q):
        sym = xp.tril(middle, -1) + adjoint(xp.tril(middle, -1))
        sym = sym + (middle + middle.conj()) * 0.5 * _eye_mask(xp, middle)
    right = xp._matmul(Q, sym)
    if g_q is not None:
        right = right + g_q
    return adjoint(xp._solve_triangular(R, adjoint(right), True, False))


_qr_row = op(
    "qr(self)",
    _qr,
    function=False,
    method=False,
    outputs="Q R",
    differentiable=2,
    node="LinalgQr",
    self=_qr_grad,
).function


def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """`(Q, R)` with A = Q R. RuntimeError for modes other than "reduced"."""
    if mode != "reduced":
        raise RuntimeError(f"linalg.qr: gradfn has mode='reduced' only, got '{mode}'")
    return _qr_row(A)
