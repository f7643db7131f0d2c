"""Formulas of several steps that are worth writing out: no temporaries, in blocks.

Note [Blocks]
    On large arrays each step of a formula goes through memory, and that is what takes
    the time. Here the steps are taken on blocks that stay in the cache, in the memory of
    the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

BLOCK = 1 << 15  # elements: three arrays of float32 fit into half a megabyte


def blocks(*arrays: Any) -> Iterator[Any]:
    """The arrays of one shape (and a new one of the first's kind), piece by piece."""
    flat = [a.reshape(-1) for a in arrays]
    for start in range(0, flat[0].size, BLOCK):
        yield [a[start : start + BLOCK] for a in flat]


def _divisible(g: Any, r: Any) -> bool:
    same = g.shape == r.shape and g.dtype is r.dtype and g.dtype.kind == "f"
    return bool(same and g.flags.c_contiguous and r.flags.c_contiguous)


def tanh_back(g: Any, result: Any) -> Any:
    """g * (1 - r * r), for the result r of tanh."""
    r = result
    if g.size < BLOCK or not _divisible(g, r):
        return g - g * (r * r).conj()
    out = np.empty_like(r)
    for to, gs, rs in blocks(out, g, r):
        np.multiply(rs, rs, out=to)
        np.multiply(to, gs, out=to)
        np.subtract(gs, to, out=to)
    return out


def sigmoid_back(g: Any, result: Any) -> Any:
    """g * (1 - r) * r, for the result r of sigmoid."""
    r = result
    if g.size < BLOCK or not _divisible(g, r):
        return g * ((1 - r) * r).conj()
    out = np.empty_like(r)
    for to, gs, rs in blocks(out, g, r):
        np.subtract(1, rs, out=to)
        np.multiply(to, rs, out=to)
        np.multiply(to, gs, out=to)
    return out
