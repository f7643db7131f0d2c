"""Saved-tensor hooks: what a node saves goes through the user's pack and unpack.

Note [Packed tensors]
    `pack` is given a saved tensor when the node is made; what it returns is kept in the
    tensor's place. `unpack` makes a tensor of it when the backward pass wants it, which
    then gets the history that the saved one had. No versions are compared: through the
    hooks they can't be followed. Numbers that stand beside tensors are not packed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from gradfn._state import GRAD, SAVED_HOOKS, switch
from gradfn.graph.node import Node, node_extra, target_of
from gradfn.graph.saved import RELEASED, result_tensor
from gradfn.tensor import Cell, Tensor, wrap

Hooks = tuple[Callable[..., Any], Callable[..., Any]]
HOOKS: ContextVar[tuple[Hooks, ...]] = ContextVar("saved_tensors_hooks", default=())
PASSED_ON = Cell(1)  # a version that was never saved: whoever reads must ask


class Packed:
    """Stands where a saved tensor would."""

    __slots__ = ("_cell", "packed", "target", "unpacker")

    def __init__(self, t: Tensor, target: Any, hooks: Hooks) -> None:
        self._cell = PASSED_ON
        self.target = target  # a node or leaf, or None
        self.unpacker = hooks[1]
        self.packed = call_pack(hooks[0], t)

    def unpack(self, node: Node) -> Tensor:
        """The tensor again, with its history."""
        with switch(off=GRAD | SAVED_HOOKS):
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


def call_pack(pack: Callable[..., Any], t: Tensor) -> Any:
    """What the user's pack makes of a tensor; RuntimeError if it writes into it."""
    before = 0 if t._cell is None else t._cell.count
    with switch(off=GRAD | SAVED_HOOKS):
        packed = pack(t)
    if t._cell is not None and t._cell.count != before:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as "
            "input to pack hook can not be modified by in-place operations as this can lead "
            "to unexpected side-effects. Please open an issue if you need to perform "
            "in-place operations on the input to a pack hook."
        )
    return packed


def is_number(t: Tensor) -> bool:
    """Does the tensor stand for a Python number beside another tensor?"""
    return not t._array.ndim and not t._array.flags.writeable and t._grad_fn is None


def pack(t: Tensor, hooks: Hooks) -> Any:
    """A saved input, packed."""
    return t if is_number(t) else Packed(t, target_of(t), hooks)


def pack_result(node: Any, array: Any, hooks: Hooks) -> Packed:
    """A saved result, packed; the node itself is its history."""
    t = result_tensor(node, array) if array.dtype.kind in "fc" else wrap(array)
    return Packed(t, None, hooks)


def pack_node(node: Any) -> None:
    """Packs everything that a new node has saved, by the innermost hooks."""
    hooks = HOOKS.get()[-1]
    if hasattr(type(node), "_saved"):
        node._saved = tuple(_pack_kept(node, x, hooks) for x in node._saved)
        return
    op = node.op
    for slot in op.saved:
        pack_slot(node, slot[1:], hooks)


def pack_slot(node: Any, name: str, hooks: Hooks) -> None:
    """Packs what is saved under one name, if it is a tensor or several."""
    op = node.op
    value = _slot(node, name)
    if value is None:
        return
    if name in op.takes:
        packed = pack(value, hooks)
    elif name == op.many:
        packed = [pack(t, hooks) for t in value]
    elif name == "result" or name in op.outputs:
        packed = pack_result(node, value, hooks)
        node.cell = PASSED_ON
    else:
        return
    setattr(node, f"_{name}", packed)
    extra = node_extra(node)
    extra.packed = {**(extra.packed or {}), f"_{name}": packed}


def unpack_node(node: Any) -> None:
    """Unpacks all that a node has saved, before it runs: then no user's code will run
    in the Context of its kernels (Note [No RuntimeWarning])."""
    for slot, packed in node._extra.packed.items():
        if isinstance(packed, list):
            value: Any = [t.unpack(node) if isinstance(t, Packed) else t for t in packed]
        elif isinstance(packed, Packed):
            value = packed.unpack(node)
            if slot[1:] not in node.op.takes:
                value, node.cell = value._array, Cell()
        else:
            continue
        setattr(node, slot, value)


def pack_again(node: Any) -> None:
    """Undoes `unpack_node`, for another pass."""
    for slot, packed in node._extra.packed.items():
        setattr(node, slot, packed)
        if slot[1:] not in node.op.takes and isinstance(packed, Packed):
            node.cell = PASSED_ON


def _slot(node: Any, name: str) -> Any:
    """What is saved under a name; None if nothing is."""
    try:
        return object.__getattribute__(node, f"_{name}")
    except AttributeError:
        return None


def _pack_kept(node: Any, x: Any, hooks: Hooks) -> Any:
    """An entry of a custom Function's saved tensors."""
    if x is None or isinstance(x, Packed):
        return x
    if isinstance(x, Tensor):
        return pack(x, hooks)
    t = x.take(node)
    return Packed(t, t._grad_fn if x.tensor is None else target_of(t), hooks)


# -- what users see of it ----------------------------------------------------------------


class SavedTensor:
    """`grad_fn._raw_saved_self` and the like: one saved tensor of one node."""

    def __init__(self, node: Any, name: str) -> None:
        self._node, self._name = node, name

    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        """Packs this tensor at once. RuntimeError if it has hooks, or is freed."""
        value = _slot(self._node, self._name)
        if isinstance(value, Packed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been "
                "set. A saved tensor has one pair of hooks."
            )
        if value is RELEASED:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved "
                "intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad()."
            )
        pack_slot(self._node, self._name, (pack_hook, unpack_hook))


def saved_attribute(node: Any, name: str) -> Any:
    """What `grad_fn._saved_<argument>` is; AttributeError for other names."""
    kind, _, argument = name.partition("saved_")
    op = getattr(type(node), "op", None)
    known = op is not None and (
        f"_{argument}" in op.saved or argument in op.takes or argument == op.many
    )
    if kind not in ("_", "_raw_") or not known:
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")
    if kind == "_raw_":
        return SavedTensor(node, argument)
    from gradfn.ops.rare import saved_value

    return saved_value(node, argument, _slot(node, argument))
