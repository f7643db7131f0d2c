"""Copies with one part overwritten: the out-of-place forms of writing into a view.

Note [Overwritten parts]
    Each of these ops is a view op with a value for what the view shows. So one helper
    makes them: the kernel writes into the view of a copy, the value's gradient is that
    view of the gradient, and the rest keeps its gradient with zeros in the part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.rule import op
from gradfn.ops.sizes import wrapped
from gradfn.ops.world import RAW, public
from gradfn.tensor import Tensor, method


def _row(name: str, view: str) -> Any:
    """The function of the row for the view op `view`, with that op's arguments in a tuple."""
    private = f"_{name}"

    def kernel(a: Any, src: Any, args: Any) -> Any:
        out = np.array(a, order="C")
        part = getattr(RAW, view)(out, *args)
        if part.shape != src.shape:
            raise RuntimeError(
                "expected src to have a size equal to the slice of self. src size = "
                f"{list(src.shape)}, slice size = {list(part.shape)} ({name})"
            )
        part.flags.writeable = True  # NumPy's diagonals are not
        part[...] = src.astype(a.dtype, copy=False)
        return out

    return op(
        f"{private}(self, src, args)",
        kernel,
        function=False,
        method=False,
        node="".join(word.capitalize() for word in name.split("_")),
        discards=True,
        self=lambda g, xp, src_shape, args: getattr(xp, private)(
            g, xp._zeros_of(g, src_shape), args
        ),
        src=lambda g, xp, args: getattr(xp, view)(g, *args),
    ).function


_select_row = _row("select_scatter", "_select")
_slice_row = _row("slice_scatter", "_slice")
_diagonal_row = _row("diagonal_scatter", "diagonal")
_strided_row = _row("as_strided_scatter", "as_strided")


@public
@method
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Any:
    """A copy with `src` at `index` along `dim`. IndexError outside; RuntimeError."""
    shape = input._array.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at = wrapped(dim, len(shape))
    if not -shape[at] <= index < shape[at]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at "
            f"dimension {at}"
        )
    return _select_row(input, src, ((*(slice(None),) * at, int(index), Ellipsis),))


@public
@method
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> Any:
    """A copy with `src` from `start` to `end` along `dim`. RuntimeErrors."""
    if not input._array.ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError(f"slice step must be positive, got {step}")
    at = wrapped(dim, input._array.ndim)
    index = (*(slice(None),) * at, slice(start, end, step))
    return _slice_row(input, src, (index,))


@public
@method
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Any:
    """A copy with `src` on a diagonal of two dims. RuntimeError if it does not fit."""
    return _diagonal_row(input, src, (offset, dim1, dim2))


@public
@method
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: Any = None
) -> Any:
    """A copy with `src` where a strided view of it would be. RuntimeErrors."""
    offset = 0 if storage_offset is None else storage_offset
    return _strided_row(input, src, (tuple(size), tuple(stride), offset))
