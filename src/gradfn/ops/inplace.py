"""Writing into tensors.

Note [In-place ops]
    An in-place op is its row, whose result is put into the first argument's memory. Who
    writes must: ask whether it may (`check_inplace`), take a copy of memory that is
    shared with the engine (`own`), bump the version counter, and hand the history over
    (`rebase`). If a formula needs the overwritten value, a copy is saved.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gradfn._dtypes import _CATEGORY, torch_dtype
from gradfn._state import GRAD, INFERENCE, TRANSFORMS, mode, quiet, run
from gradfn.graph.saved import legacy_type, note_version
from gradfn.graph.view import check_inplace, edge, rebase
from gradfn.ops.rare import failed, finish
from gradfn.tensor import UNTRACKED, Tensor, cell_of, wrap


def own(t: Tensor) -> None:
    """Gives `t` memory of its own if what it has must not be written."""
    if not t._array.flags.writeable:
        t._array = t._array.copy()


def bump(t: Tensor) -> None:
    """Notes that the memory of `t` was written."""
    cell = cell_of(t)
    if cell is not UNTRACKED:
        cell.count += 1


def written(op: Any, tensors: Any, args: Any, arrays: Any) -> Tensor:
    """Runs an op and puts its result into `tensors[0]`, which is returned.

    Raises RuntimeError if the result has another shape or a dtype that can't be cast
    to the tensor's, or if the write would spoil a history.
    """
    t = tensors[0]
    flags = mode()
    if flags & GRAD:
        check_inplace(t, *tensors[1:])
    array = t._array
    if array.base is not None or t._extra is not None:
        check_memory(t, op.constant)
    for a in arrays[1:]:
        if a is not None and (a.base is not None or array.base is not None):
            check_overlap(array, a)
    if not array.flags.writeable:
        own(t)
    edges = op.rules and flags & GRAD and edges_into(op, tensors)
    # The node is made before the write, so that it knows the versions of what it saves:
    # an argument that shares the memory will be found modified. `t` itself is copied.
    node = op.record(t, *edges, *without(t, op, args)) if edges else None
    old = before_write(t, tensors) if flags & TRANSFORMS else None
    put(op, t._array, args, arrays)
    bump(t)
    if node is not None:
        if "_result" in op.saved:
            note_version(node, "result", node.cell)
        rebase(t, node)
        if flags & ~GRAD:
            finish(node, flags, t)
    if old is not None:
        after_write(op, t, old, tensors, args)
    return t  # type: ignore[no-any-return]


def before_write(t: Tensor, tensors: Any) -> Tensor | None:
    """A copy of `t` with its tangents, if forward mode will need it."""
    from gradfn.graph.tangent import is_dual, keep_tangents

    if not any(x is not None and is_dual(x) for x in tensors):
        return None
    old = keep_old(t)
    keep_tangents(old, t)
    return old


def after_write(op: Any, t: Tensor, old: Tensor, tensors: Any, args: Any) -> None:
    """Writes the tangents of a result into those of `t`, which had been as `old` is."""
    from gradfn.ops.forward import push_written

    push_written(op, t, old, tensors, args)


def without(t: Tensor, op: Any, args: Any) -> Any:
    """The arguments with a copy in the place of `t`, if the node will save that."""
    places = [p for p, a in zip(op.params, args) if a is t]
    if not any(f"_{p}" in op.saved for p in places):
        return args
    old = keep_old(t)
    if mode() & TRANSFORMS:
        from gradfn.graph.tangent import keep_tangents

        keep_tangents(old, t)
    return tuple(old if a is t else a for a in args)


def check_overlap(target: Any, source: Any) -> None:
    """RuntimeError if `source` shares memory with `target`, but is not just the same."""
    if source is target or not type(target) is type(source) is np.ndarray:
        return
    if not np.may_share_memory(target, source):
        return
    same = source.shape == target.shape and source.strides == target.strides
    begin = source.__array_interface__["data"][0] == target.__array_interface__["data"][0]
    if not (same and begin) and is_dense(target) and is_dense(source):
        raise overlapping()


def overlapping() -> RuntimeError:
    """The error for a write into memory that is read as well."""
    return RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to "
        "tensor refer to a single memory location. Please clone() the tensor before "
        "performing the operation."
    )


def is_dense(a: Any) -> bool:
    """Do the elements fill their stretch of memory, each place once, in any order?"""
    step = a.itemsize
    for stride, n in sorted((s, n) for s, n in zip(a.strides, a.shape) if n != 1):
        if stride != step:
            return False
        step *= n
    return True


def edges_into(op: Any, tensors: Any) -> Any:
    """The edges of the op's arguments; None if no gradient is wanted."""
    named = dict(zip(op.takes, tensors, strict=True))
    edges = [None if named[p] is None else edge(named[p]) for p in op.rules]
    return None if all(e is None for e in edges) else edges


def put(op: Any, target: Any, args: Any, arrays: Any) -> None:
    """Computes into `target`: directly where the kernel can."""
    if type(target) is not np.ndarray:
        target.write(op, args)
        return
    plain = args[len(arrays) :]
    if op.ufunc is not None and fits(op, target, arrays, plain):
        quiet(op.ufunc, *arrays, target)
        return
    try:
        r = run(op.call_kernel, args, arrays)
    except Exception as error:
        r = failed(op, error, *arrays, *plain)
    store(target, np.asarray(r))


def fits(op: Any, target: Any, arrays: Any, plain: Any) -> bool:
    """Can the op's ufunc write its result straight into `target`?"""
    shape, dtype = target.shape, target.dtype
    for a in arrays:
        if a.dtype is not dtype or (a.shape != shape and a.ndim):
            return False
    for value, default in zip(plain, op.defaults, strict=True):
        if value is not default:
            return False
    return keeps_dtype(op.ufunc, dtype)


@cache
def keeps_dtype(ufunc: np.ufunc, dtype: np.dtype[Any]) -> bool:
    """Does the ufunc give `dtype` for arguments that all have it?"""
    try:
        return ufunc.resolve_dtypes((dtype,) * ufunc.nin + (None,))[-1] == dtype
    except TypeError:
        return False


def store(target: Any, r: np.ndarray[Any, Any]) -> None:
    """Copies `r` into `target`, checking shape and dtype."""
    if r.shape != target.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape "
            f"{list(r.shape)}"
        )
    check_cast(r.dtype, target.dtype)
    np.copyto(target, r, casting="unsafe")


def check_cast(source: np.dtype[Any], target: np.dtype[Any]) -> None:
    """RuntimeError where torch refuses to cast a result (float into integer, …)."""
    if _CATEGORY[source.kind] > _CATEGORY[target.kind]:
        a, b = (legacy_type(torch_dtype(d).name)[6:-6] for d in (source, target))
        raise RuntimeError(
            f"result type {a} can't be cast to the desired output type {b}"
        )


def check_memory(t: Tensor, constant: bool = False, part: Any = None) -> None:
    """RuntimeError if elements of `t` (or of the part written) share memory: expanded.

    One constant for all elements is no ambiguous write, so that may be written.
    """
    array = t._array if part is None else part
    if not constant and array.base is not None and 0 in array.strides and array.size > 1:
        overlaps = any(
            s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)
        )
        if overlaps and array.flags.writeable:
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor "
                "refers to a single memory location. Please clone() the tensor before "
                "performing the operation."
            )
    extra = t._extra
    if extra is not None and extra.inference and not mode() & INFERENCE:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. "
            "You can make a clone to get a normal tensor before doing inplace update."
        )


def keep_old(t: Tensor) -> Tensor:
    """A copy of `t` as it is before the write, with its history."""
    old = wrap(t._array.copy())
    old._grad_fn = edge(t)
    return old
