"""An op on batched tensors: its batch rule, or a loop over the samples.

Note [Batch rules]
    A rule is given a Call and returns what the row gives for all samples at once, with
    the batch in front. It does so by rewriting the arguments and calling the same row,
    so that whatever records or derives the op within this layer goes its usual way.
    The layer of the BatchedTensor itself is recorded as any result is: by `rare`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gradfn._state import GRAD, TRANSFORMS, mode
from gradfn.graph.batched import (
    BatchedArray,
    BatchedTensor,
    batch_of,
    batched,
    innermost,
    is_recorded,
)
from gradfn.graph.tangent import levels_of
from gradfn.graph.transforms import Batch, outside
from gradfn.graph.view import MULTI, mark_view
from gradfn.ops.admit import number
from gradfn.ops.inplace import written
from gradfn.ops.pointwise import is_pointwise
from gradfn.ops.rare import dim_error, rare
from gradfn.tensor import Tensor, from_array

RULES: dict[str, Callable[[Call], Any]] = {}
NUMBERS = (bool, int, float, complex, np.number, np.bool_)
LOOPED: set[str] = set()  # rows for which there was a loop; it is warned of once


def rule(names: str) -> Callable[[Any], Any]:
    """Makes a function the batch rule of the rows called `names`."""

    def put(function: Any) -> Any:
        RULES.update(dict.fromkeys(names.split(), function))
        return function

    return put


class Call:
    """A row and its arguments, with all samples where the function saw one."""

    def __init__(self, row: Any, args: Any, batch: Batch) -> None:
        self.row = row
        self.batch = batch
        self.size = batch.size
        self.args = dict(zip(row.params, args, strict=True))
        self.batched: set[str] = set()
        self.ranks: dict[str, int] = {}
        for name, x in self.args.items():
            if isinstance(x, Tensor):
                self.ranks[name] = len(x._array.shape)
                if batch_of(x) is batch:
                    self.args[name] = x._array.value  # type: ignore[attr-defined]
                    self.batched.add(name)

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    @property
    def first(self) -> str:
        """The name of the first tensor."""
        return self.row.takes[0]  # type: ignore[no-any-return]

    def rank(self, name: str = "") -> int:
        """How many dimensions a sample of a tensor has."""
        return self.ranks[name or self.first]

    def dim(self, dim: int, rank: int | None = None) -> int:
        """A dimension of a sample as one of all samples. IndexError if it has not that."""
        rank = self.rank() if rank is None else rank
        n = max(rank, 1)
        if not -n <= dim < n:
            raise dim_error(dim, rank)
        return dim % n + 1

    def full(self, name: str) -> Tensor:
        """A tensor with the batch in front, repeated (without memory) if it has none."""
        x = self.args[name]
        if name in self.batched:
            return x  # type: ignore[no-any-return]
        return x.expand(self.size, *x.shape)  # type: ignore[no-any-return]

    def ranked(self, name: str, rank: int) -> Any:
        """A tensor whose samples have dims of size 1 in front, so as to be of that rank."""
        x = self.args[name]
        missing = rank - self.ranks.get(name, rank)
        if name not in self.batched or missing <= 0:
            return x
        return x.reshape(self.size, *(1,) * missing, *x.shape[1:])

    def call(self, /, **changed: Any) -> Any:
        """The row for these arguments in the place of its own."""
        values = {**self.args, **changed} if changed else self.args
        positional, named = split(tuple(self.row.names))
        rest = {p: values[p] for p in named}
        return self.row.function(*[values[p] for p in positional], **rest)


@cache
def split(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of a row's positional arguments, and of those behind the star."""
    star = names.index("*") if "*" in names else len(names)
    return names[:star], names[star + 1 :]


def take_op(op: Any, args: Any) -> Any:
    """What the op gives for arguments among which there are batched tensors."""
    row = op.row if op.writes else op
    tensors = _tensors(row, args)
    batch = innermost(tensors)
    if batch is None:
        raise AssertionError(f"{row.name}: no batch in sight")
    if op.writes:
        return _write(row, tensors, args, batch)
    with outside(batch):
        values = for_all(row, args, batch)
    return _results(row, values, tensors, args, batch)


def _tensors(row: Any, args: Any) -> list[Any]:
    """The tensors among the arguments, in the row's order; numbers are None."""
    given = dict(zip(row.params, args, strict=True))
    found = list(given[row.many]) if row.many else [given[p] for p in row.takes]
    return [t if isinstance(t, Tensor) else None for t in found]


def _results(row: Any, values: Any, tensors: Any, args: Any, batch: Batch) -> Any:
    """The results as the function sees them, with their history and tangents."""
    many = bool(row.outputs)
    outs = [batched(v, batch) for v in values] if many else [batched(values, batch)]
    if row.view and isinstance(args[0], Tensor):
        for i, out in enumerate(outs):
            part = (row.parts, (i, *args[1:]), MULTI) if many else (row, args[1:])
            mark_view(out, args[0], *part)
    flags = mode()
    if flags & ~TRANSFORMS or (outs and levels_of(outs[0])):
        if None in tensors:  # a number stands for a tensor
            args = _as_tensors(row, args)
            tensors = _tensors(row, args)
        rare(row, flags, outs if many else outs[0], tensors, args)
    if not many:
        return outs[0]
    # What the row itself returns for several: a tuple, or its named one.
    return tuple(outs) if len(row.outputs) < 2 else row_result(row, outs)


def row_result(row: Any, outs: list[Tensor]) -> Any:
    """The results in the row's own named tuple."""
    from gradfn.ops.rule import SPACE, _compile

    _compile(row)
    return SPACE[f"result_type_{row.name}"](*outs)


def _as_tensors(row: Any, args: Any) -> tuple[Any, ...]:
    """The arguments with tensors for the numbers among them, as a node saves them: of the
    dtype that a number takes beside the others."""
    like = next(x._array.dtype for x in args if isinstance(x, Tensor))
    return tuple(
        x
        if name not in row.takes or x is None or isinstance(x, Tensor)
        else number(x, like)
        if isinstance(x, NUMBERS)
        else from_array(x)
        for name, x in zip(row.params, args, strict=True)
    )


def for_all(row: Any, args: Any, batch: Batch) -> Any:
    """The row's results for all samples, with the batch in front."""
    call = Call(row, args, batch)
    found = RULES.get(row.name)
    if found is None and is_pointwise(row):
        found = RULES["clone"]  # the rule of them all
    if found is not None:
        got = found(call)
        if got is not NotImplemented:
            return got
    if row.name not in LOOPED:
        LOOPED.add(row.name)
        if row.name.startswith("_"):  # the user does not know it
            return loop(row.function, _arguments(row, args), batch)
        warnings.warn(
            "There is a performance drop because we have not yet implemented the batching "
            f"rule for {row.name}; it is computed sample by sample.",
            UserWarning,
            stacklevel=6,
        )
    return loop(row.function, _arguments(row, args), batch)


def _arguments(row: Any, args: Any) -> tuple[Any, Any]:
    positional, named = split(tuple(row.names))
    n = len(positional)
    return args[:n], dict(zip(named, args[n:], strict=True))


def loop(function: Any, arguments: tuple[Any, Any], batch: Batch) -> Any:
    """The function called for one sample after the other; the results stacked."""
    from gradfn._pytree import tree_flatten, tree_unflatten
    from gradfn.ops.world import PUBLIC

    leaves, spec = tree_flatten(arguments)
    rows = []
    for i in range(batch.size):
        one = [_sample(x, i, batch) for x in leaves]
        args, kwargs = tree_unflatten(one, spec)
        rows.append(tree_flatten(function(*args, **kwargs)))
    columns = zip(*(flat for flat, _ in rows), strict=True)
    stack = PUBLIC["stack"]
    return tree_unflatten([stack(list(column)) for column in columns], rows[0][1])


def _sample(x: Any, i: int, batch: Batch) -> Any:
    if isinstance(x, Tensor) and batch_of(x) is batch:
        return x._array.value[i]  # type: ignore[attr-defined]
    return x


def take_function(function: Any, args: Any, kwargs: Any) -> Any:
    """What a function without a derivative gives for each sample of batched tensors."""
    from gradfn._pytree import tree_leaves, tree_map

    batch = innermost(t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor))
    if batch is None:
        return function(*args, **kwargs)
    with outside(batch):
        got = loop(lambda *a, **k: take_function(function, a, k), (args, kwargs), batch)
    return tree_map(lambda t: batched(t, batch) if isinstance(t, Tensor) else t, got)


# -- in place ----------------------------------------------------------------------------


def _write(row: Any, tensors: Any, args: Any, batch: Batch) -> Tensor:
    """An in-place op: `written` does it, and asks `BatchedArray.write` to write."""
    target = tensors[0]
    if batch_of(target) is not batch:
        raise RuntimeError(
            "vmap: inplace arithmetic(self, *extra_args) is not possible because there "
            "exists a Tensor `other` in extra_args that has more elements than `self`. This "
            f"happened in {row.name}_ due to `other` being vmapped over but `self` not being "
            "vmapped over in a vmap. Please try to use out-of-place operators instead of "
            "inplace arithmetic, or make `self` by `new_zeros` and the like from `other`."
        )
    args = _as_tensors(row, args)
    tensors = _tensors(row, args)
    arrays = [None if t is None else t._array for t in tensors]
    return written(row, tensors, args, arrays)


def write(self: BatchedArray, op: Any, args: Any) -> None:
    """Writes the row's results for all samples into the values."""
    with outside(self.batch):
        if mode() & GRAD and any(isinstance(x, Tensor) and is_recorded(x) for x in args):
            # A node out there may save what is about to be overwritten.
            before = batched(self.value.clone(), self.batch)
            args = [before if getattr(x, "_array", None) is self else x for x in args]
        self.value.copy_(for_all(op, args, self.batch))


BatchedArray.write = write  # type: ignore[method-assign]
BatchedTensor._take_op = staticmethod(take_op)  # type: ignore[method-assign]
