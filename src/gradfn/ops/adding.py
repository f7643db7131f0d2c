"""Adding at places that may be named several times."""

from __future__ import annotations

from typing import Any

import numpy as np

MANY = 1000  # values, from which on add_at pays
_ROUND = 20_000  # values that a round takes as long for as np.add.at


def add_at(out: Any, index: Any, values: Any) -> None:
    """`out[index] += values`, where what is named twice gets both.

    np.add.at is fast in one dimension only. So many values are added without it where
    no place is named twice, in rounds where none is named often, else through flat
    indices.
    """
    dims = [d for d, x in enumerate(index) if type(x) is not slice]
    if values.size < MANY or out.ndim == 1:
        np.add.at(out, index, values)
        return
    n = len(dims)
    arrays = np.broadcast_arrays(*(index[d] for d in dims))
    table = np.moveaxis(out, dims, range(n))
    at = np.ravel_multi_index(arrays, table.shape[:n], mode="wrap").reshape(-1)
    lines = in_front(values, out, dims, arrays[0]).reshape(at.size, -1)
    times = int(np.bincount(at).max())
    if times == 1:
        table[tuple(a.reshape(-1) for a in arrays)] += lines.reshape(
            (at.size, *table.shape[n:])
        )
    elif times * _ROUND < lines.size:
        _add_in_rounds(table, at, lines)
    else:
        _add_flat(table, at, lines)


def _add_in_rounds(table: Any, at: Any, lines: Any) -> None:
    """First all lines that are the first of their place, then the second ones, ..."""
    order = np.argsort(at, kind="stable")
    places = at[order]
    new = np.concatenate(([True], places[1:] != places[:-1]))
    first = np.flatnonzero(new)
    rounds = np.arange(at.size) - first.repeat(np.diff(np.append(first, at.size)))
    whole = table.flags.c_contiguous
    flat = table if whole else np.zeros(table.shape, table.dtype)
    rows = flat.reshape(-1, lines.shape[1])
    for k in range(int(rounds.max()) + 1):
        some = order[rounds == k]
        rows[at[some]] += lines[some]
    if not whole:
        table += flat


def _add_flat(table: Any, at: Any, lines: Any) -> None:
    width = lines.shape[1]
    if width > 1:
        at = (at[:, None] * width + np.arange(width)).reshape(-1)
    flat = np.zeros(table.size, table.dtype)
    np.add.at(flat, at, lines.reshape(-1))
    table += flat.reshape(table.shape)


def in_front(values: Any, out: Any, dims: Any, array: Any) -> Any:
    """`values` as wide as `out[index]`, with the dims of the index arrays first."""
    n = array.ndim
    first = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    rest = [m for d, m in enumerate(out.shape) if d not in dims]
    shape = (*rest[:first], *array.shape, *rest[first:])
    wide = np.broadcast_to(values, shape)
    return np.moveaxis(wide, range(first, first + n), range(n))
