"""How losses of many elements become one: the names of reductions, old and new."""

from __future__ import annotations

from typing import Any

from gradfn.tensor import Tensor

_KNOWN = ("none", "mean", "sum")


def reduction_name(reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    """ "none", "mean" or "sum", also from the older arguments. ValueError for others."""
    if size_average is not None or reduce is not None:
        mean = size_average is None or size_average
        return "none" if reduce is False else "mean" if mean else "sum"
    if reduction not in _KNOWN:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(
    loss: Tensor, reduction: str, size_average: Any = None, reduce: Any = None
) -> Any:
    """The loss as it is, its sum or its mean. ValueError for other reductions."""
    name = reduction_name(reduction, size_average, reduce)
    if name == "none":
        return loss
    return loss.sum() if name == "sum" else loss.mean()
