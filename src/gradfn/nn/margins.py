"""Losses that want the right class ahead of the others by a margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradfn.nn.losses import pairwise_distance
from gradfn.nn.reductions import reduced
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def _rows(name: str, input: Tensor) -> Any:
    """The input as (sample, class): of no or one dim, a single sample. RuntimeError else."""
    if input.dim() > 2 or (input.dim() and not input.shape[-1]):
        raise RuntimeError(
            f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but "
            f"got: {list(input.shape)}"
        )
    return input if input.dim() == 2 else input.reshape(1, -1)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The mean over classes i ≠ y of max(0, margin - x[y] + x[i])^p, times weight[y].

    `input` is (sample, class), `target` holds the classes y. ValueError unless p is 1 or 2;
    RuntimeError for shapes that do not go together.
    """
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported, got {p}")
    x, y = _rows("multi_margin_loss", input), target.reshape(-1, 1)
    if y.shape[0] != x.shape[0] or target.dim() > 1:
        raise RuntimeError(
            f"multi_margin_loss: inconsistent target size, expected {x.shape[0]} but got "
            f"{list(target.shape)}"
        )
    short = (margin - x.gather(1, y) + x).clamp(min=0)
    loss = short if p == 1 else short.square()
    if weight is not None:
        loss = loss * weight[y]
    loss = loss.scatter(1, y, 0).mean(1)
    if input.dim() < 2:
        loss = loss.squeeze(0)
    return reduced(loss, reduction, size_average, reduce)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The sum over classes y of `target` and i not of it of max(0, 1 - x[y] + x[i]), / n.

    `target`, of the input's shape (sample, class), lists classes up to the first -1.
    """
    if target.shape != input.shape:
        raise RuntimeError(
            f"multilabel_margin_loss: inconsistent target size: {list(target.shape)} for "
            f"input of size: {list(input.shape)}"
        )
    x = _rows("multilabel_margin_loss", input)
    y = target.reshape(x.shape)
    listed = (y >= 0).long().cumprod(1)
    y = y * listed
    others = PUBLIC["ones_like"](x.detach()).scatter_reduce(
        1, y, (1 - listed).to(x.dtype), "amin"
    )
    short = (1 - x.gather(1, y).unsqueeze(2) + x.unsqueeze(1)).clamp(min=0)
    loss = (short * listed.unsqueeze(2) * others.unsqueeze(1)).sum((1, 2)) / x.shape[1]
    return reduced(loss.reshape(input.shape[:-1]), reduction, size_average, reduce)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[..., Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for any distance d."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = PUBLIC["minimum"](far, distance(positive, negative))
    return reduced((near - far + margin).clamp(min=0), reduction)
