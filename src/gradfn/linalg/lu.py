"""LU decompositions with pivoting, and what is solved by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.linalg.entry import adjoint, check_matrix, entry, named
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

BLOCK = 32  # columns that are eliminated one by one; what is behind them, as a product
INT32 = np.dtype("int32")

# -- the factorisation -------------------------------------------------------------------


def _size(x: Any) -> Any:
    """LAPACK's size of a number, by which it chooses pivots."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def factorised(a: Any) -> Any:
    """`(lu, pivots, info)`: both factors in one matrix, and the rows exchanged (from 1).

    info is the first pivot (from 1) that is exactly zero, else 0.
    """
    m, n = a.shape[-2:]
    lead, k = a.shape[:-2], min(a.shape[-2:])
    lu = np.array(a).reshape(-1, m, n)
    pivots = np.empty((len(lu), k), INT32)
    for start in range(0, k, BLOCK):
        stop = min(start + BLOCK, k)
        for c in range(start, stop):
            _eliminate(lu, c, stop, pivots)
        if stop < n:
            part = lu[:, start:stop, start:stop]
            low = np.tril(part, -1) + np.eye(stop - start, dtype=a.dtype)
            right = np.linalg.solve(low, lu[:, start:stop, stop:])
            lu[:, start:stop, stop:] = right
            lu[:, stop:, stop:] -= lu[:, stop:, start:stop] @ right
    zero = np.diagonal(lu, 0, 1, 2) == 0
    info = np.where(zero.any(1), zero.argmax(1) + 1, 0) if k else np.zeros(len(lu))
    return (
        lu.reshape(a.shape),
        pivots.reshape(*lead, k),
        info.astype(INT32).reshape(lead),
    )


def _eliminate(lu: Any, c: int, stop: int, pivots: Any) -> None:
    """Column `c`: its largest element becomes the pivot, what is below is divided by it."""
    every = np.arange(len(lu))
    rows = c + _size(lu[:, c:, c]).argmax(1)
    pivots[:, c] = rows + 1
    lu[every, rows], lu[every, c] = lu[every, c].copy(), lu[every, rows].copy()
    pivot = lu[:, c, c]
    lu[:, c + 1 :, c] /= np.where(pivot == 0, 1, pivot)[:, None]
    lu[:, c + 1 :, c + 1 : stop] -= lu[:, c + 1 :, c, None] * lu[:, c, None, c + 1 : stop]


def first_zero_pivot(a: Any) -> Any:
    """The place (from 1) of a singular matrix's first zero pivot."""
    return max(factorised(a)[2], INT32.type(1))


def _permutation(pivots: Any, rows: int, dtype: Any) -> Any:
    """The matrices P with A = P L U."""
    flat = pivots.reshape(-1, pivots.shape[-1]).astype(np.int64) - 1
    order = np.tile(np.arange(rows), (len(flat), 1))
    every = np.arange(len(flat))
    for c in range(flat.shape[1]):
        p = flat[:, c]
        order[every, p], order[every, c] = order[every, c].copy(), order[every, p].copy()
    matrices = np.zeros((len(flat), rows, rows), dtype)
    matrices[every[:, None], order, np.arange(rows)] = 1
    return matrices.reshape(*pivots.shape[:-1], rows, rows)


_permutation_row = op(
    "_permutation(self, rows, dtype)",
    _permutation,
    takes="self",
    function=False,
    method=False,
).function

# -- derivatives -------------------------------------------------------------------------


def _halves(xp: Any, lu: Any) -> Any:
    """L with its diagonal of ones, and U."""
    m, n = lu.shape[-2:]
    k = min(m, n)
    left = xp._slice(lu, (Ellipsis, slice(0, k)))
    low = xp.tril(left, -1)
    upper = xp.triu(xp._slice(lu, (Ellipsis, slice(0, k), slice(None))), 0)
    eye: Any = np.eye(m, k, dtype=np.dtype("float32"))
    if isinstance(lu, Tensor):
        return low + PUBLIC["from_numpy"](eye).to(lu.dtype), upper
    return low + eye.astype(lu.dtype), upper


def _plu_grad(xp: Any, g_low: Any, g_up: Any, P: Any, L: Any, U: Any) -> Any:
    """The gradient of A = P L U; see Note [Derivatives of decompositions]."""
    m, n, k = L.shape[-2], U.shape[-1], L.shape[-1]
    product, solve = xp._matmul, xp._solve_triangular
    top, rest = (
        (Ellipsis, slice(0, k), slice(None)),
        (Ellipsis, slice(k, None), slice(None)),
    )
    left, right = (Ellipsis, slice(0, k)), (Ellipsis, slice(k, None))
    low, up = xp._slice(L, top), xp._slice(U, left)
    middle: Any = None
    if g_low is not None:
        middle = xp.tril(product(adjoint(low), xp._slice(g_low, top)), -1)
    if g_up is not None:
        part = xp.triu(product(xp._slice(g_up, left), adjoint(up)), 0)
        middle = part if middle is None else middle + part
        if n > k:
            part = product(xp._slice(g_up, right), adjoint(xp._slice(U, right)))
            middle = middle - xp.tril(part, -1)
    if g_low is not None and m > k:
        part = product(adjoint(xp._slice(L, rest)), xp._slice(g_low, rest))
        middle = middle - xp.triu(part, 0)

    def over_up(x: Any) -> Any:  # x U^-H
        return adjoint(solve(up, adjoint(x), True, False))

    out = solve(adjoint(low), over_up(middle), True, True)
    if n > k and g_up is not None:
        more = solve(adjoint(low), xp._slice(g_up, right), True, True)
        shape = (*tuple(out.shape)[:-1], n)
        out = xp._place(out, shape, left) + xp._place(more, shape, right)
    elif n > k:
        out = xp._place(out, (*tuple(out.shape)[:-1], n), left)
    if m > k:
        shape = (*tuple(out.shape)[:-2], m, n)
        whole = xp._place(out, shape, top)
        if g_low is not None:
            whole = whole + xp._place(over_up(xp._slice(g_low, rest)), shape, rest)
        out = whole
    return product(P, out)


def _factor_grad(g: Any, xp: Any, LU: Any, pivots: Any) -> Any:
    m, n = LU.shape[-2:]
    k = min(m, n)
    L, U = _halves(xp, LU)
    array = LU._array if isinstance(LU, Tensor) else LU
    P = xp._permutation(pivots, m, array.dtype)
    g_low = xp.tril(xp._slice(g, (Ellipsis, slice(0, k))), -1)
    g_up = xp.triu(xp._slice(g, (Ellipsis, slice(0, k), slice(None))), 0)
    return _plu_grad(xp, g_low, g_up, P, L, U)


# -- rows --------------------------------------------------------------------------------


def _pivoting(name: str, pivot: bool) -> None:
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")


def _lu_factor(a: Any, pivot: bool, check: str) -> Any:
    check_matrix("torch.lu_factor", a)
    _pivoting("linalg.lu_factor", pivot)
    lu, pivots, info = factorised(a)
    bad = np.flatnonzero(info) if check else np.empty(0)
    if bad.size:
        k = int(info.reshape(-1)[bad[0]])
        where = f"(Batch element {bad[0]}): " if info.ndim else ""
        raise RuntimeError(
            f"{check}: {where}U[{k},{k}] is zero and using it on lu_solve would result in "
            "a division by zero. If you still want to perform the factorization, consider "
            "calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )
    return lu, pivots, info


lu_factor_row = op(
    "linalg_lu_factor_ex(self, pivot, check)",
    _lu_factor,
    function=False,
    method=False,
    outputs="LU pivots info",
    self=_factor_grad,
).function


def _lu(a: Any) -> Any:
    check_matrix("linalg.lu", a)
    lu, pivots, _ = factorised(a)
    from gradfn.ops.world import RAW

    low, up = _halves(RAW, lu)
    return low, up, _permutation(pivots, a.shape[-2], a.dtype)


lu_row = op(
    "linalg_lu(self)",
    _lu,
    function=False,
    method=False,
    outputs="L U P",
    differentiable=2,
    self=lambda gs, xp, L, U, P: _plu_grad(xp, gs[0], gs[1], P, L, U),
).function

# -- public ------------------------------------------------------------------------------


@entry
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """`(LU, pivots)`. RuntimeError if a pivot is zero."""
    LU, pivots, _ = lu_factor_row(A, pivot, "torch.linalg.lu_factor")
    return named("linalg_lu_factor", "LU pivots", LU, pivots)


@entry
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """`(LU, pivots, info)`: info is the place of a zero pivot, else 0."""
    return lu_factor_row(A, pivot, "torch.linalg.lu_factor_ex" if check_errors else "")


@entry
def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """`(P, L, U)` with A = P L U."""
    _pivoting("linalg.lu", pivot)
    L, U, P = lu_row(A)
    return named("linalg_lu", "P L U", P, L, U)


@entry
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Any:
    """X with A X = B, or X A = B if not `left`; of A's adjoint if `adjoint`."""
    a, b, at = LU._array, B._array, pivots._array
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            "linalg.lu_solve: A must be batches of square matrices, but they are of size "
            f"{list(a.shape)}"
        )
    if at.dtype != INT32:
        raise RuntimeError(
            "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32"
        )
    if at.shape != a.shape[:-1]:
        raise RuntimeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension "
            f"of the matrix (got {list(at.shape)} for {list(a.shape)})"
        )
    n = b.shape[-2 if left else -1] if b.ndim > 1 else -1
    if n != a.shape[-1]:
        raise RuntimeError(
            "linalg.lu_solve: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({a.shape[-2]}x{a.shape[-1]} and "
            f"{'x'.join(map(str, b.shape[-2:]))})"
        )
    if not left:
        return _lu_solved(LU, pivots, B.mH, not adjoint).mH
    return _lu_solved(LU, pivots, B, adjoint)


def _lu_solved(LU: Tensor, pivots: Tensor, B: Tensor, turned: bool) -> Any:
    from gradfn.linalg.solve import triangular_row

    P = _permutation_row(pivots, LU.shape[-2], LU._array.dtype)
    if turned:
        x = triangular_row(LU.mH, B, False, False)
        return P @ triangular_row(LU.mH, x, True, True)
    x = triangular_row(LU, P.mT @ B, False, True)
    return triangular_row(LU, x, True, False)


def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> Any:
    """`(P, L, U)` from what lu_factor gives; what is not wanted is empty."""
    from gradfn.ops.world import RECORDED

    array = LU_data._array
    check_matrix("torch.lu_unpack", array, floating=False)
    if unpack_pivots and LU_pivots._array.dtype != INT32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
            "torch.int32 dtype."
        )
    empty = PUBLIC["empty"](0, dtype=LU_data.dtype)
    P = L = U = empty
    if unpack_data:
        L, U = _halves(RECORDED, LU_data)
    if unpack_pivots:
        P = _permutation_row(LU_pivots, array.shape[-2], array.dtype)
    return named("lu_unpack", "P L U", P, L, U)
