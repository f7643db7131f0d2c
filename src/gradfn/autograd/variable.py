"""torch.autograd.Variable: today another name of Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradfn.graph.engine import current_run
from gradfn.tensor import Tensor

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor)


class _Engine:
    """What programs ask of PyTorch's engine."""

    @staticmethod
    def queue_callback(callback: Callable[[], Any]) -> None:
        """Has a function called when the present backward pass is through. RuntimeError."""
        task = current_run()
        if task is None:
            raise RuntimeError(
                "Final callbacks can only be installed during backward pass."
            )
        if not task.callbacks:
            task.callbacks = []
        task.callbacks.append(callback)


class Variable(metaclass=_VariableMeta):
    """Returns the tensor itself, with requires_grad set if asked for."""

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False, **_: Any) -> Any:
        """A tensor over the same memory."""
        out = data if isinstance(data, Tensor) and not requires_grad else data.detach()
        return out.requires_grad_() if requires_grad else out
