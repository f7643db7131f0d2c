"""The engine: walks the graph back and brings gradients where they belong.

Note [Engine]
    A run first counts, for each node, the edges that lead to it (`count`). A node is
    ready when a gradient, or word that there is none, has come over each of them;
    ready nodes wait in a heap and the one recorded last goes first, as in PyTorch. A leaf
    that is ready is served at once. Nothing recurses, so depth is not limited.
    Gradients wait in `pending`, one for each node; two are added when they meet.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextvars import copy_context
from heapq import heappop, heappush
from sys import getrefcount
from typing import Any

import numpy as np

from gradfn._state import (
    ANOMALY,
    GRAD,
    MODE,
    OBSERVED,
    TRANSFORMS,
    mode,
    quiet,
    recover,
    reset_mode,
    run,
    set_mode,
    trouble,
)
from gradfn.graph.gradient import (
    IN_DICT,
    accumulate_array,
    accumulate_tensor,
    fit_array,
    fit_tensor,
    hand_out,
    own_tensor,
    retain,
)
from gradfn.graph.hooks import call_node_hooks, call_tensor_hooks
from gradfn.graph.node import Node, Parts, edges_of, form_of
from gradfn.graph.packing import pack_again, unpack_node
from gradfn.tensor import Tensor, ndarray

here = threading.local()  # .run: the innermost run on this thread
add: Any = np.add


class Run:
    """One backward pass, in which gradients are ndarrays."""

    captures: dict[Any, Any] | None = None  # {node or leaf: its gradient}, if asked for
    into_grad = True  # do leaves accumulate?
    plan: dict[Any, Any] | None = None  # {node: (needs, edges)} if the walk is partial
    level = 0  # how many runs this one is nested in
    callbacks: Any = ()  # to be called at the end
    nested = 50  # deeper ones go to a thread with a stack of its own
    reached: set[Any]  # all nodes and leaves
    shared: dict[Any, int]  # of several edges: over how many nothing has come yet
    pending: dict[Any, Any]  # gradients that have come
    heap: list[tuple[int, Node]]  # ready nodes
    leaves: list[Tensor]  # ready leaves

    def __init__(self, keep: bool) -> None:
        self.keep = keep  # retain_graph

    # -- what differs when the pass is recorded --------------------------------------

    accumulate = staticmethod(accumulate_array)

    def seed(self, grad: Tensor) -> Any:
        """A root's gradient in the form that travels."""
        return grad._array

    def apply(self, node: Any, g: Any, needs: int) -> Any:
        """The node's gradients for its arguments; `walk` does the same in place."""
        if node._takes_none:
            return node._raw(g, needs)
        return nothing(needs) if g is None else quiet(node._raw, g, needs)

    def fit(self, shape: Any, dtype: Any, grad: Any, source: Any, grads: Any) -> Any:
        """A gradient, one of `grads` that `source` gave, in the shape and dtype it goes to."""
        return fit_array(grad, shape, dtype, source, grads)

    def add(self, have: Any, grad: Any) -> Any:
        """The sum; `walk` does it in place where the engine alone holds `have`."""
        return have + grad if type(have) is Parts else np.asarray(quiet(add, have, grad))

    def as_tensor(self, grad: Any, callers: int = 2) -> Tensor:
        """A gradient as a hook sees it."""
        return hand_out(grad, callers)

    def from_tensor(self, grad: Tensor) -> Any:
        """A hook's answer in the form that travels."""
        return grad._array

    def captured(self, grad: Any) -> Any:
        """A gradient as `autograd.grad` returns it."""
        if grad is None or type(grad) is Parts:
            return None
        return own_tensor(grad)

    # -- the walk --------------------------------------------------------------------

    def go(self, roots: Sequence[Any], grads: Sequence[Tensor]) -> None:
        """Sends the roots' gradients back through the graph."""
        if not roots:
            return
        self.roots = roots
        if self.captures is None:
            if len(roots) == 1 and isinstance(roots[0], Node):
                self.from_node(roots[0], self.seed(grads[0]))
                return
            self.count(roots)
        else:
            self.make_plan(roots)
        for root, grad in zip(roots, grads, strict=True):
            if root in self.reached:
                self.begin(root, self.seed(grad))
        del grad, grads
        self.walk(None, None)

    def from_node(self, node: Any, g: Any) -> None:
        """The whole pass if one node is the root."""
        node, g = self.straight(node, g)
        if node is not None:
            self.count(edges_of(node))
            self.walk(node, g)

    def straight(self, node: Any, g: Any) -> tuple[Any, Any]:
        """Runs nodes up to the first with several edges; returns that and its gradient.

        Note [The straight path]: as long as each node has one edge, nothing else can
        lead to the next one, so it is run at once, without counting. That is most of
        a small graph, and all of a chain.
        """
        keep = self.keep
        while type(node._next) is not tuple:
            if node._extra is not None:
                g = self.before(node, g)
            if node._takes_none:
                grad = node._raw(g, node._needs)
            elif g is not None:
                try:
                    grad = run(node._raw, g, node._needs)
                except RuntimeError as error:
                    grad = recover(error, node._raw, g, node._needs)
            else:
                grad = None
            if node._extra is not None:
                grad = self.after(node, grad, g, node._needs)
            if not keep:
                node._release()
            g, target = None, node._next
            if isinstance(target, Tensor):
                at = target._array
                if grad is not None and (
                    grad.shape != at.shape or grad.dtype is not at.dtype
                ):
                    grad = self.fit(at.shape, at.dtype, grad, node, (grad,))
                self.arrive(target, grad, 2)
                return None, None
            if grad is not None and (
                grad.shape != target._out_shape or grad.dtype is not target._out_dtype
            ):
                grad = self.fit(*form_of(target), grad, node, (grad,))
            node, g = target, grad
            grad = None  # so that `g` is the one reference: see hand_out
        return node, g

    def count(self, targets: Sequence[Any]) -> None:
        """Counts the edges to each node and leaf that can be reached from `targets` on."""
        reached: set[Any] = set()
        shared: dict[Any, int] = {}
        self.reached, self.shared = reached, shared
        self.pending, self.heap, self.leaves = {}, [], []
        stack = [tuple(targets)]
        while stack:
            edges = stack.pop()
            for target in edges if type(edges) is tuple else (edges,):
                if target in reached:
                    shared[target] = shared.get(target, 1) + 1
                else:
                    reached.add(target)
                    if not isinstance(target, Tensor):
                        stack.append(target._next)

    def reaches(self, target: Any) -> bool:
        """Will this run bring a gradient, or word that there is none, to `target`?"""
        seen: set[Any] = set()
        stack = list(self.roots)
        while stack:
            at = stack.pop()
            if at is target:
                return True
            if isinstance(at, Node) and at not in seen:
                seen.add(at)
                stack += edges_of(at)
        return False

    def make_plan(self, roots: Sequence[Any]) -> None:
        """Restricts the walk to the nodes from which a captured one can be reached."""
        captures = self.captures
        assert captures is not None
        self.pending, self.heap, self.leaves = {}, [], []
        plan: dict[Any, Any] = {}
        nodes = _nodes_towards(captures, roots)
        for node in sorted(nodes, key=lambda n: n._seq, reverse=True):
            chosen = partial_edges(node, captures, plan)
            if chosen[0]:
                plan[node] = chosen
        self.plan = plan
        reached: set[Any] = set()
        shared: dict[Any, int] = {}
        for target in _edges_along(roots, plan):
            if target in reached:
                shared[target] = shared.get(target, 1) + 1
            elif target in plan or target in captures:
                reached.add(target)
        self.reached, self.shared = reached, shared

    def begin(self, root: Any, grad: Any) -> None:
        """Brings a gradient to a root."""
        shape, dtype = form_of(root)
        if grad.shape != shape or grad.dtype is not dtype:
            grad = self.fit(shape, dtype, grad, None, (grad,))
        have = self.pending.pop(root, None)
        self.pending[root] = grad if have is None else self.add(have, grad)
        left = self.shared.get(root, 1) - 1
        self.shared[root] = left
        if left:
            return
        if not isinstance(root, Tensor):
            heappush(self.heap, (root._seq, root))
        else:
            self.leaves.append(root)

    def walk(self, node: Any, g: Any) -> None:
        """Runs `node`, if one is given, with gradient `g`, and all that gets ready."""
        heap, pending, shared = self.heap, self.pending, self.shared
        plan, leaves = self.plan, self.leaves
        release, plain = not self.keep, type(self) is Run
        while True:
            if leaves:
                self.serve_leaves()
            if node is None:
                if not heap:
                    return
                node = heappop(heap)[1]
                g = pending.pop(node, None)
            needs, edges = node._needs, node._next
            if plan is not None:
                if not self.capture(node, g):
                    node = g = None
                    continue
                needs, edges = plan[node]
            if node._extra is not None:
                g = self.before(node, g)
            if not plain:
                grads = self.apply(node, g, needs)
            elif node._takes_none:
                grads = node._raw(g, needs)
            elif g is not None:
                try:
                    grads = run(node._raw, g, needs)
                except RuntimeError as error:
                    grads = recover(error, node._raw, g, needs)
            else:
                grads = nothing(needs)
            if node._extra is not None:
                grads = self.after(node, grads, g, needs)
            if release:
                node._release()
            source, node, g = node, None, None
            if type(edges) is not tuple:
                edges, grads = (edges,), (grads,)
            for target, grad in zip(edges, grads):
                leaf = type(target) is Tensor or isinstance(target, Tensor)
                if grad is not None:
                    shape = target._array.shape if leaf else target._out_shape
                    dtype = target._array.dtype if leaf else target._out_dtype
                    if grad.shape != shape or grad.dtype is not dtype:
                        grad = self.fit(shape, dtype, grad, source, grads)
                left = shared.get(target)
                if left is not None:
                    shared[target] = left = left - 1
                    have = pending.get(target)
                    if have is None or grad is None:
                        pending[target] = grad if have is None else have
                    elif (
                        plain
                        and getrefcount(have) == IN_DICT
                        and type(have) is ndarray
                        and have.base is None
                    ):
                        quiet(add, have, grad, have)
                    else:
                        pending[target] = self.add(have, grad)
                    if left:
                        continue
                    have, grad = None, pending.pop(target)
                if leaf:
                    pending[target] = grad
                    leaves.append(target)
                elif node is None and not heap:
                    node, g = target, grad  # to be run at once if nothing else is ready
                else:
                    pending[target] = grad
                    heappush(heap, (target._seq, target))
            source = grads = grad = have = None
            if node is not None and heap:
                pending[node] = g
                heappush(heap, (node._seq, node))
                node = g = None

    def capture(self, node: Any, g: Any) -> bool:
        """Keeps the gradient of a node that was asked for; must the walk go on there?

        As in PyTorch, the hooks of its tensor come before that only if it need not.
        """
        assert self.captures is not None
        assert self.plan is not None
        goes_on = node in self.plan
        if node in self.captures:
            if not goes_on and node._extra is not None:
                g = self.tensor_hooks(node._extra, g)
            self.captures[node] = self.captured(g)
            if not goes_on and node._extra is not None and node._extra.pre_hooks:
                # Called as in PyTorch; what they answer counts for nothing here.
                call_node_hooks(node._extra.pre_hooks, node._hooked(self.outside(g)))
        return goes_on

    def serve_leaves(self) -> None:
        """Hands the gradients that have arrived at leaves over."""
        pending = self.pending
        usual = self.into_grad and type(self) is Run
        for leaf in self.leaves:
            extra = leaf._extra
            if usual and (
                extra is None or (not extra.hooks and extra.accumulator is None)
            ):
                accumulate_array(leaf, pending.pop(leaf), 0)
            else:
                self.arrive(leaf, pending.pop(leaf), 1)
        self.leaves.clear()

    def arrive(self, leaf: Tensor, grad: Any, callers: int) -> None:
        """Hands a leaf's gradient, now complete, over (`callers`: as in hand_out)."""
        extra = leaf._extra
        if extra is not None and extra.hooks:
            t = None if grad is None else self.as_tensor(grad, callers + 1)
            t = call_tensor_hooks(extra.hooks, t)
            if t is not None:
                grad, callers = _replaced(grad, self.from_tensor(t), callers)
            del t
        if not self.into_grad:
            self.captures[leaf] = self.captured(grad)  # type: ignore[index]
            return
        node = extra is not None and extra.accumulator and extra.accumulator()
        if not node or node._extra is None:
            self.accumulate(leaf, grad, callers)
            return
        grad, callers = _replaced(grad, self.before(node, grad), callers)
        self.accumulate(leaf, grad, callers)
        if node._extra.post_hooks:
            call_node_hooks(node._extra.post_hooks, (), self.outside(grad))

    # -- hooks -----------------------------------------------------------------------

    def before(self, node: Any, g: Any) -> Any:
        """Hooks on the tensor that the node made, then the node's own pre-hooks."""
        extra = node._extra
        g = self.tensor_hooks(extra, g)
        if extra.pre_hooks:
            outs = node._hooked(self.outside(g))
            got = call_node_hooks(extra.pre_hooks, outs)
            if got is not outs:
                g = self.inside(node._unhooked(got), g)
        if extra.packed and g is not None:
            unpack_node(node)
        return g

    def tensor_hooks(self, extra: Any, g: Any) -> Any:
        """Passes a gradient (or None) through the hooks of the tensor that it is of."""
        if not (extra.tensor_hooks or extra.retaining):
            return g
        t = None if g is None else self.as_tensor(g, 4)
        if extra.tensor_hooks:
            t = call_tensor_hooks(extra.tensor_hooks, t)
        if t is None:
            return None
        kept = extra.retaining and extra.retaining()
        if kept is not None:
            retain(kept, t)
        return self.from_tensor(t)

    def after(self, node: Any, grads: Any, g: Any, needs: int) -> Any:
        """The node's own hooks, which see its gradients and may replace them."""
        if node._extra.packed:
            if self.keep:
                pack_again(node)
            else:
                node._extra.packed = None
        hooks = node._extra.post_hooks
        if not hooks:
            return grads
        bits = [i for i in range(needs.bit_length()) if needs >> i & 1]
        given = (grads,) if len(bits) == 1 else grads
        ins: list[Any] = [None] * max(node._arity, needs.bit_length())
        for i, grad in zip(bits, given, strict=True):
            ins[i] = None if grad is None else self.as_tensor(grad)
        got = call_node_hooks(hooks, tuple(ins), self.outside(g))
        back = [None if (t := got[i]) is None else self.from_tensor(t) for i in bits]
        return back[0] if len(bits) == 1 else back

    def outside(self, g: Any) -> tuple[Tensor | None, ...]:
        """The gradients of a node's outputs as its hooks see them."""
        grads = g.grads if type(g) is Parts else (g,)
        return tuple(None if x is None else self.as_tensor(x) for x in grads)

    def inside(self, got: tuple[Tensor | None, ...], g: Any) -> Any:
        """What pre-hooks made of `g` in the form that travels."""
        back = [None if t is None else self.from_tensor(t) for t in got]
        return Parts(back) if type(g) is Parts else back[0]


class RecordedRun(Run):
    """A backward pass on tensors: recorded in turn (create_graph), or transformed."""

    def seed(self, grad: Tensor) -> Any:
        return grad

    def apply(self, node: Any, g: Any, needs: int) -> Any:
        if g is None and not node._takes_none:
            return nothing(needs)
        return node._recorded(g, needs)

    def straight(self, node: Any, g: Any) -> tuple[Any, Any]:
        return node, g

    def fit(self, shape: Any, dtype: Any, grad: Any, source: Any, grads: Any) -> Any:
        return fit_tensor(grad, shape, dtype, source, grads)

    def add(self, have: Any, grad: Any) -> Any:
        return have + grad

    def as_tensor(self, grad: Any, callers: int = 2) -> Tensor:
        return grad  # type: ignore[no-any-return]

    def from_tensor(self, grad: Tensor) -> Any:
        return grad

    accumulate = staticmethod(accumulate_tensor)

    def captured(self, grad: Any) -> Any:
        return grad if type(grad) is not Parts else None


def nothing(needs: int) -> Any:
    """What a node gives for each of its arguments if no gradient has reached it."""
    return (None,) * needs.bit_count() if needs & (needs - 1) else None


def _replaced(old: Any, fresh: Any, callers: int) -> tuple[Any, int]:
    """What hooks made of `old`, and how many on the stack hold it (as in hand_out)."""
    return fresh, callers if fresh is old else 1


def partial_edges(node: Any, captures: Any, plan: Any) -> tuple[int, Any]:
    """(needs, edges) of a node, only those that lead to something captured."""
    edges = node._next if type(node._next) is tuple else (node._next,)
    bits = [i for i in range(node._needs.bit_length()) if node._needs >> i & 1]
    needs, chosen = 0, []
    for bit, target in zip(bits, edges, strict=True):
        if target in captures or target in plan:
            needs |= 1 << bit
            chosen.append(target)
    return needs, chosen[0] if len(chosen) == 1 else tuple(chosen)


def _nodes_towards(captures: dict[Any, Any], roots: Sequence[Any]) -> set[Node]:
    """The nodes behind `roots`, without those older than all captures: edges lead from
    newer nodes to older ones, so nothing that is asked for lies behind these."""
    leaf = any(isinstance(t, Tensor) for t in captures)
    oldest = 0 if leaf else max(t._seq for t in captures)
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        at = stack.pop()
        if not isinstance(at, Tensor) and at not in seen and at._seq <= oldest:
            seen.add(at)
            stack += edges_of(at)
    return seen


def _edges_along(roots: Sequence[Any], plan: dict[Any, Any]) -> Iterator[Any]:
    """The target of each edge that a run by this plan will use."""
    seen: set[Any] = set()
    stack = list(roots)
    while stack:
        target = stack.pop()
        yield target
        if target in plan and target not in seen:
            seen.add(target)
            edges = plan[target][1]
            stack += edges if type(edges) is tuple else (edges,)


# -- entry ---------------------------------------------------------------------------


def backward(
    roots: Sequence[Any],
    grads: Sequence[Tensor],
    keep: bool,
    create_graph: bool,
    captures: dict[Any, Any] | None = None,
    into_grad: bool = True,
) -> None:
    """Runs backward from `roots`; fills .grad of leaves, or `captures`.

    With captures the walk is restricted to what leads to them; with `into_grad` the
    leaves among them get their gradient in .grad all the same.
    """
    on_tensors = create_graph or MODE.get() & TRANSFORMS
    kind: type[Run] = RecordedRun if on_tensors else Run
    if MODE.get() & (ANOMALY | OBSERVED):
        from gradfn.graph.watching import watched_kind

        kind = watched_kind(kind, MODE.get())
    task = kind(keep)
    if captures is not None:
        task.captures, task.into_grad = captures, into_grad
    start(task, GRAD if create_graph else 0, task.go, roots, grads)


def start(task: Run, grad_mode: int, go: Any, root: Any, grad: Any) -> None:
    """Runs `go(root, grad)`, a method of the task, in its mode.

    Runs that are started inside a run (a backward of the user's that calls backward)
    nest on the stack; past 50 levels they go on in a fresh thread, which has one of its
    own.
    """
    outer = getattr(here, "run", None)
    if outer is None:
        trouble.discarded = False
    else:
        task.level = outer.level + 1
        if task.level % task.nested == 0:
            _in_thread(task, grad_mode, go, root, grad)
            return
    here.run = task
    token = set_mode(mode() & ~GRAD | grad_mode)
    try:
        go(root, grad)
        for callback in task.callbacks:  # which may queue others
            callback()
    finally:
        reset_mode(token)
        here.run = outer


def current_run() -> Any:
    """The backward pass that this thread is in, or None."""
    return getattr(here, "run", None)


def _in_thread(task: Run, grad_mode: int, go: Any, root: Any, grad: Any) -> None:
    failure: list[BaseException] = []

    def work() -> None:
        here.run = task
        set_mode(mode() & ~GRAD | grad_mode)
        try:
            go(root, grad)
        except BaseException as error:  # handed to the waiting thread
            failure.append(error)

    thread = threading.Thread(target=copy_context().run, args=(work,))
    thread.start()
    thread.join()
    if failure:
        raise failure.pop()
