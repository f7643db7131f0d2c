"""Products of reflections, in which LAPACK keeps orthogonal matrices.

Note [Products of reflections]
    With V the vectors below the diagonal (and ones on it) the product of the reflections
    1 - tau v v.H is 1 - V T V.H, where T = (1 + D S)^-1 D, D has tau on its diagonal and S
    is V.H V above its own. So products, also many, are a few products of matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.linalg.entry import check_matrix, entry
from gradfn.linalg.solve import triangular_row
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def _geqrf(a: Any) -> Any:
    if a.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_matrix("torch.geqrf", a)
    h, tau = np.linalg.qr(a, "raw")
    return np.swapaxes(h, -1, -2), tau


_geqrf_row = op(
    "geqrf(self)",
    _geqrf,
    takes="self",
    function=False,
    method=False,
    outputs="a tau",
).function


def geqrf(input: Tensor) -> Any:
    """`(a, tau)`: R on and above the diagonal of a, and the reflections that make Q."""
    return _geqrf_row(input)


def _compact(name: str, A: Tensor, tau: Tensor) -> tuple[Any, Any]:
    """V and T of Note [Products of reflections]. RuntimeErrors."""
    a, t = A._array, tau._array
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if t.ndim != a.ndim - 1 or t.shape[:-1] != a.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input and its batch "
            f"dimensions, but got {list(t.shape)} and {list(a.shape)}"
        )
    if t.shape[-1] > a.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if a.dtype != t.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype} does not match input dtype {A.dtype}"
        )
    check_matrix(name, a)
    k = t.shape[-1]
    V = A[..., :k].tril(-1) + PUBLIC["eye"](a.shape[-2], k, dtype=A.dtype)
    D = tau.diag_embed()
    T = triangular_row((D @ (V.mH @ V)).triu(1), D, True, True)
    return V, T


@entry
def householder_product(A: Tensor, tau: Tensor) -> Any:
    """The first columns of the product of the reflections in A (see geqrf)."""
    name = "torch.linalg.householder_product"
    V, T = _compact(name, A, tau)
    m, n = A.shape[-2:]
    if m < n:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    return PUBLIC["eye"](m, n, dtype=A.dtype) - V @ (T @ V[..., :n, :].mH)


def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: bool = True,
    transpose: bool = False,
) -> Any:
    """`other` times the product of the reflections in `input`, or its adjoint."""
    name = "torch.ormqr"
    if other._array.ndim < 2:
        raise RuntimeError(f"{name}: other must have at least 2 dimensions.")
    n = other.shape[-2 if left else -1]
    if input._array.ndim > 1 and n != input.shape[-2]:
        raise RuntimeError(
            f"{name}: other.shape[{-2 if left else -1}] must be equal to input.shape[-2], "
            f"but got {n} and {input.shape[-2]}"
        )
    V, T = _compact(name, input, tau)
    T = T.mH if transpose else T
    if left:
        return other - V @ (T @ (V.mH @ other))
    return other - ((other @ V) @ T) @ V.mH
