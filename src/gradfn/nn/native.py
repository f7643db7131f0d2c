"""Names of torch itself that are nn.functional's, some with their arguments otherwise.

Losses take a number for the reduction: 0 for none, 1 for the mean, 2 for the sum. As in
PyTorch they are not reduced unless one is given, though its documentation says otherwise.
"""

from __future__ import annotations

from typing import Any

from gradfn.nn import functional as F
from gradfn.nn.embed import _row as _embedding_row
from gradfn.tensor import Tensor

_REDUCTIONS = ("none", "mean", "sum")  # in the order of their numbers

bilinear, cosine_similarity = F.bilinear, F.cosine_similarity
celu, hardshrink, pairwise_distance = F.celu, F.hardshrink, F.pairwise_distance
prelu, rrelu, selu, threshold = F.prelu, F.rrelu, F.selu, F.threshold
rms_norm = F.rms_norm
celu_, rrelu_, selu_, threshold_ = F.celu_, F.rrelu_, F.selu_, F.threshold_


def dropout(input: Tensor, p: float, train: bool) -> Any:
    """`nn.functional.dropout`."""
    return F.dropout(input, p, train)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Any:
    """`nn.functional.alpha_dropout`."""
    return F.alpha_dropout(input, p, train)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Any:
    """`nn.functional.feature_alpha_dropout`."""
    return F.feature_alpha_dropout(input, p, train)


def feature_dropout(input: Tensor, p: float, train: bool) -> Any:
    """`nn.functional.dropout` of whole channels (dim 1)."""
    return F.dropout2d(input, p, train)


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    """`nn.functional.layer_norm`."""
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    """`nn.functional.group_norm`."""
    return F.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """`nn.functional.batch_norm`."""
    return F.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )


def instance_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """`nn.functional.instance_norm`."""
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """`nn.functional.embedding`, the table first; no padding below 0."""
    if padding_idx < 0 and not scale_grad_by_freq:
        return _embedding_row(weight, indices)
    padding = padding_idx if padding_idx >= 0 else None
    return F.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq)


def _reduction(reduction: int | str) -> str:
    return reduction if isinstance(reduction, str) else _REDUCTIONS[reduction]


def kl_div(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Any:
    """`nn.functional.kl_div`, with a number (0, 1, 2) for the reduction."""
    return F.kl_div(input, target, reduction=_reduction(reduction), log_target=log_target)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool,
    full: bool,
    eps: float,
    reduction: int,
) -> Any:
    """`nn.functional.poisson_nll_loss`, with a number for the reduction."""
    name = _reduction(reduction)
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=name)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: int = 0,
) -> Any:
    """`nn.functional.cosine_embedding_loss`, with a number for the reduction."""
    name = _reduction(reduction)
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=name)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0
) -> Any:
    """`nn.functional.hinge_embedding_loss`, with a number for the reduction."""
    name = _reduction(reduction)
    return F.hinge_embedding_loss(input, target, margin, reduction=name)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: int = 0,
) -> Any:
    """`nn.functional.margin_ranking_loss`, with a number for the reduction."""
    name = _reduction(reduction)
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=name)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Any:
    """`nn.functional.triplet_margin_loss`, with a number for the reduction."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_reduction(reduction)
    )


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    pos_weight: Any = None,
    reduction: int = 0,
) -> Any:
    """`nn.functional.binary_cross_entropy_with_logits`, with a number for the reduction."""
    return F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_reduction(reduction), pos_weight=pos_weight
    )


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Any:
    """`nn.functional.ctc_loss`, with a number for the reduction."""
    name = _reduction(reduction)
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, name, zero_infinity
    )
