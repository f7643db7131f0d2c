"""torch.gradient: derivatives of sampled functions by differences."""

from __future__ import annotations

from typing import Any

from gradfn.ops.sizes import sizes, wrapped
from gradfn.ops.world import PUBLIC, public
from gradfn.tensor import Tensor


@public
def gradient(
    input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> Any:
    """The derivative along each dim: second-order differences, one-sided at the ends.

    `spacing` is one distance, one for each dim, or a sequence of tensors of coordinates.
    `edge_order` 1 or 2 is how exact it is at the ends. RuntimeErrors.
    """
    ndim = input._array.ndim
    if input._array.dtype.kind == "u":
        raise RuntimeError(f"torch.gradient does not support {input.dtype} input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = list(range(ndim)) if dim is None else [wrapped(d, ndim) for d in sizes((dim,))]
    for i, d in enumerate(dims):
        if d in dims[:i]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        if input._array.shape[d] <= edge_order:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1, "
                f"but dim {d} has size {input._array.shape[d]}"
            )
    steps = _steps(1 if spacing is None else spacing, dims, ndim, dim is None)
    return tuple(
        _slope(input, d, step, edge_order) for d, step in zip(dims, steps, strict=True)
    )


def _steps(spacing: Any, dims: list[int], ndim: int, all_dims: bool) -> list[Any]:
    """A distance or a tensor of coordinates for each dim."""
    single = isinstance(spacing, Tensor) and not spacing._array.ndim
    if single or not isinstance(spacing, (Tensor, list, tuple)):
        return [spacing] * len(dims)
    given = [spacing] if isinstance(spacing, Tensor) else list(spacing)
    if len(given) == len(dims):
        return given
    where = f"'self.dim() = {ndim}', since dim argument was not given"
    if not all_dims:
        where = f"the length of dim, {len(dims)}"
    raise RuntimeError(
        "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
        f"equal to {where}, but got a list of length {len(given)}"
    )


def _slope(x: Tensor, dim: int, step: Any, edge_order: int) -> Any:
    n = x._array.shape[dim]

    def at(start: int, length: int = 1) -> Any:
        return x.narrow(dim, start % n, length)

    if isinstance(step, Tensor) and step._array.ndim:
        return _uneven(at, n, x, dim, step, edge_order)
    inner = (at(2, n - 2) - at(0, n - 2)) / (2 * step)
    if edge_order == 1:
        first, last = (at(1) - at(0)) / step, (at(-1) - at(-2)) / step
    else:
        first = (at(0) * -1.5 + at(1) * 2 - at(2) * 0.5) / step
        last = (at(-1) * 1.5 - at(-2) * 2 + at(-3) * 0.5) / step
    return PUBLIC["cat"]([first, inner, last], dim)


def _uneven(at: Any, n: int, x: Tensor, dim: int, places: Tensor, edge_order: int) -> Any:
    """The derivative of the parabola through each place and its neighbours."""
    if places._array.shape != (n,):
        raise RuntimeError(
            f"torch.gradient expected the coordinates of dim {dim} to be a tensor of {n} "
            f"elements, but got one of shape {list(places.shape)}"
        )
    gaps = (places[1:] - places[:-1]).reshape((-1,) + (1,) * (x._array.ndim - dim - 1))
    before, after = gaps[:-1], gaps[1:]
    span = before + after
    inner = at(2, n - 2) * (before / (after * span)) - at(0, n - 2) * (
        after / (before * span)
    )
    inner = inner + at(1, n - 2) * ((after - before) / (before * after))
    if edge_order == 1:
        first, last = (at(1) - at(0)) / gaps[:1], (at(-1) - at(-2)) / gaps[-1:]
    else:
        first = _end(at(0), at(1), at(2), gaps[:1], gaps[1:2])
        last = -_end(at(-1), at(-2), at(-3), gaps[-1:], gaps[-2:-1])
    return PUBLIC["cat"]([first, inner, last], dim)


def _end(outer: Any, middle: Any, inner: Any, near: Any, far: Any) -> Any:
    """The derivative at the outer of three places, towards the inner one."""
    span = near + far
    return (
        middle * (span / (near * far))
        - outer * ((near + span) / (near * span))
        - inner * (near / (far * span))
    )
