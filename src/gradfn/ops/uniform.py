"""Gradients that have one value everywhere.

Note [Uniform gradients]
    The gradient of a sum or mean over all elements is one value, repeated by strides of
    0. Ops that work on each element by itself (`uniform=True`) take it as a 0-d array,
    so that a chain of them computes one number rather than an array of a million; what
    is still 0-d afterwards is repeated again. Small gradients are plain arrays (see
    `spread_like`), so that they pay for no more than a look at `.base`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def one_value(g: Any) -> Any:
    """The 0-d array that `g` repeats, or None if it has several values."""
    if not g.ndim or not g.size or any(g.strides):
        return None
    return g[(0,) * g.ndim + (...,)]


def everywhere(grads: Any, shape: Any) -> Any:
    """The gradients of a node, with `shape` where they are 0-d."""
    if type(grads) is tuple:
        return tuple(_repeated(x, shape) for x in grads)
    return _repeated(grads, shape)


def _repeated(x: Any, shape: Any) -> Any:
    return np.broadcast_to(x, shape) if x is not None and not np.ndim(x) else x
