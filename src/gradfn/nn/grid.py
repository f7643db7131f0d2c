"""grid_sample and affine_grid: an image looked at through places that one chooses.

Note [Grids]
    A place is turned into pixels, bent back into the image as the padding says, and becomes
    neighbours with weights, dim by dim; their products go into one blend (Note [Blends]).
    Places and weights are small, so that they are made of ops that are recorded.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradfn.nn.blend import blend
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

Array = Any

MODES = ("bilinear", "nearest", "bicubic")  # in the order of their numbers
PADDINGS = ("zeros", "border", "reflection")

# -- back into the image -----------------------------------------------------------------


def _bend(x: Array, padding: str, size: int, align: bool) -> Array:
    """Pixels outside as the place inside that stands for them."""
    return x if padding == "zeros" else _bent(x, padding, size, align)[0]


def _slope(x: Array, padding: str, size: int, align: bool) -> Array:
    """The derivative of `_bend`: 1, -1 or 0."""
    return np.ones_like(x) if padding == "zeros" else _bent(x, padding, size, align)[1]


def _bent(x: Array, padding: str, size: int, align: bool) -> tuple[Array, Array]:
    slope = np.ones_like(x)
    if padding == "reflection":
        x, slope = _reflected(x, *((0, size - 1) if align else (-0.5, size - 0.5)))
    x = np.where(np.isnan(x), np.zeros_like(x), x)
    slope = slope * ((x > 0) & (x < size - 1))
    return x.clip(0, size - 1), slope


def _reflected(x: Array, low: float, high: float) -> tuple[Array, Array]:
    """x thrown back and forth between two mirrors."""
    span = high - low
    if span <= 0:
        return np.zeros_like(x), np.zeros_like(x)
    away = x - low
    slope = np.where(away < 0, -1, 1).astype(x.dtype)
    away = np.abs(away)
    with np.errstate(invalid="ignore"):  # infinite places have none in the image
        rest = np.fmod(away, span)
        odd = np.fmod(np.floor(away / span), 2) == 1
    return np.where(odd, span - rest, rest) + low, np.where(odd, -slope, slope)


_hidden = {"function": False, "method": False}
_bend_row = op(
    "_bend(self, padding, size, align)",
    _bend,
    **_hidden,
    self=lambda g, xp, self, padding, size, align: (
        g * xp._bend_slope(self, padding, size, align)
    ),
).function
op("_bend_slope(self, padding, size, align)", _slope, **_hidden, takes="self")

# -- neighbours and their weights, along one dim -----------------------------------------


def _nearest(x: Any) -> tuple[list[Any], list[Any]]:
    at = x.round()
    return [at], [at * 0 + 1]  # a zero gradient, not none


def _linear(x: Any) -> tuple[list[Any], list[Any]]:
    low = x.floor()
    part = x - low
    return [low, low + 1], [1 - part, part]


def _cubic(x: Any) -> tuple[list[Any], list[Any]]:
    """The four neighbours with the weights of Keys (1981), a = -0.75."""
    low = x.floor()
    part, a = x - low, -0.75

    def inner(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def outer(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    weights = [outer(part + 1), inner(part), inner(1 - part), outer(2 - part)]
    return [low + k for k in range(-1, 3)], weights


_TAPS: dict[str, Callable[[Any], Any]] = {
    "nearest": _nearest,
    "bilinear": _linear,
    "bicubic": _cubic,
}


def _taps(x: Any, size: int, mode: str, padding: str, align: bool) -> Any:
    """(index, weight) pairs along a dim for places from -1 to 1; index -1: outside."""
    pixels = (x + 1) * ((size - 1) / 2) if align else ((x + 1) * size - 1) / 2
    if mode != "bicubic":
        pixels = _bend_row(pixels, padding, size, align)
    places, weights = _TAPS[mode](pixels)
    found = []
    for place, weight in zip(places, weights, strict=True):
        at = place.detach()
        if mode == "bicubic":
            at = _bend_row(at, padding, size, align)
        outside = (at < 0) | (at > size - 1)
        at = at.masked_fill(outside, -1).nan_to_num(0.0).long()
        found.append((at, weight))
    return found


def _joined(taps: Any, sizes: Any) -> tuple[Any, Any]:
    """All combinations of one tap a dim: flat indices and products of weights."""
    found = taps[0]
    for size, more in zip(sizes[1:], taps[1:], strict=True):
        found = [
            ((a * size + b).masked_fill((a < 0) | (b < 0), -1), v * w)
            for a, v in found
            for b, w in more
        ]
    stack = PUBLIC["stack"]
    return stack([i for i, _ in found], 1), stack([w for _, w in found], 1)


# -- the functions -----------------------------------------------------------------------


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """The values of an image at the places of a grid.

    `input` is (sample, channel, [depth,] height, width); `grid`, of the same dtype, is
    (sample, *places, 2 or 3) with x, y(, z) from -1 to 1, the outermost pixels' edges, or
    their centers with `align_corners`. The result is (sample, channel, *places). Modes:
    "bilinear" (also in three dims), "nearest", "bicubic" (two dims). Outside the image
    there are zeros, its "border", or its "reflection".

    ValueError for unknown modes, RuntimeError for shapes and dtypes that do not fit.
    """
    if mode not in MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or "
            f"'bicubic', but got: '{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    align = _told(align_corners)
    _check(input, grid, mode)
    n, channels, *sizes = input.shape
    places = grid.shape[1:-1]
    flat = grid.reshape(n, math.prod(places), len(sizes))
    taps = [
        _taps(flat.select(-1, d), size, mode, padding_mode, align)
        for d, size in zip(reversed(range(len(sizes))), sizes, strict=True)
    ]
    index, weight = _joined(taps, sizes)
    source = input.reshape(n, channels, math.prod(sizes))
    return blend(source, weight, index).reshape(n, channels, *places)


def _told(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to "
            "align_corners=False since 1.3.0; give align_corners to silence this",
            UserWarning,
            stacklevel=3,
        )
    return bool(align_corners)


def _check(input: Tensor, grid: Tensor, mode: str) -> None:
    n, m = list(input.shape), list(grid.shape)
    got = f"but got input with sizes {n} and grid with sizes {m}"
    dims = len(n) - 2
    if not n or not m or n[0] != m[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, " + got
        )
    if m[-1] != dims:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {dims} in last dimension, but got "
            f"grid with sizes {m}"
        )
    if dims not in (2, 3) or len(m) != len(n):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of "
            f"dimensions, {got}"
        )
    if 0 in n[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
            f"has sizes {n} with dimension {n.index(0, 2)} being empty"
        )
    if dims == 3 and mode == "bicubic":
        raise RuntimeError(
            "grid_sampler(): bicubic interpolation only supports 4D input, but got input "
            f"with sizes {n}"
        )
    if not input.is_floating_point():
        raise NotImplementedError(f"grid_sampler() is not implemented for {input.dtype}")
    if input.dtype is not grid.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected scalar type {input.dtype} for grid but found "
            f"{grid.dtype}"
        )


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Any:
    """The grid (for grid_sample) of an affine map of places, one map a sample.

    `theta` is (sample, 2, 3) for a `size` of (sample, channel, height, width), and
    (sample, 3, 4) with a depth; the result is (sample, *places, 2 or 3).

    ValueError for another theta or empty sizes, NotImplementedError for other lengths.
    """
    align = _told(align_corners)
    if not theta.is_floating_point():
        raise ValueError(
            f"Expected theta to have floating point type, but got {theta.dtype}"
        )
    size = tuple(int(m) for m in size)
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for "
            f"size {size}. Got {theta.shape}."
        )
    if align and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids "
            "when align_corners=True: the one place of a dim is its middle",
            UserWarning,
            stacklevel=2,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return affine_grid_generator(theta, size, align)


def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Any:
    """`affine_grid` without its checks."""
    n, _, *sizes = size
    lines = [_centers(m, align_corners) for m in sizes]
    mesh = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*reversed(mesh), np.ones(sizes)], -1).reshape(-1, len(sizes) + 1)
    places = PUBLIC["tensor"](base, dtype=theta.dtype) @ theta.mT
    return places.reshape(n, *sizes, len(sizes))


def _centers(count: int, align: bool) -> Array:
    """Evenly from -1 to 1, or in the middle of even parts of that."""
    if count <= 1:
        return np.zeros(count)
    line = np.linspace(-1, 1, count)
    return line if align else line * ((count - 1) / count)


def grid_sampler(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Any:
    """`grid_sample` with numbers for the modes, in the order in which it lists them."""
    return grid_sample(
        input,
        grid,
        MODES[interpolation_mode],
        PADDINGS[padding_mode],
        bool(align_corners),
    )


grid_sampler_2d = grid_sampler_3d = grid_sampler
