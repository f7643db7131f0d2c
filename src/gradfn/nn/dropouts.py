"""Random parts of the input left out: single elements, channels, and SELU's variants."""

from __future__ import annotations

import math
from typing import Any

from gradfn._dtypes import bool_
from gradfn.ops.random import drawing
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

# What SELU tends to for large negative input: -scale·alpha (Klambauer and others, 2017).
_SELU_FLOOR = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717


def _check(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


@drawing
def _kept(shape: Any, p: float, dtype: Any) -> Any:
    """Ones, with probability p zeros."""
    return PUBLIC["empty"](shape, dtype=dtype).bernoulli_(1 - p)


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    """Zeros with probability p, the rest scaled by 1 / (1 - p); nothing in evaluation.

    ValueError for a probability outside [0, 1].
    """
    return _drop(input, tuple(input.shape), p, training, inplace)


def _drop(input: Tensor, shape: Any, p: float, training: bool, inplace: bool) -> Any:
    _check(p)
    if not training or not p:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    mask = _kept(shape, p, input.dtype).div_(1 - p)
    return input.mul_(mask) if inplace else input * mask


def _channels(input: Tensor, alone: bool) -> tuple[int, ...]:
    """The shape of a mask with an element for each channel of each sample."""
    if alone:
        return (input.shape[0], *(1,) * (input.dim() - 1))
    return (*input.shape[:2], *(1,) * (input.dim() - 2))


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    """`dropout` of whole channels of (C, L) or (N, C, L)."""
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input."
        )
    return _drop(input, _channels(input, input.dim() == 2), p, training, inplace)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    """`dropout` of whole channels (dim 1) of (N, C, H, W)."""
    return _drop(input, _channels(input, False), p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    """`dropout` of whole channels (dim 1) of (N, C, D, H, W)."""
    return _drop(input, _channels(input, False), p, training, inplace)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """Elements put to SELU's lower limit with probability p; mean and variance are kept."""
    return _alpha(input, tuple(input.shape), p, training, inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """`alpha_dropout` of whole channels (dim 1)."""
    return _alpha(input, _channels(input, False), p, training, inplace)


def _alpha(input: Tensor, shape: Any, p: float, training: bool, inplace: bool) -> Any:
    _check(p)
    if not training or not p:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    floor = _SELU_FLOOR
    scale = 1 / math.sqrt((floor * floor * p + 1) * (1 - p))
    kept = _kept(shape, p, input.dtype)
    shift = (1 - kept) * (floor * scale) - floor * scale * p
    mask = kept * scale
    return input.mul_(mask).add_(shift) if inplace else input * mask + shift


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Any, Any]:
    """`dropout` and the mask of what was kept, bools; None for `train` means True."""
    _check(p)
    if train is False:
        return input.clone(), PUBLIC["ones_like"](input, dtype=bool_)
    kept = _kept(tuple(input.shape), p, input)
    return input * (kept * (1 / (1 - p) if p < 1 else 0)), kept.bool()
