"""What the graph adds to Tensor: requires_grad, grad, grad_fn, hooks, detach, data."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from gradfn.graph.hooks import RemovableHandle, add_hook
from gradfn.graph.node import Node, Output, node_extra
from gradfn.graph.view import edge
from gradfn.tensor import LEAF, Tensor, extra_of, method, share, wrap


def attribute(function: Callable[[Tensor], Any]) -> property:
    """Puts a read-only property onto Tensor under the function's name."""
    made = property(function)
    setattr(Tensor, function.__name__, made)
    return made


def assignable(read: property, write: Callable[[Tensor, Any], None]) -> None:
    """Makes a property of Tensor assignable."""
    assert read.fget is not None
    name = read.fget.__name__

    def delete(self: Tensor) -> None:
        if name != "grad":
            raise RuntimeError(f"'{name}' of a tensor cannot be deleted")
        write(self, None)

    setattr(Tensor, name, property(read.fget, write, delete, read.__doc__))


# -- its place in the graph ----------------------------------------------------------


@attribute
def requires_grad(self: Tensor) -> bool:
    """Do gradients flow to this tensor?"""
    return self._grad_fn is not None or (self._view is not None and bool(edge(self)))


@method
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Sets requires_grad of a leaf, and returns the tensor.

    Raises RuntimeError for integers, and for a computed tensor that would lose it.
    """
    if not requires_grad and isinstance(edge(self), Node):
        raise RuntimeError(
            "you can only change requires_grad flags of leaf variables. If you want to "
            "use a computed variable in a subgraph that doesn't require differentiation "
            "use var_no_grad = var.detach()."
        )
    if requires_grad and self._array.dtype.kind not in "fc":
        raise RuntimeError(
            "only Tensors of floating point dtype can require gradients (or of complex "
            f"dtype); this one is {self.dtype}"
        )
    if self._extra is not None and self._extra.inference and requires_grad:
        raise RuntimeError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is "
            "not allowed."
        )
    if requires_grad and self._grad_fn is None:
        self._grad_fn = LEAF
    elif not requires_grad:
        self._grad_fn = None
    return self


assignable(requires_grad, lambda self, value: _void(self.requires_grad_(value)))


def _void(_: object) -> None:
    """Nothing: a setter is a function without a result."""


@attribute
def is_leaf(self: Tensor) -> bool:
    """Was it not computed from tensors that require grad?"""
    return not isinstance(edge(self), Node)


@attribute
def grad_fn(self: Tensor) -> Node | None:
    """The node that computed this tensor; None for a leaf."""
    e = edge(self)
    if e is LEAF:
        return None
    return e._next if isinstance(e, Output) else e  # type: ignore[no-any-return]


@attribute
def output_nr(self: Tensor) -> int:
    """Which of its node's outputs this tensor is."""
    e = edge(self)
    return e.index if isinstance(e, Output) else 0


@attribute
def grad(self: Tensor) -> Tensor | None:
    """The gradient that backward has accumulated here; None before the first.

    Assigning checks shape and dtype (RuntimeError). Only leaves, and tensors on which
    `retain_grad()` was called, are given one; asking another tensor warns.
    """
    extra = self._extra
    if extra is not None and extra.grad is not None:
        return extra.grad
    if isinstance(self._grad_fn, Node) and not (extra and extra.retains_grad):
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being "
            "accessed. Its .grad attribute won't be populated during "
            "autograd.backward(). If you indeed want the .grad field to be populated "
            "for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.",
            UserWarning,
            stacklevel=2,
        )
    return None


def _set_grad(self: Tensor, value: Any) -> None:
    if value is None:
        if self._extra is not None:
            extra_of(self).grad = None
        return
    if not isinstance(value, Tensor):
        raise TypeError(
            "assigned grad expected to be a Tensor or None but got grad of type "
            f"{type(value).__name__}"
        )
    if value is self:
        raise RuntimeError("can't assign Variable as its own grad")
    if value._array.dtype != self._array.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with "
            f"dtype '{self.dtype}'. Please ensure that the gradient and the tensor have the "
            "same dtype"
        )
    if value._array.shape != self._array.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of "
            f"size '{list(self.shape)}'. Please ensure that the gradient and the tensor are "
            "the same size"
        )
    extra_of(self).grad = value


def _del_grad(self: Tensor) -> None:
    _set_grad(self, None)


assignable(grad, _set_grad)
Tensor.grad = Tensor.grad.deleter(_del_grad)
Tensor._grad = Tensor.grad  # type: ignore[attr-defined]


@attribute
def retains_grad(self: Tensor) -> bool:
    """Is this a computed tensor that keeps its gradient?"""
    return self._extra is not None and self._extra.retains_grad


@method
def retain_grad(self: Tensor) -> None:
    """Has backward put this computed tensor's gradient into `.grad`.

    Does nothing for a leaf; RuntimeError if the tensor doesn't require grad.
    """
    e = edge(self)
    if e is None:
        raise RuntimeError(
            "can't retain_grad on Tensor that has requires_grad=False; nothing that "
            "requires grad took part in computing it"
        )
    if e is not LEAF:
        extra_of(self).retains_grad = True
        node_extra(e).retaining = weakref.ref(self)


# -- hooks -----------------------------------------------------------------------------


@method
def register_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(grad)` when this tensor's gradient is known; returns a handle.

    What the hook returns, if anything, takes the gradient's place. RuntimeError if the
    tensor doesn't require grad.
    """
    e = edge(self)
    if e is None:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    if e is LEAF:
        return add_hook(extra_of(self), "hooks", hook)
    return add_hook(node_extra(e), "tensor_hooks", hook)


@method
def register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[..., Any]
) -> RemovableHandle:
    """Calls `hook(tensor)` after backward has updated this leaf's `.grad`.

    RuntimeError if the tensor doesn't require grad or is no leaf.
    """
    e = edge(self)
    if e is None:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    if e is not LEAF:
        raise RuntimeError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
        )
    return add_hook(extra_of(self), "post_hooks", hook)


@attribute
def _backward_hooks(self: Tensor) -> Any:
    """The tensor's hooks, or None."""
    e = edge(self)
    if isinstance(e, Node):
        return None if e._extra is None else e._extra.tensor_hooks
    return None if self._extra is None else self._extra.hooks


# -- memory ----------------------------------------------------------------------------


def _shareable(t: Tensor) -> Any:
    """The array of `t`, which others may write: never one that the engine shares."""
    if not t._array.flags.writeable:
        t._array = t._array.copy()
    return t._array


@method
def detach(self: Tensor) -> Tensor:
    """The same memory and version counter without history."""
    if type(self._array) is not np.ndarray:  # all samples', and so for outer transforms
        return share(self, self._array.detached())  # type: ignore[attr-defined]
    return share(self, _shareable(self))


@method
def detach_(self: Tensor) -> Tensor:
    """Forgets the history of this very tensor. RuntimeError if it is a view."""
    if self._view is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is "
            "set as True, gradients are views of DDP buckets, and hence detach_() cannot "
            "be called on these gradients."
        )
    self._grad_fn = None
    if self._extra is not None:
        self._extra.tangents = None
    return self


@attribute
def data(self: Tensor) -> Tensor:
    """The same memory, without history and with a version counter of its own.

    RuntimeError for a batched tensor of vmap.
    """
    if type(self._array) is not np.ndarray:
        raise RuntimeError(
            "accessing `data` under vmap transform is not allowed; use detach()"
        )
    return wrap(_shareable(self))


def _set_data(self: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Variable data has to be a tensor, but got {type(value).__name__}"
        )
    if self._grad_fn is not None and value._array.dtype.kind not in "fc":
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or "
            "complex dtype"
        )
    if type(self._array) is not np.ndarray:
        raise RuntimeError(
            "mutating directly with `.data` under vmap transform is not allowed; use copy_()"
        )
    self._array = _shareable(value)


assignable(data, _set_data)


@attribute
def _version(self: Tensor) -> int:
    """How often the memory was written in place."""
    return 0 if self._cell is None else self._cell.count


@attribute
def _base(self: Tensor) -> Tensor | None:
    """The tensor of which this is a view."""
    return None if self._view is None else self._view.base


@method
def _is_view(self: Tensor) -> bool:
    """Is this a view of another tensor, as far as the graph knows?"""
    return self._view is not None


@method
def is_inference(self: Tensor) -> bool:
    """Was it made in inference mode?"""
    return self._extra is not None and self._extra.inference
