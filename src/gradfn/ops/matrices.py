"""torch's names for what gradfn.linalg computes: functions, and methods of Tensor.

Few programs use them, so gradfn.linalg is imported when one of them is first called.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradfn.ops.outs import into
from gradfn.ops.world import public
from gradfn.tensor import Tensor, from_array, method


def _spelled(name: str, doc: str) -> None:
    """Makes `gradfn.<name>` and the method, which linalg.spellings has."""

    def call(*args: Any, out: Any = None, **more: Any) -> Any:
        if "input" in more:
            args = (more.pop("input"), *args)
        if args and not isinstance(args[0], Tensor):
            if not hasattr(args[0], "__array_interface__"):
                raise TypeError(
                    f"{name}(): argument 'input' (position 1) must be Tensor, not "
                    f"{type(args[0]).__name__}"
                )
            args = (from_array(args[0]), *args[1:])
        function = getattr(import_module("gradfn.linalg.spellings"), name)
        result = function(*args, **more)
        return result if out is None else into(name, out, result)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    public(method(call))


for _name, _doc in (
    ("cholesky", "L with L L.H = A. LinAlgError if A is not positive definite."),
    ("cholesky_inverse", "The inverse of A from its Cholesky factor."),
    ("cholesky_solve", "X with A X = input, from the Cholesky factor of A."),
    ("det", "The determinant."),
    ("geqrf", "`(a, tau)`: R, and the reflections that make Q."),
    ("inverse", "The inverse. LinAlgError if a matrix is singular."),
    ("logdet", "The logarithm of the determinant."),
    ("lu", "`(LU, pivots)`, and with `get_infos` the places of zero pivots."),
    ("lu_solve", "X with A X = b, from what lu_factor gives."),
    ("lu_unpack", "`(P, L, U)` from what lu_factor gives."),
    ("matrix_exp", "The exponential of square matrices."),
    ("matrix_power", "The product of n factors."),
    ("orgqr", "The first columns of the product of reflections."),
    ("ormqr", "A product with the reflections that geqrf gives."),
    ("pinverse", "The pseudo-inverse."),
    ("qr", "`(Q, R)` with A = Q R."),
    ("slogdet", "`(sign, logabsdet)` of the determinant."),
    ("svd", "`(U, S, V)` with A = U diag(S) V.H."),
    ("triangular_solve", "`(solution, cloned_coefficient)` of A X = b, A triangular."),
):
    _spelled(_name, _doc)
