"""torch.linalg: decompositions, inverses, norms, on matrices and batches of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn.linalg.decompose import (
    cholesky,
    cholesky_ex,
    eigh,
    eigvalsh,
    qr,
    svd,
    svd_row,
    svdvals,
)
from gradfn.linalg.inverse import (
    LinAlgError,
    adjoint,
    check_square,
    det,
    inv,
    inv_ex,
    inverse_row,
    slogdet,
    solve,
    solve_triangular,
)
from gradfn.ops.rule import op
from gradfn.ops.statistics import vector_norm
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "inv_ex",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "vander",
    "vecdot",
    "vector_norm",
]

# -- composed ----------------------------------------------------------------------------


def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    if not a.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    limit = np.finfo(a.dtype).eps * max(a.shape[-2:]) if rtol is None else rtol
    if hermitian:
        low = np.tril(a)
        a = low + np.swapaxes(np.tril(a, -1), -1, -2).conj()
    return np.linalg.pinv(a, limit, hermitian)


def _pinv_grad(g: Any, xp: Any, self: Any, result: Any) -> Any:
    # Golub and Pereyra (1973).
    p, product = result, xp._matmul
    turned = adjoint(g)
    out = -product(product(adjoint(p), g), adjoint(p))
    column = product(product(turned, p), adjoint(p))
    out = out + column - product(product(self, p), column)
    row = product(product(adjoint(p), p), turned)
    return out + row - product(product(row, p), self)


_pinv_row = op(
    "_pinv(self, rtol, hermitian)",
    _pinv,
    function=False,
    method=False,
    node="LinalgPinv",
    self=_pinv_grad,
).function


def pinv(
    A: Tensor,
    rcond: Any = None,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
) -> Any:
    """The pseudo-inverse; singular values below rtol times the largest count as 0."""
    if atol is not None:
        raise NotImplementedError("linalg.pinv: gradfn takes rtol, not atol")
    limit = rtol if rtol is not None else rcond
    limit = (
        limit._array[..., None] if isinstance(limit, Tensor) and limit.dim() else limit
    )
    limit = limit.item() if isinstance(limit, Tensor) else limit
    return _pinv_row(A, limit, hermitian)


def matrix_rank(
    A: Tensor,
    *,
    tol: Any = None,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
) -> Any:
    """How many singular values are larger than max(atol, rtol * the largest)."""
    a = A._array
    s = np.linalg.svd(a, compute_uv=False)
    top = s.max(-1, initial=0, keepdims=True)

    def plain(x: Any) -> Any:
        return x._array[..., None] if isinstance(x, Tensor) else x

    least = plain(atol if tol is None else tol)
    share = plain(rtol)
    if share is None:
        given = least is not None and np.any(least)
        share = 0.0 if given else np.finfo(a.dtype).eps * max(a.shape[-2:])
    limit = np.maximum(0.0 if least is None else least, share * top)
    return PUBLIC["tensor"](np.asarray((s > limit).sum(-1)))


def matrix_power(A: Tensor, n: int, *, out: Any = None) -> Any:
    """The product of n factors A; of the inverse if n is negative."""
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        check_square("matrix_power", A._array)
    if n < 0:
        return matrix_power(inverse_row(A), -n)
    if n == 0:
        return A * 0 + PUBLIC["eye"](A.shape[-1], dtype=A.dtype)
    result = None
    while n:
        if n & 1:
            result = A if result is None else result @ A
        n >>= 1
        A = A @ A if n else A
    return result


def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """The matrix norm: 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2."""
    if dtype is not None:
        A = A.to(dtype)
    rows, columns = (d % A.dim() for d in dim)
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        s = svdvals(A.movedim((rows, columns), (-2, -1)))
        value = s.sum(-1) if ord == "nuc" else s.amax(-1) if ord == 2 else s.amin(-1)
        if keepdim:
            for d in sorted((rows, columns)):
                value = value.unsqueeze(d)
        return value
    if ord not in (1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    first, second = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = vector_norm(A, 1, first, True)
    value = sums.amax(second, True) if ord > 0 else sums.amin(second, True)
    return value if keepdim else value.squeeze((rows, columns))


def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Any = None,
    dtype: Any = None,
) -> Any:
    """A vector norm, or a matrix norm if there are two dims and an order is given."""
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    two = (isinstance(dim, (tuple, list)) and len(dim) == 2) or (
        dim is None and A.dim() == 2
    )
    if two:
        return matrix_norm(A, ord, dim or (-2, -1), keepdim, dtype=dtype)
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


def cond(A: Tensor, p: Any = None, *, out: Any = None) -> Any:
    """The condition number in a norm."""
    if p is None or p == 2:
        s = svdvals(A)
        return s[..., 0] / s[..., -1]
    if p == -2:
        s = svdvals(A)
        return s[..., -1] / s[..., 0]
    return matrix_norm(A, p) * matrix_norm(inverse_row(A), p)


def multi_dot(tensors: Any, *, out: Any = None) -> Any:
    """The product of several matrices; the first and last may be vectors."""
    result = tensors[0]
    for t in tensors[1:]:
        result = result @ t
    return result


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Any = None) -> Any:
    """Sums of products conj(x) * y along `dim`."""
    return (x.conj() * y).sum(dim)


def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Any:
    """Another name of `matmul`."""
    return input @ other


def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Any = None) -> Any:
    """The cross product along `dim`."""
    a, b = PUBLIC["broadcast_tensors"](input, other)
    return PUBLIC["cross"](a, b, dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of the last two dims."""
    return A.diagonal(offset, dim1, dim2)


def vander(x: Tensor, *, N: Any = None) -> Any:
    """Powers of the last dim, the lowest first."""
    x = x.unsqueeze(0) if not x.dim() else x
    n = x.shape[-1] if N is None else N
    return PUBLIC["stack"]([x**k for k in range(n)], -1)
