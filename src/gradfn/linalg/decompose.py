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

from gradfn._dtypes import real_dtype
from gradfn.linalg.entry import (
    LinAlgError,
    adjoint,
    check_info,
    check_matrix,
    check_square,
    each,
    entry,
    named,
)
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

# -- positive definite ones --------------------------------------------------------------

NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite "
    "(the leading minor of order {k} is not positive-definite)."
)


def _cholesky(a: Any, check: str, turned: bool = False) -> Any:
    check_square(check or "linalg.cholesky", a)
    try:
        low, info = np.linalg.cholesky(a), np.zeros(a.shape[:-2], np.int32)
        if np.isfinite(low).all():
            return low, info
    except np.linalg.LinAlgError:
        pass
    low, info = each(_cholesky_of_one, a)
    if check:
        check_info(check, info, NOT_POSITIVE)
    return low, info


def _cholesky_of_one(a: Any) -> Any:
    """The factor and 0; or as much of it as there is, and the order of the first bad minor."""
    low = np.tril(a)
    for k in range(len(a)):
        row = low[k, :k]
        pivot = low[k, k].real - np.vdot(row, row).real
        if not pivot > 0:
            return low, np.int32(k + 1)
        low[k, k] = np.sqrt(pivot)
        low[k + 1 :, k] = (low[k + 1 :, k] - low[k + 1 :, :k] @ row.conj()) / low[k, k]
    return low, np.int32(0)


def _cholesky_grad(g: Any, xp: Any, L: Any, turned: bool) -> Any:
    inner = xp._matmul(adjoint(L), g)
    low = xp.tril(inner, -1)
    # The diagonal's imaginary part is free, for L's diagonal is real; this is torch's.
    middle = low + adjoint(low)
    middle = middle + (inner.conj() if turned else inner) * _eye_mask(xp, inner)
    left = xp._solve_triangular(adjoint(L), middle, True, False)
    both = adjoint(xp._solve_triangular(adjoint(L), adjoint(left), True, False))
    return both * 0.5


def _half_eye(x: Any) -> Any:
    """Half the identity matrix that goes with the last dim of `x`."""
    array = x._array if isinstance(x, Tensor) else x
    half = np.eye(array.shape[-1], dtype=real_dtype(array.dtype)) * 0.5
    return PUBLIC["from_numpy"](half) if isinstance(x, Tensor) else half


cholesky_row = op(
    "linalg_cholesky_ex(self, check, turned=False)",
    _cholesky,
    function=False,
    method=False,
    outputs="L info",
    self=_cholesky_grad,
).function


@entry
def cholesky(A: Tensor, *, upper: bool = False) -> Any:
    """L with L L.H = A, lower triangular. LinAlgError if A is not positive definite.

    With `upper`, U = L.H from the other triangle.
    """
    return factor(A, upper, "linalg.cholesky")[0]


@entry
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """`(L, info)`: info is the order of the first minor that is not positive, else 0."""
    return factor(A, upper, "linalg.cholesky_ex" if check_errors else "")


def factor(A: Tensor, upper: bool, check: str) -> Any:
    """`(L, info)`, of the triangle that was named."""
    if not upper:
        return cholesky_row(A, check)
    check_square(check or "linalg.cholesky", A._array)
    low, info = cholesky_row(A.mH, check, True)
    return named("linalg_cholesky_ex", "L info", low.mH, info)


# -- eigenvalues of Hermitian ones -------------------------------------------------------


def _eye_mask(xp: Any, x: Any) -> Any:
    return _half_eye(x) * 2


def _eigh(a: Any, uplo: str = "L") -> Any:
    check_square("linalg.eigh", a)
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise RuntimeError(
            f"Expected UPLO argument to be 'L' or 'U', but got {uplo} (linalg.eigh)"
        )
    try:
        return np.linalg.eigh(a, uplo)
    except np.linalg.LinAlgError:
        raise not_converged("linalg.eigh") from None


def not_converged(name: str) -> LinAlgError:
    """The error for eigenvalues that were not found."""
    return LinAlgError(
        f"{name}: The algorithm failed to converge because the input matrix is "
        "ill-conditioned or has too many repeated eigenvalues."
    )


def check_phase(name: str, xp: Any, inner: Any) -> None:
    """RuntimeError if a gradient depends on the phases of complex vectors, which are free.

    A change of the phases is an imaginary diagonal of <vectors, gradient>.
    """
    array = inner._array if isinstance(inner, Tensor) else inner
    if type(array) is not np.ndarray or array.dtype.kind != "c":
        return
    turn = np.diagonal(array, 0, -2, -1).imag
    if not np.all(np.abs(turn) <= 1e-2):  # as coarse as torch's
        svd = name == "svd_backward"
        raise RuntimeError(
            f"{name}: The {'singular vectors' if svd else 'eigenvectors'} in the complex "
            "case are specified up to multiplication by e^{i phi}. The specified loss "
            f"function depends on this {'phase term' if svd else 'quantity'}, so it is "
            "ill-defined."
        )


def gaps(xp: Any, values: Any) -> Any:
    """1 / (values[j] - values[i]), 0 on the diagonal."""
    gap = xp.unsqueeze(values, -2) - xp.unsqueeze(values, -1)
    return (gap != 0) / (gap + (gap == 0) * xp.ones_like(gap))


def _eigh_grad(gs: Any, xp: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    g_values, g_vectors = gs
    v = eigenvectors
    inner = None
    if g_vectors is not None:
        inner = xp._matmul(adjoint(v), g_vectors)
        check_phase("linalg_eigh_backward", xp, inner)
        inner = inner * gaps(xp, eigenvalues)
    if g_values is not None:
        diagonal = xp.unsqueeze(g_values, -2) * _eye_mask(xp, v)
        inner = diagonal if inner is None else inner + diagonal
    full = xp._matmul(xp._matmul(v, inner * xp.ones_like(v)), adjoint(v))
    return (full + adjoint(full)) * 0.5


_eigh_row = op(
    "linalg_eigh(self, uplo='L')",
    _eigh,
    function=False,
    method=False,
    outputs="eigenvalues eigenvectors",
    differentiable=2,
    self=_eigh_grad,
).function


@entry
def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """`(eigenvalues, eigenvectors)` of Hermitian matrices, the values ascending."""
    return _eigh_row(A, UPLO)


@entry
def eigvalsh(A: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues of Hermitian matrices, ascending."""
    return _eigh_row(A, UPLO)[0]


NOT_FINITE = (
    "linalg.svd: The algorithm failed to converge because the input matrix contained "
    "non-finite values."
)


def _svd(a: Any) -> Any:
    check_matrix("linalg.svd", a)
    try:
        return np.linalg.svd(a, full_matrices=False)
    except np.linalg.LinAlgError:
        raise LinAlgError(NOT_FINITE) from None


def _skew(x: Any) -> Any:
    return x - adjoint(x)


def _check_svd_phase(xp: Any, U: Any, Vh: Any, g_u: Any, g_vh: Any) -> None:
    parts = []
    if g_u is not None:
        parts.append(xp._matmul(adjoint(U), g_u))
    if g_vh is not None:
        parts.append(xp._matmul(Vh, adjoint(g_vh)))
    if parts:
        check_phase("svd_backward", xp, sum(parts))


def _svd_grad(gs: Any, xp: Any, U: Any, S: Any, Vh: Any) -> Any:
    g_u, g_s, g_vh = gs
    v, s_row, s_column = adjoint(Vh), xp.unsqueeze(S, -2), xp.unsqueeze(S, -1)
    squares = S * S
    apart = gaps(xp, squares)
    if xp.is_complex(U):
        _check_svd_phase(xp, U, Vh, g_u, g_vh)
    inner = None
    if g_s is not None:
        inner = (
            xp.unsqueeze(g_s, -2)
            * _eye_mask(xp, S)
            * xp.ones_like(xp._matmul(adjoint(U), U))
        )
    if g_u is not None:
        part = _skew(xp._matmul(adjoint(U), g_u)) * apart * s_row
        inner = part if inner is None else inner + part
    if g_vh is not None:
        part = s_column * (_skew(xp._matmul(Vh, adjoint(g_vh))) * apart)
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
    "linalg_svd(self)",
    _svd,
    function=False,
    method=False,
    outputs="U S Vh",
    differentiable=3,
    self=_svd_grad,
).function


@entry
def svd(A: Tensor, full_matrices: bool = True, *, driver: Any = None) -> Any:
    """`(U, S, Vh)` with A = U diag(S) Vh, singular values descending.

    With full_matrices the extra columns carry no gradient.
    """
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs "
            "with cuSOLVER backend."
        )
    thin = svd_row(A)
    m, n = A.shape[-2:]
    if not full_matrices or m == n:
        return thin
    u, _, vh = np.linalg.svd(A.detach()._array)
    U, S, Vh = thin
    k, more = min(m, n), PUBLIC["from_numpy"]
    if m > k:
        U = PUBLIC["cat"]([U, more(u[..., k:].copy())], -1)
    else:
        Vh = PUBLIC["cat"]([Vh, more(vh[..., k:, :].copy())], -2)
    return type(thin)(U, S, Vh)


@entry
def svdvals(A: Tensor, *, driver: Any = None) -> Any:
    """The singular values, descending."""
    return svd_row(A)[1]


# -- orthogonal factors ------------------------------------------------------------------

_MODES = ("reduced", "complete", "r")


def _qr(a: Any, way: str) -> Any:
    if way not in _MODES:
        raise RuntimeError(
            f"qr received unrecognized mode '{way}' but expected one of 'reduced' "
            "(default), 'r', or 'complete'"
        )
    check_matrix("linalg.qr", a)
    if way == "r":
        return np.empty(0, a.dtype), np.linalg.qr(a, "r")
    return tuple(np.linalg.qr(a, way))


def _qr_grad(gs: Any, xp: Any, Q: Any, R: Any, way: str) -> Any:
    if way == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when "
            "mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to "
            "differentiate through linalg.qr."
        )
    if way == "complete" and Q.shape[-1] > R.shape[-1]:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > "
            "ncols."
        )
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


qr_row = op(
    "linalg_qr(self, way)",
    _qr,
    function=False,
    method=False,
    outputs="Q R",
    differentiable=2,
    self=_qr_grad,
).function


@entry
def qr(A: Tensor, mode: str = "reduced") -> Any:
    """`(Q, R)` with A = Q R; "complete" has a square Q, and "r" has none."""
    return qr_row(A, mode)
