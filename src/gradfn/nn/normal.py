"""Normalisation: values with mean 0 and variance 1, over one choice of dims or another.

Note [Normal values]
    layer_norm, group_norm, instance_norm and batch_norm in training are one computation
    over different dims: (x - mean) / sqrt(var + eps) · weight + bias. Its rows, one for
    each name of a node, also give mean and variance, for running values, the native_
    functions and the first derivative; a recorded one finds them again, with their history.
    The normal values themselves are not kept, since they are x, shifted and scaled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn.ops.fused import BLOCK
from gradfn.ops.reduce import add_reduce
from gradfn.ops.rule import op

Array = Any


def _count(shape: Any, dims: Any) -> Any:
    return math.prod(shape[d] for d in dims) or np.nan


def _wide(x: Array) -> Array:
    """Single precision at least, to add up in."""
    return x if x.dtype.itemsize > 2 else x.astype(np.float32)


def _dots(a: Array, b: Array, dims: Any) -> Array:
    """The sum of products over dims."""
    if dims == (-1,):
        return np.vecdot(a, b)[..., None]
    return add_reduce(a * b, dims, keepdims=True)


def _as_rows(a: Array, dims: Any) -> Array | None:
    """The array with all that is normalised together in a row; None if it lies apart."""
    k = len(dims)
    if dims[0] != -k or not a.flags.c_contiguous:
        return None
    return a.reshape(-1, math.prod(a.shape[-k:])) if a.size else None


def _row_blocks(rows: Array) -> Any:
    """Slices of rows that stay in the cache: Note [Blocks] of ops/fused."""
    count, size = rows.shape
    step = max(BLOCK // size, 1)
    return (slice(i, i + step) for i in range(0, count, step))


def _norm(
    a: Array, dims: Any, eps: float, shape: Any, weight: Array = None, bias: Array = None
) -> tuple[Array, Array, Array]:
    if a.dtype.kind != "f":
        raise NotImplementedError(f"normalisation is not implemented for {a.dtype}")
    rows = _as_rows(a, dims)
    if rows is None:
        return _norm_apart(a, dims, eps, shape, weight, bias)
    x = _wide(rows)
    size, whole = x.shape[1], len(shape) == len(dims)
    factor = weight.reshape(size) if whole and weight is not None else None
    shift = bias.reshape(size) if whole and bias is not None else None
    out = np.empty_like(x)
    mean, var = np.empty((2, len(x), 1), x.dtype)
    for some in _row_blocks(x):
        to = out[some]
        middle = add_reduce(x[some], 1, None, mean[some], True)
        middle /= size
        np.subtract(x[some], middle, to)
        spread = np.vecdot(to, to, out=var[some, 0])
        spread /= size
        to *= _scale(var[some], eps)
        if factor is not None:
            to *= factor
        if shift is not None:
            to += shift
    stats = (*a.shape[: a.ndim - len(dims)], *(1,) * len(dims))
    out = out.reshape(a.shape)
    if not whole:
        _affine(out, weight, bias, shape)
    return out.astype(a.dtype, copy=False), mean.reshape(stats), var.reshape(stats)


def _scale(var: Array, eps: float) -> Array:
    scale = var + eps
    np.sqrt(scale, scale)
    return np.divide(1, scale, scale)


def _affine(out: Array, weight: Array, bias: Array, shape: Any) -> None:
    if weight is not None:
        out *= weight.reshape(shape)
    if bias is not None:
        out += bias.reshape(shape)


def _norm_apart(
    a: Array, dims: Any, eps: float, shape: Any, weight: Array, bias: Array
) -> tuple[Array, Array, Array]:
    x, n = _wide(a), _count(a.shape, dims)
    mean = add_reduce(x, dims, keepdims=True)
    mean /= n
    out = x - mean
    var = add_reduce(out * out, dims, keepdims=True)
    var /= n
    scale = _scale(var, eps)
    if weight is not None:
        weight = weight.reshape(shape)
        if len(shape) < a.ndim and scale.size == weight.size:  # one for each channel
            scale, weight = scale * weight, None
    out *= scale
    _affine(out, weight, bias, shape)
    return out.astype(a.dtype, copy=False), mean, var


def _standard(xp: Any, x: Any, dims: Any, eps: float) -> tuple[Any, Any]:
    """Normal values, made of ops, and the factor that scaled them."""
    n = _count(x.shape, dims)
    away = x - xp.sum(x, dims, True) / n
    scale = 1 / xp.sqrt(xp.sum(away * away, dims, True) / n + eps)
    return away * scale, scale


def _self_gradient(
    g: Any, xp: Any, self: Any, weight: Any, dims: Any, eps: float, shape: Any
) -> Any:
    hat, scale = _standard(xp, self, dims, eps)
    n = _count(self.shape, dims)
    g = g if weight is None else g * weight.reshape(shape)
    common = hat * (xp.sum(g * hat, dims, True) / n) + xp.sum(g, dims, True) / n
    return (g - common) * scale


def _self_gradient_raw(
    g: Array,
    self: Array,
    mean: Array,
    var: Array,
    weight: Array,
    dims: Any,
    eps: float,
    shape: Any,
) -> Any:
    """The same with what the kernel has found, in two buffers, or in two of a block."""
    scale, g = _scale(var, eps), _wide(g)
    rows, g_rows = _as_rows(self, dims), _as_rows(g, dims)
    whole = weight is None or len(shape) == len(dims)
    if rows is None or g_rows is None or not whole or rows.dtype.itemsize < 4:
        g = g if weight is None else g * weight.reshape(shape)
        return _back(g, _wide(self), mean, scale, dims).astype(self.dtype, copy=False)
    factor = None if weight is None else weight.reshape(1, -1)
    mean, scale, out = mean.reshape(-1, 1), scale.reshape(-1, 1), np.empty_like(rows)
    for some in _row_blocks(rows):
        part = g_rows[some] if factor is None else g_rows[some] * factor
        _back(part, rows[some], mean[some], scale[some], (-1,), out[some])
    return out.reshape(self.shape)


def _back(
    g: Array, x: Array, mean: Array, scale: Array, dims: Any, out: Array = None
) -> Array:
    n = _count(x.shape, dims)
    hat = np.subtract(x, mean, out)
    hat *= scale
    hat *= _dots(g, hat, dims) / n
    hat += add_reduce(g, dims, keepdims=True) / n
    np.subtract(g, hat, hat)
    hat *= scale
    return hat


def _weight_gradient(
    g: Any, xp: Any, self: Any, weight_shape: Any, dims: Any, eps: float, shape: Any
) -> Any:
    hat, _ = _standard(xp, self, dims, eps)
    return _added_up(g * hat, xp, shape).reshape(tuple(weight_shape))


def _weight_gradient_raw(
    g: Array,
    xp: Any,
    self: Array,
    mean: Array,
    var: Array,
    weight_shape: Any,
    dims: Any,
    eps: float,
    shape: Any,
) -> Any:
    scale, rows, g_rows = _scale(var, eps), _as_rows(self, dims), _as_rows(g, dims)
    if rows is None or g_rows is None or len(shape) != len(dims):
        hat = _wide(self) - mean
        hat *= scale
        hat *= g
        return _added_up(hat, xp, shape).reshape(weight_shape)
    mean, scale = mean.reshape(-1, 1), scale.reshape(-1, 1)
    total = np.zeros(rows.shape[1], mean.dtype)
    for some in _row_blocks(rows):
        hat = rows[some] - mean[some]
        hat *= scale[some]
        hat *= g_rows[some]
        total += add_reduce(hat, 0)
    return total.reshape(weight_shape)


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
        node=node,
        self=_self_gradient,
        weight=_weight_gradient,
        bias=lambda g, xp, bias_shape, shape: _added_up(g, xp, shape).reshape(
            tuple(bias_shape)
        ),
        raw={"self": _self_gradient_raw, "weight": _weight_gradient_raw},
    ).function


layer_row = _row("_layer_norm", "NativeLayerNorm")
group_row = _row("_group_norm", "NativeGroupNorm")
batch_row = _row("_batch_norm", "NativeBatchNorm")
