"""Parameter: a tensor that a Module finds among its attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.override import PLAIN
from gradfn.tensor import LEAF, Tensor, wrap

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "is_lazy",
]


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


class _Uninitialized:
    """A tensor of a lazy module that has no shape yet."""

    __slots__ = ()
    _array: Any
    cls_to_become: Any

    @property
    def shape(self) -> Any:
        """RuntimeError: there is none yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer: the lazy module "
            "that it belongs to learns it from its first input. Call the module, or load a "
            "state into it, first."
        )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Makes this an ordinary tensor of a shape, with values that mean nothing."""
        kind = self._array.dtype if dtype is None else dtype.numpy
        self._array = np.empty(tuple(shape), kind)
        self.__class__ = self.cls_to_become

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A Parameter whose shape a lazy module will learn from its first input."""

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> Any:
        """A parameter of a dtype, float32 by default, without a shape."""
        kind = np.dtype(np.float32) if dtype is None else dtype.numpy
        return super().__new__(cls, wrap(np.empty(0, kind)), requires_grad)


class UninitializedBuffer(_Uninitialized, Buffer):
    """A buffer whose shape a lazy module will learn from its first input."""

    __slots__ = ()
    cls_to_become = Buffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> Any:
        """A buffer of a dtype, float32 by default, without a shape."""
        kind = np.dtype(np.float32) if dtype is None else dtype.numpy
        return super().__new__(cls, wrap(np.empty(0, kind)), persistent=persistent)


def is_lazy(param: Any) -> bool:
    """Has this no shape yet?"""
    return isinstance(param, _Uninitialized)


# Ops treat them as what they are: tensors without an opinion.
PLAIN.update((Parameter, Buffer))
