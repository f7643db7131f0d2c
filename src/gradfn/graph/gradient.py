"""Gradients as they travel: made to fit, handed to users, added to leaves.

Note [Who may write into a gradient]
    The arrays that travel are shared: `add` hands the same one to both sides. The
    engine writes into an array, or lets `.grad` or a user keep it, only if nobody else
    holds it. That is decided by counting references, as PyTorch does, against counts
    taken when this module is loaded (they differ between Python versions). A user who
    gets an array that others hold gets it read-only, and a tensor over a read-only
    array takes a copy before it is written (`ops.inplace.own`).
"""

from __future__ import annotations

import threading
from sys import getrefcount
from typing import Any

import numpy as np

from gradfn._state import GRAD, mode, quiet
from gradfn.graph.node import Parts
from gradfn.tensor import Tensor, extra_of, ndarray, new, wrap

leaf_lock = threading.RLock()


def references(array: Any) -> int:
    """The reference count of `array`, seen from one call below."""
    return getrefcount(array)


def _held_by_caller() -> int:
    array = np.empty(0)
    return references(array)


def _held_by_dict() -> int:
    pending = {0: np.empty(0)}
    have = pending.get(0)
    return getrefcount(have)


# How many references there are to an array that one function holds, which asks another
# one; and to one that stands in a dict from which it was taken.
IN_ONE, IN_DICT = _held_by_caller(), _held_by_dict()


def hand_out(array: Any, callers: int = 2) -> Tensor:
    """A tensor around a gradient, safe to give to a user (Note [Who may write …]).

    `callers`: how many functions on the stack hold the array, this one not counted.
    """
    if type(array) is not ndarray:
        return wrap(np.asarray(array))
    base = array.base
    if base is None:
        if references(array) <= IN_ONE + callers:
            return wrap(array)
    elif 0 in array.strides and array.size > 1:
        return wrap(array.copy())
    shared = array.view()
    shared.flags.writeable = False
    return wrap(shared)


def own_tensor(grad: Any) -> Tensor:
    """A tensor for a user to keep: around the array if nobody else holds it."""
    array = np.asarray(grad)
    del grad
    if array.base is None and references(array) <= IN_ONE + 2 and array.flags.writeable:
        return wrap(array)
    return wrap(array.copy())


def accumulate_array(leaf: Tensor, grad: Any, callers: int) -> None:
    """Adds an array to .grad, in place if there is one; runs post-accumulate hooks.

    If `grad` is None there are only the hooks. `callers`: as in hand_out.
    """
    if grad is None:
        return call_post_hooks(leaf)
    extra = leaf._extra
    if extra is None:
        extra = extra_of(leaf)
    with leaf_lock:
        have = extra.grad
        if have is None:
            if not (
                references(grad) <= IN_ONE + callers
                and grad.base is None
                and grad.flags.writeable
            ):
                grad = grad.copy()
            have = extra.grad = new(Tensor)
            have._array = grad
            have._grad_fn = have._cell = have._view = have._extra = None
        elif have._grad_fn is None and _can_be_added_to(have._array):
            quiet(np.add, have._array, grad, have._array)
            if have._cell is not None:
                have._cell.count += 1
        else:
            extra.grad = wrap(quiet(np.add, have._array, grad))
    if extra.post_hooks:
        call_post_hooks(leaf)


def _can_be_added_to(array: Any) -> bool:
    """May it be written, and has each element a place of its own (no expanded dim)?"""
    flags = array.flags
    return flags.writeable and (flags.forc or 0 not in array.strides)


def accumulate_tensor(leaf: Tensor, grad: Tensor, callers: int) -> None:
    """The same for a tensor, recorded."""
    if grad is None:
        return call_post_hooks(leaf)
    extra = extra_of(leaf)
    with leaf_lock:
        have = extra.grad
        extra.grad = grad.clone() if have is None else have + grad
    call_post_hooks(leaf)


def retain(t: Tensor, grad: Tensor) -> None:
    """Puts a copy of the gradient into .grad of a tensor with retain_grad."""
    extra = extra_of(t)
    have = extra.grad
    fresh = grad.clone() if mode() & GRAD else wrap(grad._array.copy())
    extra.grad = fresh if have is None else have + fresh


def call_post_hooks(leaf: Tensor) -> None:
    """Calls the post-accumulate-grad hooks of a leaf."""
    hooks = leaf._extra.post_hooks if leaf._extra is not None else None
    for hook in list(hooks.values()) if hooks else ():
        if hook(leaf) is not None:
            raise RuntimeError(
                "Tensor post accumulate grad hooks should return None; change .grad in "
                "the hook instead of returning something"
            )


# -- shape and dtype ------------------------------------------------------------------


def summed_dims(shape: Any, wanted: Any) -> tuple[int, ...] | None:
    """The dims to sum so that `shape` becomes `wanted`; None if that can't be."""
    extra = len(shape) - len(wanted)
    if shape[extra:] == wanted:
        return tuple(range(extra)) if extra > 0 else None
    if extra < 0:
        return None
    for have, want in zip(shape[extra:], wanted, strict=True):
        if have != want and want != 1:
            return None
    return (
        *range(extra),
        *(i + extra for i, n in enumerate(wanted) if n == 1 != shape[i + extra]),
    )


def fit_array(grad: Any, shape: Any, dtype: Any, source: Any, grads: Any) -> Any:
    """`grad` summed down to `shape`, then cast; complex to real keeps the real part.

    RuntimeError if it can't be: it is one of `grads`, which the node `source` gave.
    """
    if type(grad) is Parts:
        return grad
    if grad.shape != shape:
        grad = summed(grad, shape, source, grads)
    if grad.dtype != dtype:
        if grad.dtype.kind == "c" and dtype.kind != "c":
            grad = grad.real
        grad = grad.astype(dtype, copy=False)
    return np.asarray(grad)


def summed(grad: Any, shape: Any, source: Any, grads: Any) -> Any:
    """`grad` summed over the dims that broadcasting added."""
    dims = summed_dims(grad.shape, shape)
    if dims is None:
        place = next(i for i, x in enumerate(grads) if x is grad)
        at = source._argument(place) if source is not None else place
        raise RuntimeError(
            f"Function {source._name() if source is not None else 'root'} returned an "
            f"invalid gradient at index {at} - got {list(grad.shape)} but expected shape "
            f"compatible with {list(shape)}"
        )
    if isinstance(grad, Tensor):
        return grad.sum(dims).reshape(shape)
    return np.add.reduce(grad, dims).reshape(shape)


def fit_tensor(grad: Any, shape: Any, dtype: Any, source: Any, grads: Any) -> Any:
    """fit_array for tensors, recorded."""
    if type(grad) is Parts:
        return grad
    if grad._array.shape != shape:
        grad = summed(grad, shape, source, grads)
    if grad._array.dtype != dtype:
        if grad._array.dtype.kind == "c" and dtype.kind != "c":
            grad = grad.real
        grad = grad._to_copy(dtype)
    return grad
