"""A linear map and the cross entropy of what it gives, in one call."""

from __future__ import annotations

import math
from typing import Any

from gradfn.nn.layers import linear
from gradfn.nn.likelihood import cross_entropy
from gradfn.tensor import Tensor


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:
    """cross_entropy(linear(input, linear_weight, linear_bias), target).

    `input` is (features,) or (sample, features); `linear_weight` (class, *places, features),
    and the bias that without its last dim. PyTorch's `options` say into which parts it cuts
    the batch to save memory; that changes no result, and here it is computed whole.

    RuntimeError for shapes that do not fit, and for an `ignore_index` with probabilities
    as targets.
    """
    if input.dim() not in (1, 2):
        raise RuntimeError(
            f"expected input with dimensionality 1 or 2, got {input.dim()}"
        )
    if linear_weight.dim() < 2:
        raise RuntimeError(
            "expected linear_weight with dimensionality at least 2, got "
            f"{linear_weight.dim()}"
        )
    features = linear_weight.shape[-1]
    if input.shape[-1] != features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {features}, respectively"
        )
    classes = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != classes:
        raise RuntimeError(
            f"expected linear_bias shape {classes}, got {tuple(linear_bias.shape)}"
        )
    if len(classes) > 1 and input.dim() == 1:
        raise RuntimeError(
            "K-dimensional loss defined by linear_weight shape "
            f"{tuple(linear_weight.shape)} requires batched input, (N, {features}), got "
            f"unbatched input with shape {tuple(input.shape)}"
        )
    shape = (*input.shape[:-1], *classes)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError(
            "ignore_index cannot be specified when target contains probabilities"
        )
    if len(classes) > 1:
        linear_weight = linear_weight.reshape(math.prod(classes), features)
        linear_bias = None if linear_bias is None else linear_bias.reshape(-1)
    return cross_entropy(
        linear(input, linear_weight, linear_bias).reshape(shape),
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
