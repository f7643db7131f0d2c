"""Orthogonal polynomials of a degree n; as in PyTorch, they have no gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradfn.ops.unary import not_for, special
from gradfn.special.normal import row


def _of_degree(name: str) -> Callable[[Any, Any], Any]:
    """SciPy's polynomial, of the whole part of the degree."""
    evaluate = special(name)
    return lambda x, n: evaluate(n, x)


def _polynomial(name: str, values: Callable[[Any, Any], Any]) -> Any:
    """The row; polynomials of negative degrees are 0."""

    def kernel(x: Any, n: Any) -> Any:
        degree = n.astype(np.int64)
        out = np.asarray(values(x, np.maximum(degree, 0)))
        return np.where(degree < 0, 0, out).astype(x.dtype)

    return row(
        f"{name}(self, n)", not_for(name, "c", kernel), numbers="one", takes="self n"
    )


_u = _of_degree("eval_chebyu")


def _v(x: Any, n: Any) -> Any:
    return _u(x, n) - np.where(n > 0, _u(x, np.maximum(n - 1, 0)), 0)


def _w(x: Any, n: Any) -> Any:
    return _u(x, n) + np.where(n > 0, _u(x, np.maximum(n - 1, 0)), 0)


_chebyshev = {"t": _of_degree("eval_chebyt"), "u": _u, "v": _v, "w": _w}


def _shifted(kind: str) -> Any:
    values = _chebyshev[kind]
    return _polynomial(
        f"shifted_chebyshev_polynomial_{kind}", lambda x, n: values(x + x - 1, n)
    )


chebyshev_polynomial_t = _polynomial("chebyshev_polynomial_t", _chebyshev["t"])
chebyshev_polynomial_u = _polynomial("chebyshev_polynomial_u", _chebyshev["u"])
chebyshev_polynomial_v = _polynomial("chebyshev_polynomial_v", _chebyshev["v"])
chebyshev_polynomial_w = _polynomial("chebyshev_polynomial_w", _chebyshev["w"])
shifted_chebyshev_polynomial_t = _shifted("t")
shifted_chebyshev_polynomial_u = _shifted("u")
shifted_chebyshev_polynomial_v = _shifted("v")
shifted_chebyshev_polynomial_w = _shifted("w")
hermite_polynomial_h = _polynomial("hermite_polynomial_h", _of_degree("eval_hermite"))
hermite_polynomial_he = _polynomial(
    "hermite_polynomial_he", _of_degree("eval_hermitenorm")
)
laguerre_polynomial_l = _polynomial("laguerre_polynomial_l", _of_degree("eval_laguerre"))
legendre_polynomial_p = _polynomial("legendre_polynomial_p", _of_degree("eval_legendre"))
