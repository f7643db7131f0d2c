"""torch.linalg: decompositions, inverses, norms, on matrices and batches of them."""

from __future__ import annotations

from gradfn._guard import guard_all
from gradfn.linalg.decompose import (
    cholesky,
    cholesky_ex,
    eigh,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from gradfn.linalg.eig import eig, eigvals
from gradfn.linalg.entry import LinAlgError
from gradfn.linalg.exponential import matrix_exp
from gradfn.linalg.householder import householder_product
from gradfn.linalg.inverse import det, inv, inv_ex, slogdet, tensorinv, tensorsolve
from gradfn.linalg.lu import lu, lu_factor, lu_factor_ex, lu_solve
from gradfn.linalg.products import (
    cond,
    cross,
    diagonal,
    matmul,
    matrix_norm,
    matrix_power,
    multi_dot,
    norm,
    vander,
    vecdot,
)
from gradfn.linalg.pseudo import matrix_rank, pinv
from gradfn.linalg.solve import lstsq, solve, solve_ex, solve_triangular
from gradfn.ops.statistics import vector_norm

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

guard_all(globals(), __all__, "linalg_")
