"""What an op does in rare cases: unusual modes, errors, packed and overwritten values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gradfn import _state
from gradfn._guard import OURS, innermost, module_of, not_implemented, on_purpose
from gradfn._guard import translated as clearer
from gradfn._kinds import first_wrong
from gradfn._state import (
    ANOMALY,
    FORWARD,
    GRAD,
    INFERENCE,
    OBSERVED,
    SAVED_HOOKS,
    TRANSFORMS,
)
from gradfn.graph import saved
from gradfn.graph.node import Node, Output, node_extra, output_of
from gradfn.graph.transforms import WORK
from gradfn.graph.view import edge, history_of_written
from gradfn.tensor import INTERMEDIATE, UNTRACKED, Tensor, extra_of, wrap


def rare(op: Any, mode: int, out: Any, tensors: Any, args: Any) -> None:
    """Finishes a result `out` (or a list of them) when the mode is not a plain one."""
    if mode & FORWARD and op.rules:
        for t in tensors:
            if t is not None and is_intermediate(t):
                mark_intermediate(out)
                break
    if mode & INFERENCE:
        for t in out if isinstance(out, list) else [out]:
            if t._view is None:
                mark_inference(t)
    if mode & GRAD and op.rules:
        node = record(op, out, tensors, args)
        if node is not None:
            finish(node, mode, out)
    if mode & TRANSFORMS and WORK.get().levels:
        from gradfn.ops.forward import push

        push(op, out, tensors, args)
        keep_tangents(op, out)


def keep_tangents(op: Any, out: Any) -> None:
    """Notes at the node the tangents of a result that it saves: see `as_saved`."""
    for i, t in enumerate(out if isinstance(out, list) else [out]):
        node = t._grad_fn
        if node is None or t._extra is None or not t._extra.tangents:
            continue
        node = node._next if isinstance(node, Output) else node
        if isinstance(node, Node) and node.op is op:
            extra = node_extra(node)
            extra.tangents = {**(extra.tangents or {}), i: t._extra.tangents}


def mark_inference(t: Tensor) -> None:
    """Makes `t` an inference tensor: it has no versions and no history, ever."""
    extra_of(t).inference = True
    t._cell = UNTRACKED


def is_intermediate(t: Tensor) -> bool:
    """Does `t` depend on what Function.forward was given?"""
    if t._grad_fn is not None:
        return True
    return t._extra is not None and t._extra.intermediate


def mark_intermediate(out: Any) -> None:
    """Marks what an op made inside Function.forward from differentiable tensors."""
    if isinstance(out, Tensor):
        out._extra = INTERMEDIATE
        return
    for t in out:
        mark_intermediate(t)


def record(op: Any, out: Any, tensors: Any, args: Any) -> Node | None:
    """Makes the node for `out` if one of the arguments requires grad."""
    if op.many:
        edges = [edge(t) for t in tensors]
        if all(e is None for e in edges):
            return None
        node = op.record(out, edges, *args)
    else:
        named = dict(zip(op.takes, tensors, strict=True))
        edges = [None if named[p] is None else edge(named[p]) for p in op.rules]
        if all(e is None for e in edges):
            return None
        node = op.record(out, *edges, *args)
    if not op.outputs:
        out._grad_fn = node
    return node  # type: ignore[no-any-return]


def finish(node: Node, mode: int, out: Any) -> None:
    """What saved-tensor hooks, anomaly mode and observers want of the new node of `out`
    (a tensor or several)."""
    if mode & SAVED_HOOKS:
        from gradfn.graph.packing import pack_node

        pack_node(node)
    if mode & ANOMALY:
        from gradfn.graph.anomaly import remember

        remember(node)
    if mode & OBSERVED:
        from gradfn.graph.observe import made

        made(node, out)


def take(node: Any, slot: str, value: Any) -> Any:
    """A saved argument: unpacked, or checked against its version."""
    if type(value) is not Tensor and hasattr(value, "unpack"):
        return value.unpack(node)
    saved.check_version(node, slot, value._cell, value._array)
    return value


def take_many(node: Any, slot: str) -> Any:
    """A saved sequence of arguments, each taken out."""
    return [
        t if t._cell is None else take(node, f"{slot}{i}", t)
        for i, t in enumerate(getattr(node, f"_{slot}"))
    ]


def saved_value(node: Any, name: str, value: Any) -> Any:
    """What a user finds at `grad_fn._saved_<name>`."""
    op = node.op
    if value is saved.RELEASED:
        raise value.items
    if value is None or name == op.many:
        return value and tuple(take_many(node, name))
    if name == "result" or name in op.outputs:
        array = take_result(node, name) if node.cell.count else value
        return as_saved(node, array, 0 if name == "result" else op.outputs.index(name))
    if name in op.takes:
        return value if value._cell is None else take(node, name, value)
    return value


def take_result(node: Any, slot: str) -> Any:
    """The array of a saved result: unpacked, or checked against its version."""
    value = getattr(node, f"_{slot}")
    if hasattr(value, "unpack"):
        return value.unpack(node)._array
    saved.check_version(node, slot, node.cell, value)
    return value


def as_saved(node: Any, array: Any, index: int) -> Tensor:
    """A saved output as a tensor again, with the node as its history."""
    if array.dtype.kind not in "fc":
        return wrap(array)
    made = node._output_nodes
    if made and index >= len(made):
        return wrap(array)  # an output without a derivative
    if not made:
        t = saved.result_tensor(node, array)
    else:
        t = wrap(array)
        t._grad_fn = made[index]() or output_of(node, index, len(made), array)
    if node._extra is not None:
        if node._extra.written is not None:
            t._grad_fn = history_of_written(node)
        if node._extra.tangents and index in node._extra.tangents:
            extra_of(t).tangents = node._extra.tangents[index]
    return t


def some(edges: tuple[Any, ...]) -> tuple[int, Any]:
    """(needs, next) for the edges of an op with three or more arguments."""
    needs = sum(1 << i for i, e in enumerate(edges) if e is not None)
    there = [e for e in edges if e is not None]
    return needs, there[0] if len(there) == 1 else tuple(there)


# -- errors -----------------------------------------------------------------------------


def failed(op: Any, error: Exception, *args: Any, **kwargs: Any) -> Any:
    """The kernel's result after all (its Context was taken), or a better error."""
    if type(error) is RuntimeError and "cannot enter context" in str(error):
        return _state.recover(error, lambda: op.kernel(*args, **kwargs))
    values = dict(zip(op.params, args)) | kwargs
    better: Any = first_wrong(op.title, op.kinds, values)
    if better is None and op.explain is not None:
        better = op.explain(error, *args, **kwargs)
    if better is None:
        better = translated(op, error, args)
    try:
        raise better from None
    finally:
        del error, better  # else they, their tracebacks and this frame hold each other


def translated(op: Any, error: Exception, args: Any) -> Exception:
    """PyTorch's error for one of NumPy's."""
    text = str(error)
    if isinstance(error, np.exceptions.AxisError):
        if error.ndim is not None and error.axis is not None:
            return dim_error(error.axis, error.ndim)
        return IndexError(text)
    if isinstance(error, ValueError) and "broadcast" in text:
        shapes = [x.shape for x in args if isinstance(x, np.ndarray)]
        return broadcast_error(shapes) or RuntimeError(f"{op.title}(): {text}")
    if type(error).__name__ == "_UFuncNoLoopError":  # NumPy keeps it private
        return not_implemented(op.title, args)
    trace = innermost(error.__traceback__)
    if trace is None or on_purpose(trace) or module_of(trace) not in OURS:
        return error
    shown = [wrap(x) if isinstance(x, np.ndarray) else x for x in args]
    return clearer(op.title, error, shown) or error


def dim_error(dim: int, ndim: int) -> IndexError:
    """IndexError for a dimension that a tensor has not."""
    n = max(ndim, 1)
    return IndexError(
        f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got "
        f"{dim})"
    )


def broadcast_error(shapes: Any) -> RuntimeError | None:
    """RuntimeError that names the first dimension in which shapes disagree."""
    if len(shapes) < 2:
        return None
    a, b = shapes[0], shapes[1]
    n = max(len(a), len(b))
    wide_a, wide_b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    for dim in reversed(range(n)):
        if wide_a[dim] != wide_b[dim] and 1 not in (wide_a[dim], wide_b[dim]):
            return RuntimeError(
                f"The size of tensor a ({wide_a[dim]}) must match the size of tensor b "
                f"({wide_b[dim]}) at non-singleton dimension {dim} (shapes {list(a)} "
                f"and {list(b)})"
            )
    return None


def plain_text(message: str) -> str:
    """One line of a message, without doubled spaces."""
    return re.sub(r"\s+", " ", message).strip()
