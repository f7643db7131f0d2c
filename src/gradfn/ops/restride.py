"""Giving a tensor itself another shape: squeeze_, t_, resize_ and their like.

Such an op writes no element: the tensor takes over the array and the history that the
view of the same name would have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._state import INFERENCE, mode
from gradfn.graph.tangent import levels, set_tangent, tangent
from gradfn.graph.view import check_inplace
from gradfn.ops.create import checked
from gradfn.ops.inplace import bump, check_memory
from gradfn.tensor import Tensor, method


def become(t: Tensor, view: Tensor) -> Tensor:
    """Makes `t` what `view`, a view of it, is."""
    check_inplace(t)
    check_memory(t, constant=True)
    own = t._view
    t._array = view._array
    for level in levels():
        value = tangent(view, level)
        if value is not None:
            set_tangent(t, level, value)
    if own is not None:  # its way from the base goes on; view has t's own base already
        t._view = view._view
    if view._grad_fn is not None:
        t._grad_fn = view._grad_fn
    bump(t)
    if t._view is not None:
        t._view.version = t._cell.count  # type: ignore[union-attr]
    return t


def _in_place(name: str, of: str) -> None:
    def change(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return become(self, getattr(self, of)(*args, **kwargs))

    change.__name__ = name
    change.__doc__ = f"`{of}`, but the tensor itself is changed."
    method(change)


for _name in (
    "squeeze",
    "unsqueeze",
    "t",
    "transpose",
    "swapaxes",
    "swapdims",
    "as_strided",
):
    _in_place(f"{_name}_", _name)


@method
def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Another size; elements keep their order, new ones are not initialised.

    RuntimeError if the tensor requires grad.
    """
    if self.requires_grad and not mode() & INFERENCE:
        raise RuntimeError("cannot resize variables that require grad")
    shape = checked(size)
    if shape == self._array.shape:
        return self
    old = self._array.reshape(-1)
    new = np.empty(shape, old.dtype)
    n = min(new.size, old.size)
    new.reshape(-1)[:n] = old[:n]
    self._array = new if new.size > old.size else old[: new.size].reshape(shape)
    bump(self)
    return self


@method
def resize_as_(self: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the size of another tensor."""
    return resize_(self, other._array.shape)


@method
def set_(self: Tensor, source: Any = None, *_: Any) -> Tensor:
    """Takes over the memory, shape and dtype of another tensor.

    RuntimeError if this tensor requires grad and was computed or is a leaf in grad mode.
    """
    check_inplace(self)
    array = np.empty(0, self._array.dtype) if source is None else source.detach()._array
    self._array = array
    bump(self)
    return self
