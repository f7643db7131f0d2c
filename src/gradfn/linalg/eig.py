"""Eigenvalues and eigenvectors of square matrices of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.linalg.decompose import check_phase, gaps, not_converged
from gradfn.linalg.entry import adjoint, check_square, entry
from gradfn.ops.rule import op
from gradfn.tensor import Tensor


def _eig(a: Any) -> Any:
    check_square("linalg.eig", a)
    if not np.isfinite(a).all():
        raise RuntimeError(
            "torch.linalg.eig: input tensor should not contain infs or NaNs."
        )
    try:
        values, vectors = np.linalg.eig(a)
    except np.linalg.LinAlgError:
        raise not_converged("linalg.eig") from None
    dtype = np.result_type(a.dtype, np.complex64)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def _eig_grad(gs: Any, xp: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    # Boeddeker et al. (2017), with the norm of each vector held at 1.
    g_values, g_vectors = gs
    v, inner = eigenvectors, None
    eye = np.eye(v.shape[-1])
    eye = xp.ones_like(v) * eye if not isinstance(v, Tensor) else _like(eye, v)
    if g_vectors is not None:
        along = xp._matmul(adjoint(v), g_vectors)
        check_phase("linalg_eig_backward", xp, along)
        length = xp.sum(along * eye, -2, True)
        length = (length + length.conj()) * 0.5
        change = along - xp._matmul(adjoint(v), v) * length
        inner = change * gaps(xp, eigenvalues).conj()
    if g_values is not None:
        diagonal = xp.unsqueeze(g_values, -2) * eye
        inner = diagonal if inner is None else inner + diagonal
    right = xp._matmul(inner, adjoint(v))
    return xp.linalg_solve_ex(adjoint(v), right)[0]


def _like(eye: Any, v: Tensor) -> Any:
    from gradfn.ops.world import PUBLIC

    return PUBLIC["from_numpy"](eye).to(v.dtype)


eig_row = op(
    "linalg_eig(self)",
    _eig,
    function=False,
    method=False,
    outputs="eigenvalues eigenvectors",
    differentiable=2,
    self=_eig_grad,
).function


@entry
def eig(A: Tensor) -> Any:
    """`(eigenvalues, eigenvectors)`, complex; the vectors are columns of length 1."""
    return eig_row(A)


@entry
def eigvals(A: Tensor) -> Any:
    """The eigenvalues, complex."""
    return eig_row(A)[0]
