"""torch.autograd.graph: the recorded graph, and what may be hooked into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from gradfn._state import MODE, SAVED_HOOKS
from gradfn.graph.edge import GradientEdge, get_gradient_edge
from gradfn.graph.hooks import RemovableHandle
from gradfn.graph.node import Node
from gradfn.graph.packing import HOOKS
from gradfn.ops.inplace import bump
from gradfn.tensor import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

_refusal: ContextVar[str | None] = ContextVar("no_saved_tensors_hooks", default=None)


class saved_tensors_hooks:
    """Sends what ops save in this block through `pack_hook` and `unpack_hook`.

    `pack_hook(tensor)` returns anything; `unpack_hook` makes a tensor of equal values
    from it, once for each use in a backward pass. TypeError if that is no tensor,
    RuntimeError if pack_hook writes into its argument.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        message = _refusal.get()
        if message is not None:
            raise RuntimeError(message)
        HOOKS.set((*HOOKS.get(), (self.pack_hook, self.unpack_hook)))
        MODE.set(MODE.get() | SAVED_HOOKS)

    def __exit__(self, *error: object) -> None:
        HOOKS.set(HOOKS.get()[:-1])
        if not HOOKS.get():
            MODE.set(MODE.get() & ~SAVED_HOOKS)


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors in CPU memory, where they are anyway: copies of them."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu") -> None:
        super().__init__(lambda t: t.clone(), lambda t: t)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Lets tensors that were saved in this block be overwritten in place.

    Backward then uses the values that they had: each is copied when it is saved. It must
    run in the block too (AssertionError); blocks cannot be nested (RuntimeError).
    """

    def __init__(self) -> None:
        super().__init__(lambda t: t.detach().clone(), self._unpack)
        self._running = False

    def _unpack(self, kept: Tensor) -> Tensor:
        if not self._running:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context "
                "in which the graph was originally recorded."
            )
        return kept

    def __enter__(self) -> None:
        if any(isinstance(_owner(pack), type(self)) for _, pack in HOOKS.get()):
            raise RuntimeError(
                "allow_mutation_on_saved_tensors contexts cannot be nested: leave the one "
                "before entering another"
            )
        super().__enter__()
        self._running = True

    def __exit__(self, *error: object) -> None:
        self._running = False
        super().__exit__(*error)


def _owner(hook: Any) -> Any:
    return getattr(hook, "__self__", None)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Any:
    """Has `saved_tensors_hooks` raise RuntimeError with this message in the block."""
    if HOOKS.get():
        raise RuntimeError(error_message)
    token = _refusal.set(error_message)
    try:
        yield
    finally:
        _refusal.reset(token)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Notes that the memory of a tensor (or of several) was written from outside."""
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        bump(t)


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[..., Any],
    *,
    mode: Literal["all", "any"] = "all",
) -> RemovableHandle:
    """Calls `fn` when the gradients of several tensors are known.

    With "all": once in each backward pass, when all that will come have come; it gets a
    list with a gradient or None for each tensor. With "any": at the first one, which it
    gets. Returns a handle that removes it.
    """
    from gradfn.graph.multi import all_hook, any_hook

    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    return (all_hook if mode == "all" else any_hook)(list(tensors), fn)
