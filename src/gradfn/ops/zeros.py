"""A gradient of zero stays zero where a derivative is infinite.

Note [Zero annihilates]
    `where(x > 0, sqrt(x), x)` throws away sqrt's branch where x is not positive: the
    gradient that comes back to sqrt is exactly 0 there. Its derivative is infinite or NaN,
    and 0 times that is NaN, which would poison what is before. So on rows whose derivative
    has poles (`singular=True`) such products are 0; on other elementwise rows they are if
    the pass has come by an op that throws values away (`discards=True`), for there an
    infinite derivative means overflow, and NaN, as in PyTorch, is its alarm.
    Nothing is looked at until some kernel of the process has divided by zero or met an
    invalid operation: NumPy tells (`trouble` in _state.py). Programs whose numbers are
    finite pay for one look at a flag.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np

from gradfn.ops.world import RECORDED
from gradfn.tensor import Tensor


class Setting:
    """Whether zero annihilates, in this process."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = True


setting = Setting()


class zero_annihilates:
    """Turns the repair of gradients that are exactly zero on or off.

    Takes effect at once, for all threads, and until the end of a `with` block if it is
    used as one. Off, gradients are IEEE's and PyTorch's: 0 times infinity is NaN.
    """

    def __init__(self, mode: bool) -> None:
        self._before = setting.on
        setting.on = bool(mode)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        setting.on = self._before


def annihilated(grad: Any, g: Any) -> Any:
    """The gradient `grad`, computed from `g`, with 0 where g is 0 and grad not finite."""
    if not setting.on or grad is None or np.isfinite(np.vdot(grad, grad)):
        return grad
    if g.shape != grad.shape:
        return grad
    return np.where((g == 0) & ~np.isfinite(grad), grad.dtype.type(0), grad)


def annihilated_tensor(grad: Any, g: Any) -> Any:
    """The same on tensors, recorded."""
    if not setting.on or not isinstance(grad, Tensor):
        return grad
    array = grad._array
    if type(array) is np.ndarray and np.isfinite(np.vdot(array, array)):
        return grad
    if g._array.shape != array.shape:
        return grad
    bad = RECORDED.logical_and(g == 0, RECORDED.logical_not(RECORDED.isfinite(grad)))
    return RECORDED._masked_fill(grad, bad, 0.0)
