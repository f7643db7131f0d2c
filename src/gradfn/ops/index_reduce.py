"""Slices combined with those at an index: `scatter_reduce` with one index for a slice."""

from __future__ import annotations

from typing import Any

from gradfn.ops.sizes import wrapped
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method

_WAYS = ("prod", "mean", "amax", "amin")


def _whole(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> Any:
    """`(dim, index of each element)`. RuntimeErrors and IndexErrors."""
    if reduce not in _WAYS:
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}"
        )
    at = wrapped(dim, self._array.ndim)
    if index._array.ndim > 1:
        raise IndexError("index_reduce_(): Index is supposed to be a vector")
    shape = list(source.shape)
    n = shape[at] if shape else 1
    if index._array.size != n:
        raise IndexError(
            f"index_reduce_(): Number of indices ({index._array.size}) should be equal to "
            f"self.size(dim) ({n})"
        )
    steps = [1] * len(shape)
    if shape:
        steps[at] = n
    return at, index.reshape(steps).expand(shape)


@public
@method
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """The slices at `index` combined with `source`: their prod, mean, amax or amin."""
    at, places = _whole(input, dim, index, source, reduce)
    return input.scatter_reduce(at, places, source, reduce, include_self=include_self)


@method
def index_reduce_(
    self: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """`index_reduce` in place."""
    at, places = _whole(self, dim, index, source, reduce)
    return self.scatter_reduce_(  # type: ignore[attr-defined]
        at, places, source, reduce, include_self=include_self
    )
