"""gelu: x times the normal distribution's function, exactly or by tanh.

Note [The tail of the normal distribution]
    In double precision SciPy gives its function. In single precision that would take most
    of the time of a network, so here h(x), half the probability of more than |x| on both
    sides together, is exp(-x²/2) times a polynomial in t = 1 / (1 + c·|x|), fitted to the
    smallest relative error (2e-8, which rounding hides). The function is then h or 1 - h.
    The steps are taken in blocks: Note [Blocks].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn.ops.fused import blocks
from gradfn.ops.rule import op
from gradfn.ops.unary import special
from gradfn.tensor import Tensor

Array = Any

_SCALE = 0.45 * math.sqrt(0.5)  # c
_TAIL = (
    1.0971222170268042e-05,
    0.12666267557861802,
    0.13002814057669748,
    0.09480403511610418,
    0.16377241502507434,
    -0.13721491609033862,
    0.3292513136731243,
    -0.31640812146923325,
    0.12888215958657434,
    -0.019788661774689173,
)
_DENSITY = 1 / math.sqrt(2 * math.pi)
_SLOPE, _CUBE = math.sqrt(2 / math.pi), 0.044715  # of the approximation by tanh


def _tail(x: Array, bell: Array) -> Array:
    """h(x); exp(-x²/2) is written into `bell`."""
    np.multiply(x, x, bell)
    bell *= -0.5
    np.exp(bell, bell)
    t = np.abs(x)
    t *= _SCALE
    t += 1
    np.divide(1, t, t)
    h = t * _TAIL[-1]
    for c in reversed(_TAIL[1:-1]):
        h += c
        h *= t
    h += _TAIL[0]
    h *= bell
    return h


def _gelu_block(out: Array, x: Array) -> None:
    h = _tail(x, out)
    h *= np.abs(x, out)
    out += x
    out *= 0.5  # max(x, 0)
    out -= h


def _slope_block(out: Array, x: Array) -> None:
    h = _tail(x, out)
    out *= x
    out *= _DENSITY
    np.subtract(0.5, h, h)
    out += np.copysign(h, x, h)
    out += 0.5


def _in_blocks(x: Array, step: Any) -> Array:
    work = np.ascontiguousarray(x, np.float32)
    out = np.empty(x.shape, np.float32)
    for to, part in blocks(out, work):
        step(to, part)
    return out.astype(x.dtype, copy=False)


def _gelu(x: Array, approximate: str) -> Array:
    if approximate == "tanh":
        return x * (np.tanh(_inner(x)) + 1) * 0.5
    if x.dtype.itemsize > 4:
        return x * special("ndtr")(x)
    return _in_blocks(x, _gelu_block)


def _gelu_slope(x: Array, approximate: str) -> Array:
    if approximate == "tanh":
        th = np.tanh(_inner(x))
        return ((1 - th * th) * (x * _inner_slope(x)) + th + 1) * 0.5
    if x.dtype.itemsize > 4:
        return special("ndtr")(x) + x * np.exp(x * x * -0.5) * _DENSITY
    return _in_blocks(x, _slope_block)


def _inner(x: Any) -> Any:
    return (x * x * _CUBE + 1) * x * _SLOPE


def _inner_slope(x: Any) -> Any:
    return (x * x * (3 * _CUBE) + 1) * _SLOPE


def _bend(xp: Any, x: Any, approximate: str) -> Any:
    """The second derivative."""
    if approximate != "tanh":
        return xp.exp(x * x * -0.5) * (2 - x * x) * _DENSITY
    th, slope = xp.tanh(_inner(x)), _inner_slope(x)
    bend = x * (6 * _CUBE * _SLOPE) - th * slope * slope * 2
    return (1 - th * th) * (slope + x * bend * 0.5)


_hidden = {"function": False, "method": False}
_row = op(
    "_gelu(self, approximate)",
    _gelu,
    **_hidden,
    node="Gelu",
    self=lambda g, xp, self, approximate: g * xp._gelu_slope(self, approximate),
).function
op(
    "_gelu_slope(self, approximate)",
    _gelu_slope,
    **_hidden,
    self=lambda g, xp, self, approximate: g * _bend(xp, self, approximate),
)


def gelu(input: Tensor, approximate: str = "none") -> Any:
    """x times the normal distribution's function at x, exactly or by "tanh".

    RuntimeError for another way, NotImplementedError for dtypes that are not floating.
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(
            f"approximate argument must be either none or tanh, but got {approximate!r}."
        )
    if input._array.dtype.kind != "f":
        raise NotImplementedError(f"gelu is not implemented for {input.dtype}")
    return _row(input, approximate)
