"""Products, powers and norms of matrices, from other ops."""

from __future__ import annotations

import itertools
import math
from typing import Any

from gradfn.linalg.decompose import svdvals
from gradfn.linalg.entry import check_matrix, check_square, entry
from gradfn.linalg.inverse import inverse_row
from gradfn.ops.matmul import check_cross
from gradfn.ops.statistics import vector_norm
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


@entry
def matrix_power(A: Tensor, n: int) -> Any:
    """The product of n factors A; of the inverse if n is negative."""
    check_square("linalg.matrix_power", A._array, floating=False)
    if n < 0:
        return matrix_power(inverse_row(A, "linalg.inv")[0], -n)
    if n == 0:
        return A * 0 + PUBLIC["eye"](A.shape[-1], dtype=A.dtype)
    result = None
    while n:
        if n & 1:
            result = A if result is None else result @ A
        n >>= 1
        A = A @ A if n else A
    return result


@entry
def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
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


@entry
def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
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


@entry
def cond(A: Tensor, p: Any = None) -> Any:
    """The condition number in a norm: infinite for a singular matrix."""
    if p is None or p in (2, -2):
        check_matrix("linalg.cond", A._array)
        s = svdvals(A)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    check_square("linalg.cond", A._array)
    inverse, info = inverse_row(A, "")
    value = matrix_norm(A, p) * matrix_norm(inverse, p)
    return value.masked_fill(info != 0, math.inf)


@entry
def multi_dot(tensors: Any) -> Any:
    """The product of several matrices, in the order that takes the fewest multiplications.

    The first and last may be vectors. RuntimeErrors.
    """
    given = list(tensors)
    if len(given) < 2:
        raise RuntimeError(
            f"multi_dot(): expected at least 2 tensors but got {len(given)}"
        )
    row, column = given[0].dim() == 1, given[-1].dim() == 1
    if row:
        given[0] = given[0].unsqueeze(0)
    if column:
        given[-1] = given[-1].unsqueeze(1)
    for i, t in enumerate(given):
        if t.dim() != 2:
            raise RuntimeError(
                f"multi_dot(): tensor {i} must be 2D but got {t.dim()}D"
                if 0 < i < len(given) - 1
                else f"multi_dot(): the {'last' if i else 'first'} tensor must be 1D or 2D "
                f"but got {t.dim()}D"
            )
    for i, (a, b) in enumerate(itertools.pairwise(given)):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and "
                f"{list(b.shape)} cannot be multiplied"
            )
    result = _chain(given, _cuts([given[0].shape[0], *(t.shape[1] for t in given)]))
    result = result.squeeze(0) if row else result
    return result.squeeze(-1) if column else result


def _cuts(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to cut each run of factors: the dynamic programme of matrix chains."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], cuts[i, j] = min(
                (
                    cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1],
                    k,
                )
                for k in range(i, j)
            )
    return cuts


def _chain(given: Any, cuts: Any, i: int = 0, j: int | None = None) -> Any:
    j = len(given) - 1 if j is None else j
    if i == j:
        return given[i]
    k = cuts[i, j]
    return _chain(given, cuts, i, k).mm(_chain(given, cuts, k + 1, j))


@entry
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Any:
    """Sums of products conj(x) * y along `dim`."""
    return (x.conj() * y).sum(dim)


@entry
def matmul(input: Tensor, other: Tensor) -> Any:
    """Another name of `matmul`."""
    return input @ other


@entry
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Any:
    """The cross product along `dim`. RuntimeError unless both have size 3 there."""
    check_cross(input._array, other._array, dim)
    a, b = PUBLIC["broadcast_tensors"](input, other)
    return PUBLIC["cross"](a, b, dim)


@entry
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of the last two dims."""
    return A.diagonal(offset, dim1, dim2)


@entry
def vander(x: Tensor, *, N: Any = None) -> Any:
    """Powers of the last dim, the lowest first."""
    x = x.unsqueeze(0) if not x.dim() else x
    n = x.shape[-1] if N is None else N
    return PUBLIC["stack"]([x**k for k in range(n)], -1)
