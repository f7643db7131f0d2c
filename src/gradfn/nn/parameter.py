"""Parameter: a tensor that a Module finds among its attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.override import PLAIN
from gradfn.tensor import LEAF, Tensor, wrap

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A leaf that requires grad, over the memory of `data`.

    Assigned to an attribute of a Module, it is among its `parameters()`.
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """A parameter over a tensor's memory; of no elements if there is none."""
        if data is None:
            data = wrap(np.empty(0, np.float32))
        t = wrap(data.detach()._array, cls)
        if requires_grad:
            if t._array.dtype.kind not in "fc":
                raise RuntimeError(
                    "Only Tensors of floating point and complex dtype can require gradients"
                )
            t._grad_fn = LEAF
        return t

    def __repr__(self) -> str:
        plain = wrap(self._array)
        plain._grad_fn = self._grad_fn
        return f"Parameter containing:\n{plain!r}"


class Buffer(Tensor):
    """A tensor that belongs to a Module's state and is not trained."""

    __slots__ = ("persistent",)
    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        """A buffer over a tensor's memory."""
        t: Any = wrap(np.empty(0, np.float32) if data is None else data._array, cls)
        t.persistent = persistent
        return t


# Ops treat them as what they are: tensors without an opinion.
PLAIN.update((Parameter, Buffer))
