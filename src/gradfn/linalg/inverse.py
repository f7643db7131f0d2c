"""Inverses and determinants."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.linalg.entry import (
    adjoint,
    check_info,
    check_square,
    each,
    entry,
)
from gradfn.linalg.lu import first_zero_pivot
from gradfn.ops.rule import op
from gradfn.tensor import Tensor

INT32 = np.dtype("int32")

# -- inverses ----------------------------------------------------------------------------


def failing(function: Any, a: Any, *more: Any) -> Any:
    """`(function(a, …), info)`; where a matrix is singular nan, and info its zero pivot."""
    try:
        return np.asarray(function(a, *more)), np.zeros(a.shape[:-2], INT32)
    except np.linalg.LinAlgError:
        pass

    def one(x: Any, *rest: Any) -> Any:
        try:
            return function(x, *rest), INT32.type(0)
        except np.linalg.LinAlgError:
            shape = rest[0].shape if rest else x.shape
            return np.full(shape, np.nan, x.dtype), first_zero_pivot(x)

    lead = np.broadcast_shapes(a.shape[:-2], *(b.shape[:-2] for b in more))
    return each(one, *(np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, *more)))


def _inverse(a: Any, check: str) -> Any:
    check_square("linalg.inv", a)
    inverse, info = failing(np.linalg.inv, a)
    if check:
        check_info(
            check,
            info,
            "The diagonal element {k} is zero, the inversion could not be completed "
            "because the input matrix is singular.",
        )
    return inverse, info


def _inverse_grad(g: Any, xp: Any, inverse: Any) -> Any:
    return -xp._matmul(xp._matmul(adjoint(inverse), g), adjoint(inverse))


inverse_row = op(
    "linalg_inv_ex(self, check)",
    _inverse,
    function=False,
    method=False,
    outputs="inverse info",
    self=_inverse_grad,
).function


@entry
def inv(A: Tensor) -> Any:
    """The inverse. LinAlgError (a RuntimeError) if a matrix is singular."""
    return inverse_row(A, "linalg.inv")[0]


@entry
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """`(inverse, info)`: info is the place of a zero pivot of a singular matrix, else 0."""
    return inverse_row(A, "linalg.inv_ex" if check_errors else "")


# -- determinants ------------------------------------------------------------------------


def _det(a: Any) -> Any:
    check_square("linalg.det", a)
    return np.asarray(np.linalg.det(a)).astype(a.dtype)


def _cofactors(a: Any) -> Any:
    """The derivative of the determinant by each element, right for singular ones too."""
    check_square("linalg.det", a)
    u, s, vh = np.linalg.svd(a)
    n = a.shape[-1]
    others = (
        np.stack([np.prod(np.delete(s, i, -1), -1) for i in range(n)], -1) if n else s
    )
    phase = np.linalg.det(u @ vh) if n else np.ones(a.shape[:-2], a.dtype)
    core = (u * others[..., None, :]) @ vh
    return (core.conj() * np.asarray(phase)[..., None, None]).astype(a.dtype)


op(
    "_cofactors(self)",
    _cofactors,
    function=False,
    method=False,
    # C = det * inv(A).T, so dC = C tr(inv(A) dA) - C dA.T inv(A).T; for regular A only.
    self=lambda g, xp, self, result: _cofactors_grad(g, xp, self, result),
)


def _cofactors_grad(g: Any, xp: Any, self: Any, result: Any) -> Any:
    inverse = adjoint(xp.linalg_inv_ex(self, "")[0])
    trace = xp.sum(xp.sum(g * result.conj(), -1, True), -2, True)
    return trace * inverse - xp._matmul(xp._matmul(result.conj(), g.mT), inverse)


_det_row = op(
    "linalg_det(self)",
    _det,
    function=False,
    method=False,
    self=lambda g, xp, self: (
        xp.unsqueeze(xp.unsqueeze(g, -1), -1) * xp._cofactors(self).conj()
    ),
).function


@entry
def det(A: Tensor) -> Any:
    """The determinant."""
    return _det_row(A)


def _slogdet(a: Any) -> Any:
    check_square("linalg.slogdet", a)
    sign, size = np.linalg.slogdet(a)
    return np.asarray(sign).astype(a.dtype), np.asarray(size).astype(a.real.dtype)


def _slogdet_grad(gs: Any, xp: Any, self: Any, sign: Any) -> Any:
    g_sign, g_log = gs
    inverse = adjoint(xp.linalg_inv_ex(self, "")[0])
    out = None
    if g_log is not None:
        out = xp.unsqueeze(xp.unsqueeze(g_log, -1), -1) * inverse
    if g_sign is not None and xp.is_complex(self):
        # d sign = sign * i * Im tr(inv(A) dA)
        turn = xp._imag_part(g_sign.conj() * sign) * -1j
        part = xp.unsqueeze(xp.unsqueeze(turn, -1), -1) * inverse
        out = part if out is None else out + part
    return xp._zeros_like(self) if out is None else out


_slogdet_row = op(
    "linalg_slogdet(self)",
    _slogdet,
    function=False,
    method=False,
    outputs="sign logabsdet",
    differentiable=2,
    self=_slogdet_grad,
).function


@entry
def slogdet(A: Tensor) -> Any:
    """`(sign, logabsdet)` of the determinant."""
    return _slogdet_row(A)


def logdet(A: Tensor) -> Any:
    """The logarithm of the determinant: nan where that is negative."""
    check_square("logdet", A._array)
    sign, size = _slogdet_row(A)
    if A.is_complex():
        return sign.log() + size
    return size.masked_fill(sign == -1, float("nan"))


# -- inverses of tensors -----------------------------------------------------------------


@entry
def tensorinv(A: Tensor, ind: int = 2) -> Any:
    """The inverse of the map from the dims behind `ind` to those before. RuntimeErrors."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    shape = A.shape
    before, behind = shape[:ind], shape[ind:]
    n, m = before.numel(), behind.numel()
    if n != m:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {m} != {n}"
        )
    inverse, info = inverse_row(A.reshape(n, m), "")
    check_info("linalg.tensorinv", info._array, "The input matrix is singular ({k}).")
    return inverse.reshape(*behind, *before)


@entry
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Any:
    """X with tensordot(A, X, X.ndim) = B. RuntimeErrors."""
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.dim() - len(dims), A.dim())))
    shape = A.shape[B.dim() :]
    if shape.numel() != B.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {shape.numel()} != {B.numel()}"
        )
    from gradfn.linalg.solve import solve

    return solve(A.reshape(B.numel(), -1), B.reshape(-1)).reshape(shape)
