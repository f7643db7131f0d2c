"""Gradients that are made smaller where they are too large."""

from __future__ import annotations

import warnings
from typing import Any

from gradfn.autograd.grad_mode import no_grad
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _grads(parameters: Any) -> list[Any]:
    several = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in several if p.grad is not None]


def get_total_norm(
    tensors: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Any:
    """The norm of all elements of several tensors.

    RuntimeError if it is not finite and `error_if_nonfinite` is set.
    """
    several = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not several:
        return PUBLIC["tensor"](0.0)
    with no_grad():
        norms = PUBLIC["stack"]([t.norm(float(norm_type)) for t in several])
        total = norms.norm(float(norm_type))
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is "
            "non-finite, so it cannot be clipped. To disable this error and scale the "
            "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: Any = None
) -> None:
    """Scales all gradients by max_norm / total_norm where that is less than 1."""
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for g in _grads(parameters):
            g.mul_(factor.to(g.dtype))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Any:
    """Scales all gradients so that their common norm is at most `max_norm`; returns it.

    RuntimeError if it is not finite and `error_if_nonfinite` is set.
    """
    several = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_grads(several), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(several, max_norm, total)
    return total


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Limits each element of all gradients to [-clip_value, clip_value]."""
    limit = float(clip_value)
    with no_grad():
        for g in _grads(parameters):
            g.clamp_(-limit, limit)


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Any:
    """The older name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
