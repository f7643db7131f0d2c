"""Normalisation: values with mean 0 and variance 1, over one choice of dims or another.

Note [Normal values]
    layer_norm, group_norm, instance_norm and batch_norm in training are one computation
    over different dims: (x - mean) / sqrt(var + eps) · weight + bias. Its rows, one for
    each name of a node, also give mean and variance, which running values and the native_
    functions want; the normal values themselves are not kept, since they are x, shifted
    and scaled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn.ops.rule import op

Array = Any


def _count(shape: Any, dims: Any) -> Any:
    return math.prod(shape[d] for d in dims) or np.nan


def _wide(x: Array) -> Array:
    """Single precision at least, to add up in."""
    return x if x.dtype.itemsize > 2 else x.astype(np.float32)


def _dots(a: Array, b: Array, dims: Any) -> Array:
    """The sum of products over dims."""
    k, n = len(dims), a.ndim
    if sorted(d % n for d in dims) == list(range(n - k, n)) and a.flags.c_contiguous:
        lead = a.shape[: n - k]
        rows = (math.prod(lead), math.prod(a.shape[n - k :]))
        return np.vecdot(a.reshape(rows), b.reshape(rows)).reshape(*lead, *(1,) * k)
    return np.add.reduce(a * b, dims, keepdims=True)


def _norm(
    a: Array, dims: Any, eps: float, shape: Any, weight: Array = None, bias: Array = None
) -> tuple[Array, Array, Array]:
    if a.dtype.kind != "f":
        raise NotImplementedError(f"normalisation is not implemented for {a.dtype}")
    x, n = _wide(a), _count(a.shape, dims)
    mean = np.add.reduce(x, dims, keepdims=True)
    mean /= n
    out = x - mean
    var = _dots(out, out, dims)
    var /= n
    scale = 1 / np.sqrt(var + eps)
    if weight is not None:
        weight = weight.reshape(shape)
        if all(scale.shape[d] != 1 or shape[d] == 1 for d in range(-len(shape), 0)):
            scale, weight = scale * weight, None  # both are small
    out *= scale
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias.reshape(shape)
    return out.astype(a.dtype, copy=False), mean, var


def _self_gradient(
    gs: Any,
    xp: Any,
    self: Any,
    mean: Any,
    var: Any,
    weight: Any,
    dims: Any,
    eps: float,
    shape: Any,
) -> Any:
    g, g_mean, g_var = gs
    n = _count(self.shape, dims)
    out, away = xp._zeros_like(self), self - mean
    if g is not None:
        scale = 1 / xp.sqrt(var + eps)
        g = g if weight is None else g * weight.reshape(shape)
        hat = away * scale
        common = hat * (xp.sum(g * hat, dims, True) / n) + xp.sum(g, dims, True) / n
        out = (g - common) * scale
    if g_mean is not None:
        out = out + g_mean / n
    if g_var is not None:
        out = out + away * (g_var * (2 / n))
    return out


def _self_gradient_raw(
    gs: Any,
    xp: Any,
    self: Array,
    mean: Array,
    var: Array,
    weight: Array,
    dims: Any,
    eps: float,
    shape: Any,
) -> Any:
    """The same for the gradient of the values alone, in two buffers."""
    g, n = gs[0], _count(self.shape, dims)
    if g is None or gs[1] is not None or gs[2] is not None:
        return _self_gradient(gs, xp, self, mean, var, weight, dims, eps, shape)
    scale = 1 / np.sqrt(var + eps)
    hat = _wide(self) - mean
    hat *= scale
    g = _wide(g) if weight is None else g * weight.reshape(shape)
    hat *= _dots(g, hat, dims) / n
    hat += np.add.reduce(g, dims, keepdims=True) / n
    np.subtract(g, hat, out=hat)
    hat *= scale
    return hat.astype(self.dtype, copy=False)


def _weight_gradient(
    gs: Any,
    xp: Any,
    self: Any,
    mean: Any,
    var: Any,
    weight_shape: Any,
    eps: float,
    shape: Any,
) -> Any:
    if gs[0] is None:
        return None
    hat = (self - mean) / xp.sqrt(var + eps)
    return _added_up(gs[0] * hat, xp, shape).reshape(tuple(weight_shape))


def _weight_gradient_raw(
    gs: Any,
    xp: Any,
    self: Array,
    mean: Array,
    var: Array,
    weight_shape: Any,
    eps: float,
    shape: Any,
) -> Any:
    if gs[0] is None:
        return None
    hat = self - mean
    hat *= 1 / np.sqrt(var + eps)
    hat *= gs[0]
    return _added_up(hat, xp, shape).reshape(weight_shape)


def _added_up(x: Any, xp: Any, shape: Any) -> Any:
    """The sum over the dims that `shape` has not, or has one element in."""
    lead = len(x.shape) - len(shape)
    dims = tuple(
        d for d in range(len(x.shape)) if d < lead or shape[d - lead] == 1 != x.shape[d]
    )
    return xp.sum(x, dims) if dims else x


def _row(name: str, node: str) -> Any:
    return op(
        f"{name}(self, dims, eps, shape, weight=None, bias=None)",
        _norm,
        function=False,
        method=False,
        outputs="out mean var",
        differentiable=3,
        node=node,
        self=_self_gradient,
        weight=_weight_gradient,
        bias=lambda gs, xp, bias_shape, shape: (
            None
            if gs[0] is None
            else _added_up(gs[0], xp, shape).reshape(tuple(bias_shape))
        ),
        raw={"self": _self_gradient_raw, "weight": _weight_gradient_raw},
    ).function


layer_row = _row("_layer_norm", "NativeLayerNorm")
group_row = _row("_group_norm", "NativeGroupNorm")
batch_row = _row("_batch_norm", "NativeBatchNorm")
