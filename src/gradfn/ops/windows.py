"""Windows: weights that fade a piece of a signal in and out.

Each is a function of the place i of n points, the same from both ends. One that is to be
repeated (periodic) is that of n + 1 points without the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradfn.ops.create import finished, wanted
from gradfn.ops.world import public
from gradfn.tensor import Tensor

Shape = Callable[[Any, int], Any]


def window(
    name: str, points: int, periodic: bool, shape: Shape, dtype: Any, options: Any
) -> Tensor:
    """A tensor with `shape(i, n)` for each i. RuntimeError for dtypes that are not real."""
    kind = wanted(dtype)
    if kind.kind != "f":
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: torch.{kind} (such as torch.float32)"
        )
    if points < 2:
        return finished(np.ones(points, kind), **options)
    n = points + bool(periodic)
    values = shape(np.arange(points, dtype=np.float64), n)
    return finished(np.asarray(values).astype(kind), **options)


def cosines(*weights: float) -> Shape:
    """A sum of cosines of 0, 1, 2, … periods, with signs that alternate."""

    def shape(i: Any, n: int) -> Any:
        turn = 2 * np.pi * i / (n - 1)
        return sum((-1) ** k * a * np.cos(k * turn) for k, a in enumerate(weights))

    return shape


def triangle(i: Any, n: int) -> Any:
    """Bartlett's: up to 1 and down again."""
    return 1 - np.abs(2 * i / (n - 1) - 1)


def kaiser(beta: float) -> Shape:
    """Kaiser's, by the modified Bessel function of order 0."""

    def shape(i: Any, n: int) -> Any:
        at = 2 * i / (n - 1) - 1
        return np.i0(beta * np.sqrt(np.maximum(1 - at * at, 0))) / np.i0(beta)

    return shape


BLACKMAN = (0.42, 0.5, 0.08)


def _checked(name: str, points: int) -> int:
    if points < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={points}"
        )
    return points


def _named(name: str, shape: Shape, doc: str) -> None:
    def make(
        window_length: int, periodic: bool = True, *, dtype: Any = None, **options: Any
    ) -> Tensor:
        points = _checked(name, window_length)
        return window(name, points, periodic, shape, dtype, options)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    public(make)


_named("bartlett_window", triangle, "Bartlett's window: a triangle.")
_named("blackman_window", cosines(*BLACKMAN), "Blackman's window: three cosines.")
_named("hann_window", cosines(0.5, 0.5), "Hann's window: a period of a cosine.")


@public
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    **options: Any,
) -> Tensor:
    """Hamming's window: alpha - beta * a period of a cosine."""
    points = _checked("hamming_window", window_length)
    shape = cosines(alpha, beta)
    return window("hamming_window", points, periodic, shape, dtype, options)


@public
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    **options: Any,
) -> Tensor:
    """Kaiser's window; `beta` says how narrow it is."""
    points = _checked("kaiser_window", window_length)
    return window("kaiser_window", points, periodic, kaiser(beta), dtype, options)
