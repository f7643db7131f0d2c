"""What goes by the singular values that are not small: pseudo-inverses and ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.graph.batched import by_sample
from gradfn.linalg.decompose import NOT_FINITE
from gradfn.linalg.entry import LinAlgError, adjoint, check_floating, entry
from gradfn.ops.reduce import kind_name
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def _full(a: Any, hermitian: bool) -> Any:
    """The matrix; a Hermitian one from its lower triangle."""
    if not hermitian:
        return a
    low = np.tril(a, -1)
    return low + np.swapaxes(low, -1, -2).conj() + np.tril(np.triu(a)).real


def limits(a: Any, s: Any, atol: Any, rtol: Any) -> Any:
    """Below what a singular value counts as 0, for each matrix."""
    if rtol is None:
        given = atol is not None and np.any(np.asarray(atol) > 0)
        rtol = 0.0 if given else np.finfo(a.dtype).eps * max(a.shape[-2:])
    top = s.max(-1, initial=0, keepdims=True)
    return np.maximum(_column(0.0 if atol is None else atol), _column(rtol) * top)


def _column(x: Any) -> Any:
    return np.asarray(x)[..., None]


def _plain(x: Any) -> Any:
    """A tolerance as a number or array."""
    return x.detach()._array if isinstance(x, Tensor) else x


def pseudo_inverse(a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if a.ndim < 2 or a.dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.pinv({kind_name(a.dtype)}{{{list(a.shape)}}}): expected a tensor with "
            "2 or more dimensions of float, double, cfloat or cdouble types"
        )
    check_floating("linalg.pinv", a)
    if not a.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    a = _full(a, hermitian)
    try:
        u, s, vh = np.linalg.svd(a, full_matrices=False)
    except np.linalg.LinAlgError:
        raise LinAlgError(NOT_FINITE) from None
    keep = s > limits(a, s, atol, rtol)
    inverse = np.where(keep, 1 / np.where(keep, s, 1), 0).astype(s.dtype)
    return adjoint(vh) @ (inverse[..., None] * adjoint(u))


def pinv_back(g: Any, xp: Any, self: Any, p: Any) -> Any:
    """The gradient of a matrix from that of its pseudo-inverse `p`."""
    # Golub and Pereyra (1973).
    product = xp._matmul
    turned = adjoint(g)
    out = -product(product(adjoint(p), g), adjoint(p))
    column = product(product(turned, p), adjoint(p))
    out = out + column - product(product(self, p), column)
    row = product(product(adjoint(p), p), turned)
    return out + row - product(product(row, p), self)


pinv_row = op(
    "_pinv(self, atol, rtol, hermitian)",
    pseudo_inverse,
    function=False,
    method=False,
    node="LinalgPinv",
    self=lambda g, xp, self, result: pinv_back(g, xp, self, result),
).function


@entry
def pinv(
    A: Tensor,
    rcond: Any = None,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
) -> Any:
    """The pseudo-inverse: singular values up to max(atol, rtol * the largest) count as 0.

    A Hermitian matrix is read from its lower triangle.
    """
    share = rcond if rtol is None else rtol
    if hermitian and A.shape[-2:].count(A.shape[-1]) != 2:
        raise RuntimeError(
            "linalg.pinv: A must be batches of square matrices, but they are "
            f"{A.shape[-2]} by {A.shape[-1]} matrices"
        )
    return pinv_row(A, _plain(atol), _plain(share), hermitian)


@entry
@by_sample
def matrix_rank(
    A: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Any:
    """How many singular values are larger than max(atol, rtol * the largest)."""
    a = A.detach()._array
    if a.ndim < 2:
        raise RuntimeError(
            "linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    check_floating("linalg.matrix_rank", a)
    if not a.size:
        return PUBLIC["zeros"](a.shape[:-2]).long()
    s = np.linalg.svd(_full(a, hermitian), compute_uv=False)
    limit = limits(a, s, _plain(atol if tol is None else tol), _plain(rtol))
    return PUBLIC["tensor"](np.asarray((s > limit).sum(-1)))
