"""Gamma functions of several variables, and modified Bessel functions of the first kind.

SciPy computes them; it is imported on first use.
"""

from __future__ import annotations

import math
from typing import Any

from gradfn.ops.rule import op
from gradfn.ops.unary import not_for, real_special, special

# -- incomplete gamma functions --------------------------------------------------------


def _unknown(name: str) -> Any:
    def grad(g: Any) -> Any:
        raise NotImplementedError(
            f"the derivative for '{name}: self' is not implemented: it has no simple form. "
            "detach() that argument, or give its derivative in a Function of your own."
        )

    return grad


def _density(g: Any, xp: Any, self: Any, other: Any) -> Any:
    """By `other`: the density of the gamma distribution."""
    return g * xp.exp((self - 1) * xp.log(other) - other - xp.lgamma(self))


def _incomplete(name: str, scipy_name: str, grad: Any) -> None:
    op(
        f"{name}(self, other)",
        not_for(name, "biuc", special(scipy_name)),
        numbers="no",
        inplace=True,
        singular=True,
        self=_unknown(name),
        other=grad,
    )


_incomplete("igamma", "gammainc", _density)
_incomplete(
    "igammac",
    "gammaincc",
    lambda g, xp, self, other: -_density(g, xp, self, other),
)

# -- the multivariate one --------------------------------------------------------------


def _mvlgamma(a: Any, p: int) -> Any:
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1, but it is {p}")
    gammaln = special("gammaln")
    total = sum(gammaln(a - i / 2) for i in range(p))
    return total + p * (p - 1) / 4 * math.log(math.pi)


op(
    "mvlgamma(self, p)",
    not_for("mvlgamma", "c", _mvlgamma),
    kinds={"p": "int"},
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, xp, self, p: g * sum(xp.digamma(self - i / 2) for i in range(p)),
)

# -- Bessel functions ------------------------------------------------------------------


def _at_zero(g: Any, xp: Any, self: Any, slope: Any) -> Any:
    """The slope, which divides by `self`, and its limit of 1/2 at 0."""
    return xp._where(self == 0, g * 0.5, g * slope)


def _i1_grad(g: Any, xp: Any, self: Any, result: Any) -> Any:
    return _at_zero(g, xp, self, xp.i0(self) - result / self)


def _i1e_grad(g: Any, xp: Any, self: Any, result: Any) -> Any:
    slope = xp.special_i0e(self) - result * (xp.sgn(self) + 1 / self)
    return _at_zero(g, xp, self, slope)


op(
    "i0(self)",
    real_special("i0"),
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.special_i1(self),
)


def _bessel(name: str, grad: Any) -> None:
    options = {"function": False, "method": False, "node": f"Special{name.upper()}"}
    op(f"special_{name}(self)", real_special(name), floats=True, self=grad, **options)


_bessel("i1", _i1_grad)
_bessel(
    "i0e",
    lambda g, xp, self, result: g * (xp.special_i1e(self) - xp.sgn(self) * result),
)
_bessel("i1e", _i1e_grad)
