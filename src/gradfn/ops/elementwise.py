"""Ops that work on each element by itself, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.rule import op, operator

# -- arithmetic --------------------------------------------------------------------------


def _add(a: Any, b: Any, alpha: Any = 1) -> Any:
    return np.add(a, b if alpha == 1 else b * np.asarray(alpha, b.dtype))


op(
    "add(self, other, *, alpha=1)",
    _add,
    numbers=True,
    inplace=True,
    self=lambda g: g,
    other=lambda g, alpha: g if alpha == 1 else g * alpha,
)
op(
    "mul(self, other)",
    np.multiply,
    numbers=True,
    inplace=True,
    self=lambda g, other: g * other.conj(),
    other=lambda g, self: g * self.conj(),
)
op(
    "tanh(self)",
    np.tanh,
    floats=True,
    inplace=True,
    self=lambda g, result: g - g * (result * result).conj(),
)
operator("__add__", "add")
operator("__radd__", "add", reflected=True)
operator("__mul__", "mul")
operator("__rmul__", "mul", reflected=True)
