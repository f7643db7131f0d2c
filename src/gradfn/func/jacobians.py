"""Jacobians and Hessians, by mapping vjp or jvp over the unit vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from gradfn._pytree import tree_flatten, tree_map, tree_unflatten
from gradfn.func.derivatives import (
    check_inputs,
    check_results,
    jvp,
    pick,
    put,
    split_aux,
    vjp,
)
from gradfn.func.vmap import vmap
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor, wrap


def units(tensors: list[Tensor]) -> list[Tensor]:
    """For each tensor the unit vectors of all of them together, in its own part.

    One more dim in front, of the number of all elements; a row has a single 1.
    """
    total = sum(t.numel() for t in tensors)
    found, start = [], 0
    for t in tensors:
        n = t.numel()
        rows = np.eye(total, n, -start, dtype=t._array.dtype)
        found.append(wrap(rows.reshape(total, *t._array.shape)))
        start += n
    return found


def check_real(name: str, which: str, leaves: list[Any]) -> None:
    """RuntimeError if one of the tensors is complex: a Jacobian is of real numbers."""
    for t in leaves:
        if isinstance(t, Tensor) and t.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {which} to be real but received complex tensor at "
                f"flattened {which[:-1]} idx: {[t is x for x in leaves].index(True)}"
            )


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that gives the Jacobian of `func` by reverse mode.

    For an output of shape S and an argument of shape T it has shape (*S, *T); containers
    of outputs and arguments give nested ones. chunk_size: how many rows are computed at
    once (None: all).
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        chosen = pick(args, argnums)
        ins, in_spec = tree_flatten(chosen)
        check_real("jacrev", "inputs", ins)

        def partial(x: Any) -> Any:
            return func(*put(args, argnums, x), **kwargs)

        got = vjp(partial, chosen, has_aux=has_aux)
        output, vjp_fn = got[0], got[1]
        outs, spec = tree_flatten(output)
        check_real("jacrev", "outputs", outs)

        def row(*seeds: Any) -> Any:
            return vjp_fn(tree_unflatten(seeds, spec))[0]

        rows = one_by_one(row) if chunk_size == 1 else vmap(row, chunk_size=chunk_size)
        columns = tree_flatten(rows(*units(outs)))[0]
        result = _arranged(outs, spec, columns, in_spec)
        return (result, got[2]) if has_aux else result

    return wrapper


def one_by_one(row: Callable[..., Any]) -> Callable[..., Any]:
    """What vmap makes of `row`, by a call for each: it may do what vmap does not allow."""

    def rows(*seeds: Any) -> Any:
        got = [tree_flatten(row(*some)) for some in zip(*seeds, strict=True)]
        if not got:
            return vmap(row)(*seeds)
        columns = zip(*(flat for flat, _ in got), strict=True)
        return tree_unflatten([PUBLIC["stack"](list(c)) for c in columns], got[0][1])

    return rows


def _arranged(outs: list[Tensor], spec: Any, columns: list[Any], in_spec: Any) -> Any:
    """Rows for all outputs' elements, split by output and put into the containers."""
    sizes = [t.numel() for t in outs]
    split = [column.split(sizes) for column in columns]
    blocks = []
    for i, out in enumerate(outs):
        parts = [s[i].view((*out.shape, *s[i].shape[1:])) for s in split]
        blocks.append(tree_unflatten(parts, in_spec))
    return tree_unflatten(blocks, spec)


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function that gives the Jacobian of `func` by forward mode; see jacrev."""

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        chosen = pick(args, argnums)
        ins, in_spec = tree_flatten(chosen)
        check_real("jacfwd", "inputs", ins)
        check_inputs(ins, ins)
        shape: list[Any] = []

        def flat_func(*flat: Any) -> Any:
            got = func(*put(args, argnums, tree_unflatten(flat, in_spec)), **kwargs)
            output, extra = split_aux("jacfwd(f)(*args)", got, has_aux)
            outs, spec = tree_flatten(output)
            check_results("jvp(f, primals, tangents)", outs)
            check_real("jacfwd", "outputs", outs)
            shape[:] = [spec]
            return (tuple(outs), extra) if has_aux else tuple(outs)

        def push(*tangents: Any) -> Any:
            got = jvp(flat_func, tuple(ins), tangents, has_aux=has_aux)
            return (got[1], got[2]) if has_aux else got[1]

        got = vmap(push, randomness=randomness)(*units(ins))
        columns, extra = got if has_aux else (got, None)
        sizes = [t.numel() for t in ins]
        blocks = []
        for column in columns:
            parts = [
                part.movedim(0, -1).reshape((*column.shape[1:], *x.shape))
                for part, x in zip(column.split(sizes), ins, strict=True)
            ]
            blocks.append(tree_unflatten(parts, in_spec))
        result = tree_unflatten(blocks, shape[0])
        return (result, tree_map(lambda t: t[0], extra)) if has_aux else result

    return wrapper


def hessian(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0
) -> Callable[..., Any]:
    """A function that gives the second derivatives of `func`: jacfwd of jacrev."""
    return jacfwd(jacrev(func, argnums), argnums)
