"""Jacobians and Hessians, by mapping vjp or jvp over the unit vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from gradfn._pytree import tree_flatten, tree_unflatten
from gradfn.func.derivatives import jvp, pick, put, split_aux, vjp
from gradfn.func.vmap import vmap
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


def _check_tensors(name: str, leaves: list[Any]) -> None:
    for t in leaves:
        if not isinstance(t, Tensor):
            raise RuntimeError(
                f"{name}: Expected all outputs and inputs to be tensors, got {type(t)}"
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

        def partial(x: Any) -> Any:
            return func(*put(args, argnums, x), **kwargs)

        got = vjp(partial, chosen, has_aux=has_aux)
        output, vjp_fn = got[0], got[1]
        outs, spec = tree_flatten(output)
        _check_tensors("jacrev", outs)
        ins, in_spec = tree_flatten(chosen)
        _check_tensors("jacrev", ins)

        def row(*seeds: Any) -> Any:
            return vjp_fn(tree_unflatten(seeds, spec))[0]

        rows = vmap(row, chunk_size=chunk_size)
        columns = tree_flatten(rows(*units(outs)))[0]
        result = _arranged(outs, spec, columns, in_spec)
        return (result, got[2]) if has_aux else result

    return wrapper


def _arranged(outs: list[Tensor], spec: Any, columns: list[Any], in_spec: Any) -> Any:
    """Rows for all outputs' elements, split by output and put into the containers."""
    sizes = [t.numel() for t in outs]
    split = [column.split(sizes) for column in columns]
    blocks = []
    for i, out in enumerate(outs):
        parts = [s[i].view(*out.shape, *s[i].shape[1:]) for s in split]
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
        _check_tensors("jacfwd", ins)
        aux: list[Any] = []

        def flat_func(*flat: Any) -> Any:
            got = func(*put(args, argnums, tree_unflatten(flat, in_spec)), **kwargs)
            output, extra = split_aux("jacfwd(f)(*args)", got, has_aux)
            outs, spec = tree_flatten(output)
            _check_tensors("jacfwd", outs)
            aux[:] = [extra, spec]
            return (tuple(outs), extra) if has_aux else tuple(outs)

        def push(*tangents: Any) -> Any:
            got = jvp(flat_func, tuple(ins), tangents, has_aux=has_aux)
            return (got[1], got[2]) if has_aux else got[1]

        dims: Any = (0, None) if has_aux else 0
        got = vmap(push, randomness=randomness, out_dims=dims)(*units(ins))
        columns, extra = got if has_aux else (got, None)
        sizes = [t.numel() for t in ins]
        blocks = []
        for column in columns:
            parts = [
                part.movedim(0, -1).reshape(*column.shape[1:], *x.shape)
                for part, x in zip(column.split(sizes), ins, strict=True)
            ]
            blocks.append(tree_unflatten(parts, in_spec))
        result = tree_unflatten(blocks, aux[1])
        return (result, extra) if has_aux else result

    return wrapper


def hessian(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0
) -> Callable[..., Any]:
    """A function that gives the second derivatives of `func`: jacfwd of jacrev."""
    return jacfwd(jacrev(func, argnums), argnums)
