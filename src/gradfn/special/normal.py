"""The normal distribution's functions, entropies, logarithms and the zeta function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn.ops.constants import scalar
from gradfn.ops.rule import op
from gradfn.ops.unary import not_for, real_special, special

_ROOT_PI, _ROOT_2 = math.sqrt(math.pi), math.sqrt(2)
_ROOT_TWO_PI = _ROOT_PI * _ROOT_2


def row(signature: str, kernel: Any, **options: Any) -> Any:
    """The function of a row of torch.special's."""
    name = signature.partition("(")[0]
    node = "Special" + "".join(w.capitalize() for w in name.split("_"))
    return op(
        f"special_{signature}",
        kernel,
        function=False,
        method=False,
        floats=True,
        node=node,
        **options,
    ).function


ndtr = row(
    "ndtr(self)",
    real_special("ndtr"),
    self=lambda g, xp, self: g * xp.exp(self * self * -0.5) * (1 / _ROOT_TWO_PI),
)
log_ndtr = row(
    "log_ndtr(self)",
    real_special("log_ndtr"),
    self=lambda g, xp, self: (
        g / xp.special_erfcx(self * (-1 / _ROOT_2)) * (_ROOT_2 / _ROOT_PI)
    ),
)
ndtri = row(
    "ndtri(self)",
    real_special("ndtri"),
    singular=True,
    self=lambda g, xp, result: g * xp.exp(result * result * 0.5) * _ROOT_TWO_PI,
)
erfcx = row(
    "erfcx(self)",
    real_special("erfcx"),
    self=lambda g, self, result: g * (self * result * 2 - 2 / _ROOT_PI),
)
entr = row(
    "entr(self)",
    real_special("entr"),
    singular=True,
    self=lambda g, xp, self: -g * (xp.log(self) + 1),
)


def _xlog1py(a: Any, b: Any) -> Any:
    return np.where((a == 0) & (b == b), scalar(0, a.dtype), a * np.log1p(b))


xlog1py = row(
    "xlog1py(self, other)",
    not_for("xlog1py", "c", _xlog1py),
    numbers="one",
    singular=True,
    self=lambda g, xp, self, other: xp._keep(
        g * xp.log1p(other), (self != 0) | ~(other <= -1)
    ),
    other=lambda g, self, other: g * self / (other + 1),
)


def _no_derivative(g: Any) -> Any:
    raise NotImplementedError(
        "the derivative for 'zeta' by its first argument is not implemented: it has no "
        "simple form. detach() that argument."
    )


zeta = row(
    "zeta(self, other)",
    not_for("zeta", "c", special("zeta")),
    numbers="one",
    singular=True,
    self=_no_derivative,
    other=lambda g, xp, self, other: -g * self * xp.special_zeta(self + 1, other),
)
