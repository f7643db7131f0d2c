"""A batch normalisation in evaluation, taken into the layer before it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from gradfn.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _fused(
    weight: Any, bias: Any, stats: tuple[Any, ...], eps: float, shape: Any
) -> tuple[Parameter, Parameter]:
    """weight · scale, and (bias - mean) · scale + shift, of the layer's own dtypes."""
    mean, var, scale, shift = stats
    scale = (var + eps).rsqrt() * (1 if scale is None else scale)
    moved = (-mean if bias is None else bias - mean) * scale
    moved = moved if shift is None else moved + shift
    dtype = weight.dtype if bias is None else bias.dtype
    trained = bias is not None and bias.requires_grad
    return (
        Parameter((weight * scale.reshape(shape)).to(weight.dtype), weight.requires_grad),
        Parameter(moved.to(dtype), trained),
    )


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the convolution that normalises its results too."""
    ones = (1,) * (conv_w.dim() - 2)
    shape = (1, -1, *ones) if transpose else (-1, 1, *ones)
    return _fused(conv_w, conv_b, (bn_rm, bn_rv, bn_w, bn_b), bn_eps, shape)


def fuse_linear_bn_weights(
    linear_w: Any,
    linear_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the linear map that normalises its results too."""
    return _fused(linear_w, linear_b, (bn_rm, bn_rv, bn_w, bn_b), bn_eps, (-1, 1))


def _check(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError(
            "Fusion only for eval! Call eval() on the layer and on its normalisation"
        )
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def _copy_of(layer: Any, fused: tuple[Parameter, Parameter]) -> Any:
    made = deepcopy(layer)
    made.weight, made.bias = fused
    return made


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that does what it and its batch normalisation do.

    AssertionError unless both are in evaluation and there are running values.
    """
    _check(conv, bn)
    stats = bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    return _copy_of(conv, fuse_conv_bn_weights(conv.weight, conv.bias, *stats, transpose))


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear map that does what it and its batch normalisation do.

    AssertionError unless both are in evaluation, there are running values, and these are
    as many as the outputs, or one.
    """
    _check(linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and "
            f"bn.num_features={bn.num_features}"
        )
    stats = bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    return _copy_of(linear, fuse_linear_bn_weights(linear.weight, linear.bias, *stats))
