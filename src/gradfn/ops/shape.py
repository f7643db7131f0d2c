"""Ops that arrange elements: views, joins and splits."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.rule import op

op(
    "permute(self, dims)",
    lambda a, dims: a.transpose(dims),
    view=True,
    self=lambda g, xp, dims: xp.permute(g, tuple(np.argsort(dims).tolist())),
)
op("view_as(self, other)", lambda a, other: a.reshape(other.shape), view=True,
   function=False, node="View", self=lambda g: g)


def filled(gs: Any, xp: Any) -> list[Any]:
    """Gradients of several outputs of one shape, zeros where none has come."""
    some = next(g for g in gs if g is not None)
    return [xp.zeros_like(some) if g is None else g for g in gs]


op("zeros_like(self)", lambda a: np.zeros(a.shape, a.dtype), method=False)


def _unbind(a: Any, dim: int = 0) -> Any:
    before = (slice(None),) * (dim % a.ndim)
    return [a[(*before, i, ...)] for i in range(a.shape[dim])]


op(
    "unbind(self, dim=0)",
    _unbind,
    outputs="many",
    view=True,
    self=lambda gs, xp, dim, self_shape: xp.stack(filled(gs, xp), dim),
)
op(
    "stack(tensors, dim=0)",
    lambda arrays, dim=0: np.stack(arrays, dim),
    many="tensors",
    method=False,
    tensors=lambda g, xp, dim: xp.unbind(g, dim),
)
op(
    "cat(tensors, dim=0)",
    lambda arrays, dim=0: np.concatenate(arrays, dim),
    many="tensors",
    method=False,
    tensors=lambda g, xp, dim, tensors_shape: xp.split_with_sizes(g, [s[dim] for s in tensors_shape], dim),
)
