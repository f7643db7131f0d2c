"""Saved-tensor hooks: what a node saves goes through the user's pack and unpack.

Note [Packed tensors]
    `pack` is given a saved tensor without history when the node is made; what it
    returns is kept in the tensor's place. `unpack` makes a tensor of it when the
    backward pass wants it, which then gets the history that the saved one had. No
    versions are compared: through the hooks they can't be followed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from gradfn._state import GRAD, SAVED_HOOKS, switch
from gradfn.graph.node import Node, target_of
from gradfn.tensor import Cell, Tensor, wrap

Hooks = tuple[Callable[..., Any], Callable[..., Any]]
HOOKS: ContextVar[tuple[Hooks, ...]] = ContextVar("saved_tensors_hooks", default=())
PASSED_ON = Cell(1)  # a version that was never saved: whoever reads must ask


class Packed:
    """Stands where a saved tensor would."""

    __slots__ = ("_cell", "packed", "target", "unpacker")

    def __init__(self, array: Any, target: Any, hooks: Hooks) -> None:
        self._cell = PASSED_ON
        self.target = target  # a node or leaf, or None
        self.unpacker = hooks[1]
        self.packed = call_pack(hooks[0], array)

    def unpack(self, node: Node) -> Tensor:
        """The tensor again, with its history."""
        with switch(off=GRAD):
            t = self.unpacker(self.packed)
        if not isinstance(t, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got "
                f"result of type {type(t).__name__}"
            )
        target = self.target
        if isinstance(target, Tensor):
            if target._array is t._array:
                return target
            with switch(on=GRAD, off=SAVED_HOOKS):
                target = target.view_as(target)._grad_fn
        out = wrap(t._array)
        out._grad_fn = target
        return out


def call_pack(pack: Callable[..., Any], array: Any) -> Any:
    """What the user's pack makes of an array; RuntimeError if it writes into it."""
    given = wrap(array)
    with switch(off=GRAD | SAVED_HOOKS):
        packed = pack(given)
    if given._cell is not None and given._cell.count:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided "
            "as input to pack hook can not be modified by in-place operations as this can "
            "lead to unexpected side-effects. Please open an issue if you need to perform "
            "in-place operations on the input to a pack hook."
        )
    return packed


def pack(t: Tensor) -> Packed:
    """A saved input, packed by the innermost hooks."""
    return Packed(t._array, target_of(t), HOOKS.get()[-1])


def pack_node(node: Any) -> None:
    """Packs everything that a new node has saved."""
    if hasattr(node, "_saved"):
        node._saved = tuple(_pack_kept(node, x) for x in node._saved)
        return
    op, hooks = node.op, HOOKS.get()[-1]
    for slot in op.saved:
        name = slot[1:]
        value = getattr(node, slot, None)
        if value is None:
            continue
        if name in op.takes:
            setattr(node, slot, pack(value))
        elif name == op.many:
            setattr(node, slot, [pack(t) for t in value])
        elif name == "result" or name in op.outputs:
            setattr(node, slot, Packed(value, None, hooks))
            node.cell = PASSED_ON


def _pack_kept(node: Any, x: Any) -> Any:
    """An entry of a custom Function's saved tensors."""
    if x is None or isinstance(x, Packed):
        return x
    if isinstance(x, Tensor):
        return pack(x)
    t = x.take(node)
    return Packed(
        t._array, t._grad_fn if x.tensor is None else target_of(t), HOOKS.get()[-1]
    )
