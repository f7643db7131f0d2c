"""Grids of coordinates, all combinations, Kronecker products."""

from __future__ import annotations

from typing import Any

from gradfn.ops.shape import unsafe_view
from gradfn.ops.world import PUBLIC, public
from gradfn.tensor import Tensor, method


@public
def meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    """A grid of coordinates from 1-d (or 0-d) tensors, one for each. RuntimeErrors."""
    given = tensors[0] if tensors and not isinstance(tensors[0], Tensor) else tensors
    if not given or any(t._array.ndim > 1 for t in given):
        raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list")
    if any(t.dtype is not given[0].dtype for t in given):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            'torch.meshgrid: indexing must be one of "xy" or "ij", but received: '
            + indexing
        )
    given = [t.reshape(-1) for t in given]
    n = len(given)
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    shape = [given[d]._array.shape[0] for d in order]
    return tuple(
        t.reshape([-1 if d == order[i] else 1 for d in range(n)]).expand(shape)
        for i, t in enumerate(given)
    )


@public
def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of elements of 1-d tensors, one a row. RuntimeError for others."""
    if any(t._array.ndim != 1 for t in tensors):
        raise RuntimeError("Expect a 1D vector")
    if len(tensors) == 1:
        return tensors[0]
    return PUBLIC["stack"]([t.reshape(-1) for t in meshgrid(*tensors)], 1)


@public
@method
def kron(input: Tensor, other: Tensor) -> Any:
    """The Kronecker product."""
    n = max(input._array.ndim, other._array.ndim)
    a = (1,) * (n - input._array.ndim) + input._array.shape
    b = (1,) * (n - other._array.ndim) + other._array.shape
    left = input.reshape([m for size in a for m in (size, 1)])
    right = other.reshape([m for size in b for m in (1, size)])
    shape = tuple(m * k for m, k in zip(a, b, strict=True))
    return unsafe_view(left * right, shape)
