"""What one does with the parameters of networks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradfn.autograd.grad_mode import no_grad
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "parameters_to_vector",
    "vector_to_parameters",
]


def _several(parameters: Any) -> list[Any]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Tensor:
    """Scales all gradients so that their common norm is at most `max_norm`; returns it.

    RuntimeError if it is not finite and `error_if_nonfinite` is set.
    """
    grads = [p.grad for p in _several(parameters) if p.grad is not None]
    if not grads:
        return PUBLIC["tensor"](0.0)  # type: ignore[no-any-return]
    with no_grad():
        norms = PUBLIC["stack"]([g.norm(norm_type) for g in grads])
        total = norms.norm(norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is "
                "non-finite, so it cannot be clipped. To disable this error and scale the "
                "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.mul_(factor.to(g.dtype))
    return total  # type: ignore[no-any-return]


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Limits each element of all gradients to [-clip_value, clip_value]."""
    with no_grad():
        for p in _several(parameters):
            if p.grad is not None:
                p.grad.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Any:
    """All parameters in one vector."""
    return PUBLIC["cat"]([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes a vector back into parameters."""
    start = 0
    for p in parameters:
        n = p.numel()
        p.data = vec[start : start + n].view_as(p).data
        start += n
