"""The exponential of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.linalg.entry import adjoint, check_square, entry
from gradfn.ops.rule import op
from gradfn.tensor import Tensor

# The numerator of the Padé approximant of order 13 divided by its last coefficient's
# place, from the constant on; for norms up to _NORM it is exact to double precision:
# Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).
_PADE = (
    64764752532480000,
    32382376266240000,
    7771770303897600,
    1187353796428800,
    129060195264000,
    10559470521600,
    670442572800,
    33522128640,
    1323241920,
    40840800,
    960960,
    16380,
    182,
    1,
)
_NORM = 5.37


def _matrix_exp(a: Any) -> Any:
    check_square("linalg.matrix_exp", a)
    if not a.size:
        return a.copy()
    norm = np.abs(a).sum(-2).max(-1)
    finite = np.isfinite(norm)
    with np.errstate(all="ignore"):
        times = np.ceil(np.log2(np.where(finite, norm, 0) / _NORM))
    times = np.maximum(times, 0)
    scale = np.exp2(-times).astype(norm.dtype)[..., None, None]
    out = _pade(np.where(finite[..., None, None], a, np.nan).astype(a.dtype) * scale)
    for k in range(int(times.max())):
        out = np.where((k < times)[..., None, None], out @ out, out)
    return out


def _pade(a: Any) -> Any:
    eye = np.eye(a.shape[-1], dtype=a.dtype)
    b = [a.real.dtype.type(x / _PADE[0]) for x in _PADE]
    two = a @ a
    four = two @ two
    six = four @ two
    odd = six @ (b[13] * six + b[11] * four + b[9] * two)
    odd = a @ (odd + b[7] * six + b[5] * four + b[3] * two + b[1] * eye)
    even = six @ (b[12] * six + b[10] * four + b[8] * two)
    even = even + b[6] * six + b[4] * four + b[2] * two + b[0] * eye
    return np.linalg.solve(even - odd, even + odd)


def _matrix_exp_grad(g: Any, xp: Any, self: Any) -> Any:
    # exp [[A, G], [0, A]] has the derivative of exp at A along G above its diagonal.
    n = self.shape[-1]
    shape = (*tuple(self.shape)[:-2], 2 * n, 2 * n)
    near, far = slice(0, n), slice(n, None)
    a = adjoint(self)
    both = xp._place(a, shape, (Ellipsis, near, near))
    both = both + xp._place(a, shape, (Ellipsis, far, far))
    both = both + xp._place(g, shape, (Ellipsis, near, far))
    return xp.linalg_matrix_exp(both)[..., near, far]


matrix_exp_row = op(
    "linalg_matrix_exp(self)",
    _matrix_exp,
    function=False,
    method=False,
    self=_matrix_exp_grad,
).function


@entry
def matrix_exp(A: Tensor) -> Any:
    """The exponential of square matrices."""
    return matrix_exp_row(A)
