"""layer_norm, group_norm, instance_norm, batch_norm, rms_norm and their native_ forms."""

from __future__ import annotations

import math
from typing import Any

from gradfn._dtype_info import finfo
from gradfn.nn.normal import batch_row, group_row, layer_row
from gradfn.tensor import Tensor


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Mean 0 and variance 1 over the last dims, then weight and bias of their shape.

    RuntimeError where the shapes do not fit.
    """
    return _layer(input, normalized_shape, weight, bias, eps)[0]


def _layer(input: Tensor, normalized: Any, weight: Any, bias: Any, eps: float) -> Any:
    shape = _last_shape(input, normalized)
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and tuple(given.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} "
                f"of shape {list(given.shape)} and normalized_shape = {list(shape)}"
            )
    _check_dtype(input, weight, bias)
    dims = tuple(range(-len(shape), 0))
    return layer_row(input, dims, eps, shape, weight, bias)


def _last_shape(input: Tensor, normalized: Any) -> tuple[int, ...]:
    shape = (normalized,) if isinstance(normalized, int) else tuple(normalized)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at "
            "least one element, but got normalized_shape = []"
        )
    if tuple(input.shape[-len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, "
            f"{str(list(shape))[1:-1]}], but got input of size{list(input.shape)}"
        )
    return shape


def _check_dtype(input: Tensor, *others: Any) -> None:
    for given in others:
        if given is None or given.dtype is input.dtype:
            continue
        if input.dtype.itemsize > 2 or given.dtype.itemsize != 4:
            raise RuntimeError(
                "mixed dtype (CPU): all inputs must share same datatype, but got an input "
                f"of {input.dtype} and a parameter of {given.dtype}"
            )


def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Any = None, eps: Any = None
) -> Any:
    """Divided by the root mean square over the last dims, then weight.

    RuntimeError where the shapes do not fit.
    """
    shape = _last_shape(input, normalized_shape)
    eps = finfo(input.dtype).eps if eps is None else eps
    dims = tuple(range(-len(shape), 0))
    out = input * ((input * input).mean(dims, True) + eps).rsqrt()
    return out if weight is None else out * weight


def _per_channel(name: str, values: Any, count: int) -> None:
    if values is not None and values.numel() != count:
        raise RuntimeError(f"{name} should contain {count} elements not {values.numel()}")


def _channel_shape(ndim: int) -> tuple[int, ...]:
    """How values for each channel, which is dim 1, lie beside an input."""
    return (-1, *(1,) * (ndim - 2))


def batch_norm(
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Mean 0 and variance 1 of each channel (dim 1), of the batch or as running values.

    In training the running values are updated in place. ValueError for one value a channel
    in training, RuntimeError for parameters of another size than there are channels.
    """
    if training and input.dim() > 1:
        size = input.numel() // max(input.shape[1], 1)
        if size == 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{input.shape}"
            )
    if eps < 0 or (training and not eps):
        kind = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {kind}, but got {eps}")
    return _batch(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )[0]


def _batch(
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any,
    bias: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """The values, and in training each channel's mean and variance."""
    if not training:
        for name, given in (("running_mean", running_mean), ("running_var", running_var)):
            if given is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    ndim = input.dim()
    if ndim < 2:
        return input.clone(), None, None
    count = input.shape[1]
    for name, given in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        _per_channel(name, given, count)
    if not training:
        return _as_before(input, running_mean, running_var, weight, bias, eps), None, None
    dims = (-ndim, *range(2 - ndim, 0))
    shape = (count, *(1,) * (ndim - 2))
    out, mean, var = batch_row(input, dims, eps, shape, weight, bias)
    if running_mean is not None:
        _move(running_mean, mean, momentum)
    if running_var is not None:
        n = input.numel() // max(count, 1)
        _move(running_var, var, momentum, n / max(n - 1, 1))
    return out, mean, var


def _as_before(
    input: Tensor, mean: Tensor, var: Tensor, weight: Any, bias: Any, eps: float
) -> Any:
    """One factor and one summand for each channel."""
    scale = (var + eps).rsqrt()
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    shape = _channel_shape(input.dim())
    out = input * scale.reshape(shape) + shift.reshape(shape)
    return out.to(input.dtype)


def _move(running: Tensor, value: Tensor, momentum: float, factor: float = 1) -> None:
    value = value.detach().reshape(-1).to(running.dtype)
    running.mul_(1 - momentum).add_(value, alpha=momentum * factor)


def instance_norm(
    input: Tensor,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Mean 0 and variance 1 of each channel of each sample.

    In training the running values are updated in place. ValueError for a channel of one
    element, RuntimeError for parameters of another size than there are channels.
    """
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "Expected running_mean and running_var to be defined when use_input_stats "
                "is false"
            )
        return batch_norm(
            input, running_mean, running_var, weight, bias, False, momentum, eps
        )
    ndim = input.dim()
    n = math.prod(input.shape[2:])
    if n == 1:
        raise ValueError(
            "Expected more than 1 spatial element when training, got input size "
            f"{input.shape}"
        )
    _per_channel("weight", weight, input.shape[1])
    _per_channel("bias", bias, input.shape[1])
    shape = (input.shape[1], *(1,) * (ndim - 2))
    out, mean, var = batch_row(input, tuple(range(2 - ndim, 0)), eps, shape, weight, bias)
    if running_mean is not None:
        _move(running_mean, mean.detach().mean(0), momentum)
    if running_var is not None:
        _move(running_var, var.detach().mean(0), momentum, n / max(n - 1, 1))
    return out


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Mean 0 and variance 1 over groups of channels of each sample.

    RuntimeError where channels and groups do not fit.
    """
    return _group(input, num_groups, weight, bias, eps)[0]


def _group(input: Tensor, groups: int, weight: Any, bias: Any, eps: float) -> Any:
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    n, channels = input.shape[:2]
    if groups < 1 or channels % groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got "
            f"input of shape {list(input.shape)} and num_groups={groups}"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and tuple(given.shape) != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels "
                f"in input, but got {name} of shape {list(given.shape)} and input of shape "
                f"{list(input.shape)}"
            )
    _check_dtype(input, weight, bias)
    each = channels // groups
    apart = input.reshape(n, groups, each, math.prod(input.shape[2:]))
    shape = (groups, each, 1)
    out, mean, var = group_row(apart, (-2, -1), eps, shape, weight, bias)
    return out.reshape(input.shape), mean, var


# -- with what they found on the way -------------------------------------------------------


def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Any, bias: Any, eps: float
) -> tuple[Any, Any, Any]:
    """`layer_norm`, and the mean and 1 / sqrt(var + eps) of each row."""
    out, mean, var = _layer(input, normalized_shape, weight, bias, eps)
    return out, mean.detach(), (var.detach() + eps).rsqrt()


def native_group_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Any, Any, Any]:
    """`group_norm`, and the mean and 1 / sqrt(var + eps) of each group."""
    out = _group(input, group, weight, bias, eps)[0]
    flat = input.reshape(N, group, C // group * HxW)
    mean = flat.mean(-1)
    away = flat - mean.unsqueeze(-1)
    return out, mean, ((away * away).mean(-1) + eps).rsqrt()


def native_batch_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Any, Any, Any]:
    """`batch_norm`, and in training the mean and 1 / sqrt(var + eps) of each channel."""
    out, mean, var = _batch(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    if mean is None:
        return out, input.new_empty(0), input.new_empty(0)
    mean, var = mean.detach().reshape(-1), var.detach().reshape(-1)
    return out, mean, (var + eps).rsqrt()
