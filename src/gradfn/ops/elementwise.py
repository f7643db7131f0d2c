"""Rows of ops that work on each element by itself."""

from __future__ import annotations

import numpy as np

from gradfn.ops.rule import alias, op, operator


def _add(a, b, alpha=1):  # type: ignore[no-untyped-def]
    return np.add(a, b) if alpha == 1 else np.add(a, b * _scale(alpha, b))


def _scale(alpha, b):  # type: ignore[no-untyped-def]
    return np.asarray(alpha, b.dtype)


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
op("tanh(self)", np.tanh, floats=True, inplace=True,
   self=lambda g, result: g - g * (result * result).conj())
operator("__add__", "add")
operator("__radd__", "add", reflected=True)
operator("__mul__", "mul")
operator("__rmul__", "mul", reflected=True)


def _sum(a, dim=None, keepdim=False, *, dtype=None):
    return np.add.reduce(a, axis=dim, keepdims=keepdim)

def _expand_grad(g, shape):
    if g.ndim == 0:
        r = np.empty(shape, g.dtype); r[...] = g
        return r
    return np.broadcast_to(g, shape)
op("sum(self, dim=None, keepdim=False, *, dtype=None)", _sum, self=lambda g, xp, self_shape: xp.spread(g, self_shape))
op("spread(self, shape)", _expand_grad, self=lambda g: g)
op("conj(self)", lambda a: a.conj(), view=True, self=lambda g: g.conj())
op("unbind(self, dim=0)", lambda a, dim=0: list(np.moveaxis(a,dim,0)), outputs="many", view=True, self=lambda gs, xp: 0)
