"""torch.signal.windows: weights that fade a piece of a signal in and out."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._guard import guard_all
from gradfn.ops.create import wanted
from gradfn.ops.windows import BLACKMAN, Shape, cosines, triangle
from gradfn.ops.windows import kaiser as _kaiser
from gradfn.ops.windows import window as _window
from gradfn.tensor import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _made(name: str, M: int, shape: Shape, sym: bool, dtype: Any, options: Any) -> Tensor:
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if wanted(dtype) not in (np.float32, np.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return _window(name, M, not sym, shape, dtype, options)


def _fixed(name: str, shape: Shape, doc: str) -> Any:
    def make(M: int, *, sym: bool = True, dtype: Any = None, **options: Any) -> Tensor:
        return _made(name, M, shape, sym, dtype, options)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    return make


bartlett = _fixed("bartlett", triangle, "Bartlett's window: a triangle.")
blackman = _fixed("blackman", cosines(*BLACKMAN), "Blackman's window: three cosines.")
cosine = _fixed(
    "cosine", lambda i, n: np.sin(np.pi / n * (i + 0.5)), "Half a period of a sine."
)
hann = _fixed("hann", cosines(0.5, 0.5), "Hann's window: a period of a cosine.")
hamming = _fixed("hamming", cosines(0.54, 0.46), "Hamming's window: a raised cosine.")
nuttall = _fixed(
    "nuttall",
    cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "Nuttall's window: four cosines.",
)


def general_cosine(
    M: int, *, a: Any, sym: bool = True, dtype: Any = None, **options: Any
) -> Tensor:
    """A sum of cosines with the weights `a`, whose signs alternate."""
    if not hasattr(a, "__iter__"):
        raise TypeError("Coefficients must be a list/tuple")
    weights = tuple(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    return _made("general_cosine", M, cosines(*weights), sym, dtype, options)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, **options: Any
) -> Tensor:
    """alpha - (1 - alpha) * a period of a cosine."""
    shape = cosines(alpha, 1 - alpha)
    return _made("general_hamming", M, shape, sym, dtype, options)


def exponential(
    M: int,
    *,
    center: Any = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    **options: Any,
) -> Tensor:
    """Falls off from the centre by a factor e every `tau` points."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def shape(i: Any, n: int) -> Any:
        middle = (n - 1) / 2 if center is None else center
        return np.exp(-np.abs(i - middle) / tau)

    return _made("exponential", M, shape, sym, dtype, options)


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, **options: Any
) -> Tensor:
    """The bell curve of standard deviation `std`."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def shape(i: Any, n: int) -> Any:
        return np.exp(-(((i - (n - 1) / 2) / std) ** 2) / 2)

    return _made("gaussian", M, shape, sym, dtype, options)


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, **options: Any
) -> Tensor:
    """Kaiser's window; `beta` says how narrow it is."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _made("kaiser", M, _kaiser(beta), sym, dtype, options)


guard_all(globals(), __all__)
