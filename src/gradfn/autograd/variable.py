"""torch.autograd.Variable: today another name of Tensor."""

from __future__ import annotations

from typing import Any

from gradfn.graph.engine import queue_callback
from gradfn.tensor import Tensor

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor)


class _Engine:
    """What programs ask of PyTorch's engine."""

    queue_callback = staticmethod(queue_callback)


class Variable(metaclass=_VariableMeta):
    """Returns the tensor itself, with requires_grad set if asked for."""

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False, **_: Any) -> Any:
        """A tensor over the same memory."""
        out = data if isinstance(data, Tensor) and not requires_grad else data.detach()
        return out.requires_grad_() if requires_grad else out
