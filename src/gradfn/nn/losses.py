"""Losses and distances."""

from __future__ import annotations

import math
import warnings
from typing import Any

from gradfn.graph.batched import all_values
from gradfn.nn.reductions import reduced
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def _same_size(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to "
            "broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=3,
        )
    a, b = PUBLIC["broadcast_tensors"](input, target)
    return a, b


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """Squared differences."""
    a, b = _same_size(input, target)
    loss = (a - b) ** 2
    if weight is not None:
        loss = loss * weight
        if reduction == "mean":
            return loss.sum() / weight.sum()
    return reduced(loss, reduction, size_average, reduce)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """Absolute differences."""
    a, b = _same_size(input, target)
    loss = (a - b).abs()
    if weight is not None:
        loss = loss * weight
        if reduction == "mean":
            return loss.sum() / weight.sum()
    return reduced(loss, reduction, size_average, reduce)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    """Squared differences below beta, absolute ones above. RuntimeError if beta < 0."""
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    a, b = _same_size(input, target)
    d = (a - b).abs()
    loss = PUBLIC["where"](d < beta, d * d * (0.5 / beta), d - 0.5 * beta)
    return reduced(loss, reduction, size_average, reduce)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Any = None,
) -> Any:
    """Squared differences up to delta, absolute ones above, without a kink.

    RuntimeError unless delta is positive.
    """
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    a, b = _same_size(input, target)
    d = (a - b).abs()
    loss = PUBLIC["where"](d <= delta, d * d * 0.5, (d - 0.5 * delta) * delta)
    if weight is not None:
        loss = loss * weight
        if reduction == "mean":
            return loss.sum() / weight.sum()
    return reduced(loss, reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """-(t log p + (1 - t) log(1 - p)), logarithms no less than -100."""
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    log_p = _clamped_log(input)
    log_q = _clamped_log(1 - input)
    loss = -(target * log_p + (1 - target) * log_q)
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction, size_average, reduce)


def _clamped_log(p: Tensor) -> Any:
    return p.log().clamp(min=-100)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """binary_cross_entropy of sigmoid(input), without overflow."""
    if input.shape != target.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    log_q = (-input.abs()).exp().log1p() + (-input).clamp(min=0)  # -log sigmoid
    if pos_weight is None:
        loss = (1 - target) * input + log_q
    else:
        loss = (1 - target) * input + ((pos_weight - 1) * target + 1) * log_q
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction, size_average, reduce)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """target * (log target - input), for log-probabilities `input`."""
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = PUBLIC["xlogy"](target, target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return reduced(loss, reduction, size_average, reduce)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Minus the log-likelihood of counts with rates exp(input), or input."""
    loss = (
        input.exp() - target * input
        if log_input
        else input - target * (input + eps).log()
    )
    if full:
        stirling = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        loss = loss + stirling.masked_fill(target <= 1, 0.0)
    return reduced(loss, reduction, size_average, reduce)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """Minus the log-likelihood of normal distributions with these variances."""
    if not isinstance(var, Tensor):
        var = PUBLIC["full_like"](input, var)
    if (all_values(var) < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif (
            not (input.shape[:-1] == var.shape[:-1] and var.shape[-1] == 1)
            and var.numel() != 1
        ):
            raise ValueError("var is of incorrect size")
    # Below eps the value counts, not the derivative.
    safe = var + (var.detach().clamp(min=eps) - var.detach())
    loss = (safe.log() + (input - target) ** 2 / safe) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """x where the target is 1, what is missing to the margin where it is -1."""
    zero = PUBLIC["zeros_like"](input)
    away = PUBLIC["where"](target == 1, zero, (margin - input).clamp(min=0))
    near = PUBLIC["where"](target == -1, zero, input)
    return reduced(away + near, reduction, size_average, reduce)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """log(1 + exp(-target * input))."""
    return reduced((-target * input).exp().log1p(), reduction, size_average, reduce)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """max(0, -target * (x1 - x2) + margin)."""
    loss = (-target * (input1 - input2) + margin).clamp(min=0)
    return reduced(loss, reduction, size_average, reduce)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The mean over classes of binary_cross_entropy_with_logits."""
    low = input.clamp(max=0) - (-input.abs()).exp().log1p()
    high = (-input).clamp(max=0) - (-input.abs()).exp().log1p()
    loss = -(target * low + (1 - target) * high)
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(-1) / input.shape[-1], reduction, size_average, reduce)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along `dim`."""
    a, b = PUBLIC["broadcast_tensors"](x1, x2)
    unit_a = a / a.norm(2, dim, True).clamp(min=eps)
    unit_b = b / b.norm(2, dim, True).clamp(min=eps)
    return (unit_a * unit_b).sum(dim)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """1 - cosine where the target is 1, what exceeds the margin where it is -1."""
    eps = 1e-12
    dim = target.dim()
    dot = (input1 * input2).sum(dim)
    size = (
        ((input1 * input1).sum(dim) + eps) * ((input2 * input2).sum(dim) + eps)
    ).sqrt()
    cosine = dot / size
    zero = PUBLIC["zeros_like"](cosine)
    near = PUBLIC["where"](target == 1, 1 - cosine, zero)
    far = PUBLIC["where"](target == -1, (cosine - margin).clamp(min=0), zero)
    return reduced(near + far, reduction, size_average, reduce)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """The p-norm of differences along the last dim."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin).

    ValueError unless the margin is positive.
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = PUBLIC["minimum"](far, pairwise_distance(positive, negative, p, eps))
    return reduced((near - far + margin).clamp(min=0), reduction, size_average, reduce)
