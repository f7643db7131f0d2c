"""Node: one step of the recorded program, walked in reverse by the engine.

Note [Edges]
    An edge is a plain reference to where a gradient goes next: to a node, or to a leaf
    tensor itself. `node._needs` has a bit for each differentiable argument of the op,
    set for those that want a gradient; `node._next` holds just their edges: a single
    one bare, several in a tuple. A node has one output. Where an op has several, each
    output tensor has an `Output` node of its own, whose edge is the op's node; so the
    engine knows nothing of output numbers, and each gradient can be checked against
    one shape and dtype.

Note [No cycles]
    A tensor refers to its node, a node to earlier nodes, to leaves, and to the tensors
    it saved; an output that is saved goes in as its bare array and version counter
    (Note [Saved tensors] in saved.py). So no reference cycle is ever made, and a graph
    dies when its last result does. CPython unravels chains of a million nodes without
    deep recursion.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any, ClassVar

import numpy as np

from gradfn._state import quiet
from gradfn.graph.hooks import RemovableHandle, add_hook
from gradfn.tensor import LEAF, Tensor, extra_of

ticks = count(-1, -1)  # later nodes have smaller numbers: a heap pops them first
new = object.__new__


class NodeExtra:
    """What few nodes have: hooks, metadata, the place in the program (anomaly mode)."""

    __slots__ = (
        "metadata",
        "notes",
        "packed",
        "parent",
        "post_hooks",
        "pre_hooks",
        "retaining",
        "tangents",
        "tensor_hooks",
        "trace",
        "written",
    )

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, Any] | None = None
        self.retaining: weakref.ref[Tensor] | None = None  # tensor with retain_grad
        self.pre_hooks: dict[int, Any] | None = None
        self.post_hooks: dict[int, Any] | None = None
        self.metadata: dict[Any, Any] | None = None
        self.packed: dict[str, Any] | None = None  # slots that saved-tensor hooks hold
        self.trace: list[str] | None = None
        self.notes: Any = None  # what an observer wrote down here
        self.written: Any = (
            None  # (weak CopySlices, chain) if its result went into a view
        )
        self.parent: Node | None = None
        self.tangents: dict[int, Any] | None = None  # of saved outputs


class Node:
    """A recorded operation. `tensor.grad_fn` is one.

    `_raw(g, needs)` maps the output's gradient, an ndarray, to those of the arguments
    in `needs`: a bare one if there is one edge, else a sequence. `_recorded` does the
    same for tensors, and is itself recorded.
    """

    __slots__ = (
        "__weakref__",
        "_extra",  # None or NodeExtra
        "_needs",
        "_next",
        "_out_dtype",  # of the output, NumPy's
        "_out_shape",  # of the output
        "_seq",
        "_versions",  # None, or the versions of saved tensors that are not 0
    )
    _arity: ClassVar[int] = 1  # how many differentiable arguments the op has
    _output_nodes: Any = ()  # weak references to the Output nodes, if it has several
    _takes_none = False  # does it want to run without any gradient?
    _out_dtype: Any
    _extra: NodeExtra | None
    _needs: int
    _next: Any
    _seq: int
    _out_shape: Any
    _versions: dict[str, int] | None

    def _raw(self, g: Any, needs: int) -> Any:
        """Gradients of the arguments in `needs`, as ndarrays."""
        raise NotImplementedError

    def _recorded(self, g: Any, needs: int) -> Any:
        """The same on tensors, recording."""
        raise NotImplementedError

    def _release(self) -> None:
        """Lets go of what was saved; a second walk then says so."""

    def _argument(self, place: int) -> Any:
        """Which argument of the op the gradient number `place` is of."""
        bits = [i for i in range(self._needs.bit_length()) if self._needs >> i & 1]
        return bits[place]

    # -- torch.autograd.graph.Node ---------------------------------------------------

    def name(self) -> str:
        """The name of the op, such as 'MulBackward0'."""
        return self._name()

    def _name(self) -> str:
        return type(self).__name__  # users may keep a name of their own on ctx

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """(node, output number) for each differentiable argument; (None, 0) if none."""
        edges = iter(edges_of(self))
        return tuple(
            public_edge(next(edges)) if self._needs >> i & 1 else (None, 0)
            for i in range(max(self._arity, self._needs.bit_length()))
        )

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the user's notes about this node."""
        extra = node_extra(self)
        if extra.metadata is None:
            extra.metadata = {}
        return extra.metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(grad_inputs, grad_outputs)` after the node has run.

        A tuple that it returns takes the place of grad_inputs.
        """
        return add_hook(node_extra(self), "post_hooks", hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(grad_outputs)` before the node runs; it may return others."""
        return add_hook(node_extra(self), "pre_hooks", hook)

    def _sequence_nr(self) -> int:
        return -1 - self._seq

    def __getattr__(self, name: str) -> Any:
        from gradfn.graph.packing import saved_attribute

        return saved_attribute(self, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    def _hooked(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the outputs as pre-hooks see them."""
        return grads

    _unhooked = _hooked

    def __call__(self, *grads: Any) -> Any:
        """The node's backward, applied to gradients by hand. TypeError for a wrong number."""
        if len(grads) != 1:
            raise TypeError(f"expected 1 arguments, got {len(grads)} instead")
        got = self._recorded(grads[0], self._needs)
        edges = edges_of(self)
        return got if len(edges) == 1 else tuple(got)


class Parts:
    """Gradients of a node with several outputs, gathered from its Output nodes.

    Looks like a gradient to the engine: equal metadata (None), and it can be added.
    """

    __slots__ = ("grads",)
    shape = dtype = None

    def __init__(self, grads: list[Any]) -> None:
        self.grads = grads

    def __add__(self, other: Parts) -> Parts:
        pairs = zip(self.grads, other.grads, strict=True)
        return Parts([_sum(a, b) for a, b in pairs])


def _sum(a: Any, b: Any) -> Any:
    """The sum of two gradients of one output, each of which may be missing."""
    if a is None or b is None:
        return b if a is None else a
    return a + b if isinstance(a, Tensor) else np.asarray(quiet(np.add, a, b))


class Output(Node):
    """Output number `index` of `next`, a node with `count` outputs."""

    __slots__ = ("count", "index")
    index: int
    count: int

    def _raw(self, g: Any, needs: int) -> Parts:
        """Puts the gradient at its place among the outputs'."""
        grads = [None] * self.count
        grads[self.index] = g
        return Parts(grads)

    _recorded = _raw

    def _name(self) -> str:
        """The name of the op."""
        return str(self._next._name())


def output_of(node: Node, index: int, count: int, array: Any) -> Output:
    """The Output node for one result `array` of `node`."""
    out = new(Output)
    out._seq = next(ticks)
    out._extra = out._versions = None
    out._needs, out._next = 1, node
    out._out_shape, out._out_dtype = array.shape, array.dtype
    out.index, out.count = index, count
    return out


class AccumulateGrad(Node):
    """What `next_functions` shows for a leaf. The engine goes to the leaf itself."""

    __slots__ = ("variable",)
    variable: Tensor
    next_functions = ()

    def _name(self) -> str:
        """PyTorch's name."""
        return "torch::autograd::AccumulateGrad"

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook((), grad_outputs)` after the gradient was added to .grad."""
        self.stay()
        return super().register_hook(hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(grad_outputs)` before that; it may return others."""
        self.stay()
        return super().register_prehook(hook)

    def stay(self) -> None:
        """Lives as long as the leaf, to which the engine goes and not to this."""
        extra_of(self.variable).accumulator = lambda: self

    def __call__(self, *grads: Any) -> Any:
        """Adds a gradient to the leaf's .grad."""
        from gradfn.graph.gradient import accumulate_array

        accumulate_array(self.variable, grads[0]._array.copy(), 0)


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The AccumulateGrad of `leaf`: one object as long as somebody holds it."""
    extra = extra_of(leaf)
    node = extra.accumulator and extra.accumulator()
    if node is None:
        node = new(AccumulateGrad)
        node._seq, node._extra, node._versions = -sys.maxsize, None, None
        node._needs, node._next = 0, ()
        node._out_shape, node._out_dtype = leaf._array.shape, leaf._array.dtype
        node.variable = leaf
        extra.accumulator = weakref.ref(node)
    return node  # type: ignore[no-any-return]


def move_retained(t: Tensor, node: Node | None) -> None:
    """`t` gets another history: what retain_grad wants of the old one it wants of that.

    Without a node, that of a view that is still to be replayed is looked up later.
    """
    if t._extra is None or not t._extra.retains_grad:
        return
    old = t._grad_fn
    if isinstance(old, Node) and old._extra is not None:
        old._extra.retaining = None
    if node is not None:
        node_extra(node).retaining = weakref.ref(t)


def node_extra(node: Node) -> NodeExtra:
    """The rare properties of `node`; made now if it had none."""
    if node._extra is None:
        node._extra = NodeExtra()
    return node._extra


def form_of(target: Any) -> tuple[Any, Any]:
    """The shape and dtype that gradients for a node or a leaf must have."""
    if isinstance(target, Tensor):
        return target._array.shape, target._array.dtype
    return target._out_shape, target._out_dtype


def edges_of(node: Node) -> tuple[Any, ...]:
    """The edges of `node`, always as a tuple."""
    return node._next if type(node._next) is tuple else (node._next,)


def public_edge(target: Any) -> tuple[Node, int]:
    """(grad_fn, output number) for an edge, as PyTorch shows it."""
    if isinstance(target, Output):
        return target._next, target.index
    return (target, 0) if isinstance(target, Node) else (accumulator(target), 0)


def target_of(t: Tensor) -> Any:
    """Where a gradient for `t` goes: a node, the leaf itself, or None."""
    from gradfn.graph.view import edge

    e = edge(t)
    return t if e is LEAF else e
