"""interpolate: each dim of an image times a matrix of weights (Note [Resampling])."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from gradfn.nn.arguments import several
from gradfn.nn.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)
from gradfn.nn.resample import Matrix, from_elements, resample
from gradfn.tensor import Tensor

Array = Any

_DIMS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_AREA = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """The input, (sample, channel, *places), with another number of places.

    `size`, or `scale_factor` times the present one, is an int (a float) or one for each
    dim. Modes: "nearest", "nearest-exact", "area" (means), and "linear", "bilinear",
    "trilinear" and "bicubic" for so many dims. `align_corners` keeps the outermost values where
    they are; `antialias` widens the filters ("bilinear", "bicubic") where it shrinks.

    ValueError for none or both of the sizes, and for options that the mode has not;
    NotImplementedError for a mode that goes with another number of dims.
    """
    n = input.dim() - 2
    _check(mode, n, input, align_corners, antialias)
    sizes = tuple(input.shape[2:])
    counts, scales = _sizes(sizes, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        return _AREA[n - 1](input, counts)
    kind = _filter_name(mode, antialias)
    matrices = tuple(
        _matrix(kind, at, to, scale, bool(align_corners))
        for at, to, scale in zip(sizes, counts, scales, strict=True)
    )
    return resample(input, matrices)


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:
    """The older name of `interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` by the nearest value."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` by two straight lines, corners kept."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


def _check(mode: str, n: int, input: Tensor, align: Any, antialias: bool) -> None:
    simple = mode in ("nearest", "nearest-exact", "area")
    if simple and align is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | "
            f"bilinear | bicubic | trilinear, and not with {mode!r}"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            "Anti-alias option is only supported for bilinear and bicubic modes, and not for "
            f"{mode!r}"
        )
    if n not in (1, 2, 3) or (not simple and _DIMS.get(mode) != n):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear "
            f"| area | nearest-exact (got {mode}); linear goes with 3D, bilinear and bicubic "
            "with 4D, trilinear with 5D"
        )
    if not input.is_floating_point():
        raise RuntimeError(
            f"interpolate: expected a floating point input, got {input.dtype}"
        )


def _sizes(sizes: Any, size: Any, factor: Any, recompute: Any) -> tuple[Any, Any]:
    """New sizes, and the given factors where these are to be taken at their word."""
    if size is not None and factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and factor is None:
        raise ValueError("either size or scale_factor should be defined")
    n = len(sizes)
    if size is not None:
        if recompute:
            raise ValueError(
                "recompute_scale_factor is not meaningful with an explicit size."
            )
        _check_count("size", size, n)
        counts: Any = several(size, n, "size")
        factors: Any = (None,) * n
    else:
        _check_count("scale_factor", factor, n)
        given = factor if isinstance(factor, (tuple, list)) else (factor,) * n
        counts = tuple(
            math.floor(m * float(f)) for m, f in zip(sizes, given, strict=True)
        )
        factors = (None,) * n if recompute else tuple(float(f) for f in given)
    if min(*sizes, *counts) < 1:
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input size "
            f"{list(sizes)} and output size {list(counts)}"
        )
    return counts, factors


def _check_count(name: str, given: Any, n: int) -> None:
    if isinstance(given, (tuple, list)) and len(given) != n:
        raise ValueError(
            f"Input and {name} must have the same number of spatial dimensions, but got input "
            f"with {n} of them and {name} {list(given)}"
        )


def _filter_name(mode: str, antialias: bool) -> str:
    kind = "linear" if mode.endswith("linear") else mode
    return f"smooth {kind}" if antialias else kind


@lru_cache(256)
def _matrix(kind: str, size: int, count: int, factor: Any, align: bool) -> Matrix:
    """The weights of `size` values in `count` new ones."""
    rows = np.arange(count)
    if align and not kind.startswith("nearest"):
        step = (size - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = 1 / factor if factor else size / count
    if kind.startswith("nearest"):
        shift = np.float32(0.5 if kind == "nearest-exact" else 0)
        at = np.floor((rows.astype(np.float32) + shift) * np.float32(step))
        columns = np.minimum(at.astype(int), size - 1)
        return from_elements(count, size, rows, columns, np.ones(count))
    if kind.startswith("smooth"):
        return _smooth(kind, size, count, step)
    at = rows * step if align else (rows + 0.5) * step - 0.5
    if kind == "linear":
        return _blend(size, np.maximum(at, 0), 0, 2, _triangle)
    return _blend(size, at, -1, 4, lambda x: _cubic(x, -0.75))


def _blend(size: int, at: Array, first: int, taps: int, weigh: Any) -> Matrix:
    """Some neighbours of each place; the outermost stand for what lies outside."""
    low = np.floor(at).astype(int)
    near = low[:, None] + first + np.arange(taps)
    weights = weigh(at[:, None] - near)
    rows = np.broadcast_to(np.arange(len(at))[:, None], near.shape)
    columns = near.clip(0, size - 1)
    return from_elements(len(at), size, rows.ravel(), columns.ravel(), weights.ravel())


def _smooth(kind: str, size: int, count: int, step: float) -> Matrix:
    """A filter as wide as the step, cut at the edges, with weights that add up to 1."""
    reach, weigh = _SMOOTH[kind]
    wide = max(step, 1.0)
    center = step * (np.arange(count) + 0.5)
    first = np.maximum((center - reach * wide + 0.5).astype(int), 0)
    end = np.minimum((center + reach * wide + 0.5).astype(int), size)
    near = first[:, None] + np.arange(int((end - first).max()))
    weights = weigh((near - center[:, None] + 0.5) / wide) * (near < end[:, None])
    weights /= weights.sum(1, keepdims=True)
    good = near < end[:, None]
    rows = np.broadcast_to(np.arange(count)[:, None], near.shape)
    return from_elements(count, size, rows[good], near[good], weights[good])


def _triangle(x: Array) -> Array:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(x: Array, a: float) -> Array:
    """The cubic convolution kernel of Keys (1981) with its free parameter."""
    x = np.abs(x)
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = a * (((x - 5) * x + 8) * x - 4)
    return np.where(x <= 1, inner, np.where(x < 2, outer, 0.0))


_SMOOTH: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "smooth linear": (1.0, _triangle),
    "smooth bicubic": (2.0, lambda x: _cubic(x, -0.5)),
}
