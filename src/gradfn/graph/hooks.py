"""Hooks: user functions that the engine calls as gradients pass."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from gradfn.tensor import Tensor

_ids = count()


class RemovableHandle:
    """Removes a hook: by `.remove()`, or at the end of a `with` block."""

    def __init__(self, hooks: dict[int, Any], extra_dict: Any = None) -> None:
        self.id = next(_ids)
        self._hooks: dict[int, Any] | None = hooks
        self._more = extra_dict

    def remove(self) -> None:
        """Takes the hook out; calling it again does nothing."""
        if self._hooks is not None:
            self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def add_hook(owner: Any, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
    """Registers `hook` in the dict `owner.<kind>`, made if it is None."""
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    hooks = getattr(owner, kind)
    if hooks is None:
        hooks = {}
        setattr(owner, kind, hooks)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def call_tensor_hooks(hooks: dict[int, Any], grad: Tensor | None) -> Tensor | None:
    """Passes a gradient through tensor hooks; each may answer with another.

    As in PyTorch they are told of a gradient that is undefined, as None.
    """
    for key, hook in list(hooks.items()):
        if key not in hooks:
            continue  # removed by an earlier hook of this round
        got = hook(grad)
        if got is not None:
            grad = checked(got, grad, hook)
    return grad


Grads = tuple[Tensor | None, ...]


def call_node_hooks(hooks: dict[int, Any], grads: Grads, *outs: Grads) -> Grads:
    """Passes a node's gradients through its hooks; each may answer with others."""
    for hook in list(hooks.values()):
        got = hook(grads, *outs)
        if got is not None:
            grads = _all_checked(got, grads, hook)
    return grads


def _all_checked(got: Any, grads: Grads, hook: Any) -> Grads:
    """What a node's hook returned, if it can stand for `grads`; else errors."""
    if not isinstance(got, tuple):
        raise TypeError(
            f"expected tuple, but hook returned '{type(got).__name__}': '{_name(hook)}' "
            "must return None or a tuple like its first argument"
        )
    if len(got) != len(grads):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got "
            f"{len(got)}, but expected {len(grads)})"
        )
    pairs = zip(got, grads, strict=True)
    return tuple(None if t is None else checked(t, g, hook) for t, g in pairs)


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def checked(got: Any, grad: Tensor | None, hook: Any) -> Tensor:
    """What a hook returned, if it can stand for `grad`; else RuntimeError/TypeError."""
    name = _name(hook)
    if grad is None:
        raise RuntimeError(
            f"can't replace a None gradient with a non-None value: hook '{name}' must return "
            "None where it is given None"
        )
    if not isinstance(got, Tensor):
        raise TypeError(
            f"expected Variable, but hook returned '{type(got).__name__}': '{name}' must "
            "return None or a Tensor"
        )
    if got._array.shape != grad._array.shape:
        raise RuntimeError(
            f"hook '{name}' has changed the size of value: it was given "
            f"{list(grad.shape)} and returned {list(got.shape)}"
        )
    if got._array.dtype != grad._array.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {grad.dtype}, got "
            f"{got.dtype}); cast it back before returning it"
        )
    return got
