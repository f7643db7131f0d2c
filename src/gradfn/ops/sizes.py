"""Sizes and dims as torch's functions take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._kinds import fits, type_name
from gradfn.ops.rare import dim_error
from gradfn.tensor import Tensor


def sizes(args: Any) -> tuple[int, ...]:
    """Ints given one by one, or as one tuple, list or Size. TypeError for others."""
    if len(args) == 1 and not isinstance(args[0], int):
        only = args[0]
        if isinstance(only, Tensor):
            args = (only,)
        elif hasattr(only, "__iter__"):
            args = only
    return tuple(n if type(n) is int else _whole(n) for n in args)


def _whole(n: Any) -> int:
    if not fits("int", n):
        raise TypeError(f"a size or dim must be an int, not {type_name(n)}")
    return int(n.__index__())


def wrapped(dim: Any, ndim: int) -> int:
    """`dim` from 0 on; IndexError if there is no such dim (0-d tensors have 0 and -1)."""
    dim, n = as_dim(dim), max(ndim, 1)
    if not -n <= dim < n:
        raise dim_error(dim, ndim)
    return dim % n


def as_dim(dim: Any) -> int:
    """An integer; TypeError for bools, and for what is none."""
    if type(dim) is int:
        return dim
    if isinstance(dim, (bool, np.bool_)) or not hasattr(dim, "__index__"):
        raise TypeError(f"argument 'dim' must be int, not {type_name(dim)}")
    return int(dim.__index__())


def inferred(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """`shape` with its -1 replaced, for `size` elements. RuntimeErrors."""
    known, holes = 1, 0
    for n in shape:
        if n == -1:
            holes += 1
        elif n < 0:
            raise RuntimeError(f"invalid shape dimension {n} (shape {list(shape)})")
        else:
            known *= n
    if holes > 1:
        raise RuntimeError(f"only one dimension can be inferred (shape {list(shape)})")
    if holes and not known:
        raise RuntimeError(
            f"cannot reshape tensor of {size} elements into shape {list(shape)} because "
            "the unspecified dimension size -1 can be any value and is ambiguous"
        )
    if holes and size % known == 0:
        return tuple(size // known if n == -1 else n for n in shape)
    if holes or known != size:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return shape
