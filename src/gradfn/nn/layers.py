"""Linear maps, normalisation, attention."""

from __future__ import annotations

import math
from typing import Any

from gradfn._dtype_info import finfo
from gradfn.nn.dropouts import dropout
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def linear(input: Tensor, weight: Tensor, bias: Any = None) -> Any:
    """input @ weight.T + bias."""
    out = input @ weight.t()
    return out if bias is None else out + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Any = None) -> Any:
    """x1 @ weight[k] @ x2 for each output k."""
    out = PUBLIC["einsum"]("...i,kij,...j->...k", input1, weight, input2)
    return out if bias is None else out + bias


def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None
) -> Any:
    """Vectors along `dim` divided by their p-norm, or by eps if that is smaller."""
    size = input.norm(p, dim, keepdim=True).clamp(min=eps)
    return input / size.expand_as(input)


def _scaled(out: Tensor, weight: Any, bias: Any) -> Any:
    if weight is not None:
        out = out * weight
    return out if bias is None else out + bias


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Mean 0 and variance 1 over the last dims, then weight and bias."""
    shape = (
        (normalized_shape,)
        if isinstance(normalized_shape, int)
        else tuple(normalized_shape)
    )
    if tuple(input.shape[-len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, "
            f"{str(list(shape))[1:-1]}], but got input of size{list(input.shape)}"
        )
    dims = tuple(range(-len(shape), 0))
    return _scaled(_standard(input, dims, eps), weight, bias)


def _standard(input: Tensor, dims: Any, eps: float) -> Any:
    away = input - input.mean(dims, True)
    return away * ((away * away).mean(dims, True) + eps).rsqrt()


def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Any = None, eps: Any = None
) -> Any:
    """Divided by the root mean square over the last dims, then weight."""
    eps = finfo(input.dtype).eps if eps is None else eps
    dims = tuple(range(-len(normalized_shape), 0))
    out = input * ((input * input).mean(dims, True) + eps).rsqrt()
    return out if weight is None else out * weight


def _channels(values: Any, ndim: int) -> Any:
    """Values for each channel, which is dim 1."""
    return None if values is None else values.reshape([1, -1, *[1] * (ndim - 2)])


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

    In training the running values are updated in place.
    """
    ndim = input.dim()
    if ndim < 2 and not input.numel():
        return input.clone()
    dims = (0, *range(2, ndim))
    if training or running_mean is None:
        n = input.numel() // max(input.shape[1], 1)
        if training and n == 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{input.shape}"
            )
        mean = input.mean(dims, True)
        away = input - mean
        var = (away * away).mean(dims, True)
        if running_mean is not None:
            unbiased = var.detach().reshape(-1) * (n / max(n - 1, 1))
            _move(running_mean, mean.detach().reshape(-1), momentum)
            _move(running_var, unbiased, momentum)
        out = away * (var + eps).rsqrt()
    else:
        mean, var = _channels(running_mean, ndim), _channels(running_var, ndim)
        out = (input - mean) * (var + eps).rsqrt()
    return _scaled(out, _channels(weight, ndim), _channels(bias, ndim))


def _move(running: Tensor, value: Tensor, momentum: float) -> None:
    running.mul_(1 - momentum).add_(value.to(running.dtype), alpha=momentum)


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
    """Mean 0 and variance 1 of each channel of each sample."""
    ndim = input.dim()
    if not use_input_stats:
        return batch_norm(
            input, running_mean, running_var, weight, bias, False, momentum, eps
        )
    dims = tuple(range(2, ndim))
    if running_mean is not None:
        n = input.numel() // (input.shape[0] * input.shape[1])
        mean = input.detach().mean(dims).mean(0)
        var = input.detach().var(dims, correction=0).mean(0) * (n / max(n - 1, 1))
        _move(running_mean, mean, momentum)
        _move(running_var, var, momentum)
    out = _standard(input, dims, eps)
    return _scaled(out, _channels(weight, ndim), _channels(bias, ndim))


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Mean 0 and variance 1 over groups of channels of each sample."""
    n, channels = input.shape[:2]
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input "
            f"of shape {list(input.shape)} and num_groups={num_groups}"
        )
    size = input.numel() // max(n * num_groups, 1)
    flat = input.reshape(n, num_groups, size)
    out = _standard(flat, (-1,), eps).reshape(input.shape)
    ndim = input.dim()
    return _scaled(out, _channels(weight, ndim), _channels(bias, ndim))


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """Divided by a power of the mean square of neighbouring channels."""
    from gradfn.nn.padding import pad

    squares = input * input
    spread = [0, 0] * (input.dim() - 2) + [size // 2, (size - 1) // 2]
    mean = pad(squares, spread).unfold(1, size, 1).mean(-1)
    return input / (mean * alpha + k) ** beta


def one_hot(tensor: Tensor, num_classes: int = -1) -> Any:
    """1 at each class, 0 elsewhere, in a new last dim."""
    if tensor.dtype is not PUBLIC["tensor"](0).dtype:
        raise RuntimeError(
            "one_hot is only applicable to index tensor of type LongTensor."
        )
    if tensor.numel() and int(tensor.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    n = num_classes if num_classes >= 0 else int(tensor.max()) + 1
    if tensor.numel() and int(tensor.max()) >= n:
        raise RuntimeError("Class values must be smaller than num_classes.")
    out = PUBLIC["zeros"](*tensor.shape, n, dtype=tensor.dtype)
    return out.scatter_(-1, tensor.unsqueeze(-1), 1)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """softmax(query @ key.T / sqrt(size) + mask) @ value."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    scores = query @ key.transpose(-2, -1) * factor
    if is_causal:
        ones = PUBLIC["ones"](query.shape[-2], key.shape[-2])
        scores = scores.masked_fill(ones.tril() == 0, -math.inf)
    if attn_mask is not None:
        if attn_mask.is_floating_point():
            scores = scores + attn_mask
        else:
            scores = scores.masked_fill(~attn_mask, -math.inf)
    return dropout(PUBLIC["_safe_softmax"](scores, -1), dropout_p) @ value
