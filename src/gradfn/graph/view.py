"""Views and in-place writes: who must learn of what.

Note [Views and in-place]
    A view remembers its base and how to get there: a chain of view ops with their
    arguments. It shares the base's memory and its version counter.
    Writing into the base, or into any view of it, changes all of them. The base's
    history then becomes the writing op's; if a view was written, it becomes CopySlices,
    which replays the chain on the base's gradient, passes the slice through the op, and
    puts the result back. The other views' nodes are out of date from that moment: each
    notices when it is next used (`edge`), because its `View.version` lags behind the
    version counter, and replays its chain on the base to get a new node.
"""

from __future__ import annotations

import re
import weakref
from typing import Any, Final

import numpy as np

from gradfn._state import GRAD, INFERENCE, mode, switch
from gradfn.graph.node import (
    Node,
    Output,
    edges_of,
    move_retained,
    new,
    node_extra,
    ticks,
)
from gradfn.graph.saved import RELEASED
from gradfn.tensor import LEAF, UNTRACKED, Tensor, cell_of, extra_of, wrap

# How a view was made. Of the steps of a view of views the newest that is not plain counts,
# but inference mode is never forgotten.
PLAIN, NO_GRAD, INFERENCE_MODE, FUNCTION, MULTI = range(5)


class View:
    """How a tensor came from its base."""

    __slots__ = ("base", "chain", "made", "version")

    def __init__(self, base: Tensor, chain: Any, made: int, version: int) -> None:
        self.base = base
        self.chain = chain  # ((op, arguments after self), …)
        self.made = made
        self.version = version  # of the memory, when the view's node was made


def mark_view(out: Tensor, source: Tensor, op: Any, args: Any, made: int = -1) -> None:
    """Makes `out` known as `op(source, *args)`, a view.

    One that is made while nothing is recorded is a leaf that requires grad if its
    source does, as in PyTorch.
    """
    cell = out._cell = cell_of(source)
    if cell is UNTRACKED:
        extra_of(out).inference = True
        return
    flags = mode()
    if not flags & GRAD:
        made = INFERENCE_MODE if flags & INFERENCE else NO_GRAD
        if source._grad_fn is not None:
            out._grad_fn = LEAF
    parent = source._view
    if parent is None:
        out._view = View(source, ((op, args),), max(made, PLAIN), cell.count)
    else:
        chain = (*parent.chain, (op, args))
        if made <= PLAIN or parent.made == INFERENCE_MODE:
            made = parent.made
        out._view = View(parent.base, chain, made, cell.count)


def edge(t: Tensor) -> Any:
    """`t._grad_fn`, brought up to date if `t` is a view whose base was written."""
    view = t._view
    if view is not None and view.version != t._cell.count:  # type: ignore[union-attr]
        regenerate(t, view)
    return t._grad_fn


def regenerate(t: Tensor, view: View) -> None:
    """Gives a view the node that it would have if it were made from its base now."""
    base = view.base._grad_fn
    if view.made != PLAIN and (base is not None or t._grad_fn is not None):
        raise RuntimeError(
            refusal(
                view.made, t._grad_fn, "its base or another view of its base has been"
            )
        )
    view.version = cell_of(t).count
    if base is None:
        return
    with switch(on=GRAD):
        t._grad_fn = replay(view.base, view.chain)._grad_fn
    move_retained(t, t._grad_fn)


def replay(base: Any, chain: Any) -> Any:
    """The chain of view ops applied to another tensor."""
    for op, args in chain:
        base = op.function(base, *args)
    return base


def replay_raw(array: Any, chain: Any) -> Any:
    """The chain of view ops applied to an array; a view of it."""
    for op, args in chain:
        array = op.kernel(array, *args)
    return array


_WHY: Final[dict[int, str]] = {
    NO_GRAD: "Given that this use case is ambiguous and error-prone, it is forbidden. You "
    "can clarify your code by moving both the view and the inplace either both inside the "
    "no_grad block (if you don't want the inplace to be tracked) or both outside (if you "
    "want the inplace to be tracked).",
    INFERENCE_MODE: "Make the view outside of inference mode, or write to a clone.",
    MULTI: "This view is the output of a function that returns multiple views. Such "
    "functions do not allow the output views to be modified inplace. You should replace the "
    "inplace operation by an out-of-place one.",
    FUNCTION: "This view was created inside a custom Function (or because an input was "
    "returned as-is) and the autograd logic to handle view+inplace would override the custom "
    "backward associated with the custom Function, leading to incorrect gradients. This "
    "behavior is forbidden. You can fix this by cloning the output of the custom Function.",
}


def refusal(made: int, e: Any, what: str) -> str:
    """Why the write is refused: `what` has been or is being modified."""
    known = isinstance(e, Node)
    if made in (NO_GRAD, INFERENCE_MODE) or not known:
        which = (
            f"{_described(e)} is a view of a view which was" if known else "A view was"
        )
        if made == INFERENCE_MODE:
            how = f"in inference mode and {what} modified inplace in normal mode"
        else:
            how = f"in no_grad mode and {what} modified inplace with grad mode enabled"
        return f"{which} created {how}. {_WHY[made]}"
    return f"{_described(e)} is a view and {what} modified inplace. {_WHY[made]}"


def _described(e: Any) -> str:
    """Which output of which op a view is, for an error."""
    name = re.sub(r"Backward\d*$", "", e._name())
    return f"Output {e.index if isinstance(e, Output) else 0} of {name}"


def check_inplace(t: Tensor, *others: Any, used: str = "is being") -> None:
    """Raises RuntimeError where writing into `t` would spoil its history.

    Only matters in grad mode and if `t` or one of `others` requires grad.
    """
    if not mode() & GRAD:
        return
    view = t._view
    base = None if view is None else view.base._grad_fn
    if t._grad_fn is base is None and all(
        o is None or o._grad_fn is None for o in others
    ):
        return
    if view is not None and view.made != PLAIN:
        raise RuntimeError(refusal(view.made, t._grad_fn, "is being"))
    own = edge(t)
    if own is LEAF:
        raise RuntimeError(
            f"a leaf Variable that requires grad {used} used in an in-place operation."
            " Write under torch.no_grad(), or to a copy (x.clone())."
        )
    if view is not None and view.base._grad_fn is LEAF:
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place "
            "operation. Write under torch.no_grad(), or to a view of a copy."
        )


def rebase(t: Tensor, node: Node, own: int = 1) -> None:
    """Makes `node`, which wrote into `t`, the history of `t` and of its base.

    `own` is the bit in `node._needs` that stands for `t` as it was before.
    """
    view = t._view
    if view is None:
        move_retained(t, node)
        t._grad_fn = node
        return
    base = view.base
    slices = copy_slices(base, view.chain, node, own)
    node_extra(node).written = weakref.ref(slices), view.chain
    move_retained(base, slices)
    base._grad_fn = slices
    view.version = -1  # replayed when it is next used
    move_retained(t, None)


class CopySlices(Node):
    """History of a base into which `fn` wrote through a view."""

    __slots__ = ("_takes_none", "chain", "fn", "own", "strides")
    _takes_none: bool  # does `fn` run a user's code?
    own: int
    fn: Node
    chain: Any
    strides: Any

    def _raw(self, g: Any, needs: int) -> Any:
        """The base's gradient without the slice, and what `fn` gives the others."""
        if g is None:
            return (None,) * needs.bit_count() if needs & (needs - 1) else None
        grad = laid_out(g, self.strides)
        part = replay_raw(grad, self.chain)
        own, others = self._apply(self.fn._raw, part.copy())
        part[...] = 0 if own is None else own
        return _some(grad, others, needs)

    def _recorded(self, g: Any, needs: int) -> Any:
        """The same on tensors."""
        grad = g.clone()
        grad._array = laid_out(grad._array, self.strides)  # the views need it so
        part = replay(grad, self.chain)
        own, others = self._apply(self.fn._recorded, part.clone())
        part.zero_() if own is None else part.copy_(own)
        return _some(grad, others, needs)

    def _name(self) -> str:
        """PyTorch's name."""
        return "torch::autograd::CopySlices"

    def _apply(self, run: Any, part: Any) -> tuple[Any, list[Any]]:
        fn = self.fn
        if not fn._needs:
            return None, []
        got = run(part, fn._needs)
        return split_own(list(got) if type(fn._next) is tuple else [got], fn, self.own)

    def _release(self) -> None:
        """Lets go of what `fn` saved."""
        if self.fn is not RELEASED:
            self.fn._release()
            self.fn = RELEASED


def _some(grad: Any, others: list[Any], needs: int) -> Any:
    wanted = [g for i, g in enumerate(others, 1) if needs >> i & 1]
    grads = [grad, *wanted] if needs & 1 else wanted
    return grads if len(grads) > 1 else grads[0]


def split_own(items: list[Any], fn: Node, own: int) -> tuple[Any, list[Any]]:
    """What stands for the written argument (None if nothing does), and the others."""
    if not fn._needs & own:
        return None, items
    at = (fn._needs & own - 1).bit_count()
    return items[at], items[:at] + items[at + 1 :]


def copy_slices(base: Tensor, chain: Any, fn: Node, own: int) -> CopySlices:
    """The node for `fn` having written into the view `chain` of `base`."""
    node = new(CopySlices)
    node._seq, node._extra, node._versions = next(ticks), None, None
    node._out_shape, node._out_dtype = base._array.shape, base._array.dtype
    node.fn, node.chain, node.own = fn, chain, own
    node.strides, node._takes_none = base._array.strides, fn._takes_none
    edges = list(edges_of(fn)) if fn._needs else []
    others = split_own(edges, fn, own)[1]
    node._needs = ((1 << len(others)) - 1) << 1
    if base._grad_fn is not None:
        node._needs |= 1
        others.insert(0, base if base._grad_fn is LEAF else base._grad_fn)
    node._next = others[0] if len(others) == 1 else tuple(others)
    return node


def history_of_written(node: Node) -> Any:
    """The history that the result of `node` has, which was written into a view: that of
    the view after the write."""
    slices, chain = node_extra(node).written
    slices = slices()
    order = sorted(range(len(slices._out_shape)), key=lambda d: -abs(slices.strides[d]))
    back = sorted(range(len(order)), key=order.__getitem__)
    memory = np.empty([slices._out_shape[d] for d in order], slices._out_dtype).transpose(
        back
    )
    base = wrap(memory)  # only its shape and strides matter
    base._grad_fn = slices
    with switch(on=GRAD):
        return replay(base, chain)._grad_fn


def laid_out(g: Any, strides: tuple[int, ...]) -> Any:
    """A copy of `g` whose memory is ordered as `strides` say."""
    order = sorted(range(g.ndim), key=lambda d: -abs(strides[d]))
    back = sorted(range(g.ndim), key=order.__getitem__)
    if type(g) is not np.ndarray:
        return g.laid_out(order, back)
    return g.transpose(order).copy().transpose(back)
