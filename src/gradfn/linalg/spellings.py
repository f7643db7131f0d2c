"""What torch calls otherwise, or has outside of torch.linalg only.

`gradfn.<name>` and the methods of Tensor come here (see ops/matrices.py).
"""

from __future__ import annotations

from typing import Any

from gradfn import linalg
from gradfn.linalg.decompose import factor, svd_row
from gradfn.linalg.entry import check_matrix, check_square, named
from gradfn.linalg.exponential import matrix_exp
from gradfn.linalg.householder import geqrf, ormqr
from gradfn.linalg.inverse import det, inv, logdet
from gradfn.linalg.lu import lu_factor_row, lu_unpack
from gradfn.linalg.products import matrix_power
from gradfn.linalg.pseudo import pinv_row
from gradfn.linalg.solve import triangular_row
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "geqrf",
    "inverse",
    "logdet",
    "lu",
    "lu_solve",
    "lu_unpack",
    "matrix_exp",
    "matrix_power",
    "orgqr",
    "ormqr",
    "pinverse",
    "qr",
    "slogdet",
    "svd",
    "triangular_solve",
]

inverse = inv
orgqr = linalg.householder_product


def cholesky(input: Tensor, upper: bool = False) -> Any:
    """`linalg.cholesky`, also of the upper triangle."""
    check_square("cholesky", input._array)
    return factor(input, upper, "cholesky")[0]


def slogdet(input: Tensor) -> Any:
    """`(sign, logabsdet)` of the determinant."""
    return named("slogdet", "sign logabsdet", *linalg.slogdet(input))


def pinverse(input: Tensor, rcond: float = 1e-15) -> Any:
    """The pseudo-inverse; singular values up to rcond times the largest count as 0."""
    return pinv_row(input, None, rcond, False)


def qr(input: Tensor, some: bool = True) -> Any:
    """`(Q, R)` with A = Q R; with a square Q unless `some`."""
    return named("qr", "Q R", *linalg.qr(input, "reduced" if some else "complete"))


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """`(U, S, V)` with A = U diag(S) V.H; U and V are zeros unless `compute_uv`."""
    if compute_uv:
        U, S, Vh = linalg.svd(input, full_matrices=not some)
        return named("svd", "U S V", U, S, Vh.mH)
    S = svd_row(input)[1]
    *lead, m, n = input.shape
    zeros = PUBLIC["zeros"]
    U, V = (zeros((*lead, k, k), dtype=input.dtype) for k in (m, n))
    return named("svd", "U S V", U, S, V)


def _check_pair(name: str, b: Any, a: Any) -> None:
    for what, x in (("b", b), ("u", a)):
        if x.ndim < 2:
            raise RuntimeError(
                f"{what} should have at least 2 dimensions, but has {x.ndim} dimensions "
                f"instead ({name})"
            )
    check_square(name, a, floating=False)
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"{name}: Incompatible matrix sizes for {name}: each A matrix is "
            f"{a.shape[-1]} by {a.shape[-1]} but each b matrix is {b.shape[-2]} by "
            f"{b.shape[-1]}"
        )


def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Any:
    """X with A X = input, for the factor L of A."""
    _check_pair("cholesky_solve", input._array, L._array)
    low = L.mH if upper else L
    return triangular_row(low.mH, triangular_row(low, input, False, False), True, False)


def cholesky_inverse(input: Tensor, upper: bool = False) -> Any:
    """The inverse of A, from its factor."""
    check_square("cholesky_inverse", input._array)
    low = input.mH if upper else input
    eye = PUBLIC["eye"](input.shape[-1], dtype=input.dtype)
    root = triangular_row(low, eye, False, False)
    return root.mH @ root


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """`(LU, pivots)`, and with `get_infos` the places of zero pivots."""
    LU, pivots, info = lu_factor_row(A, pivot, "")
    if get_infos:
        return named("_lu_with_info", "LU pivots info", LU, pivots, info)
    return LU, pivots


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Any:
    """X with A X = b, from what lu_factor gives."""
    return linalg.lu_solve(LU_data, LU_pivots, b)


def triangular_solve(
    b: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Any:
    """`(solution, cloned_coefficient)` of A X = b, or of A.T X = b."""
    _check_pair("triangular_solve", b._array, A._array)
    check_matrix("triangular_solve", A._array)
    a = A.mT if transpose else A
    x = triangular_row(a, b, upper != transpose, unitriangular)
    return named("triangular_solve", "solution cloned_coefficient", x, A.clone())
