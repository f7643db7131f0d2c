"""The mode of the running code, in one integer; and silence for NumPy's kernels.

Note [One integer for every mode]
    Each op must know whether to record, and whether any of the rare features (saved
    tensor hooks, anomaly mode, inference mode, forward AD, observers) is on. All of them
    are bits of one integer in one ContextVar, read once per op: 15 ns, where
    threading.local takes 60. `mode() == GRAD` is the plain case. A new thread starts from
    the default, so grad mode is per thread, as in PyTorch; an asyncio task has its own
    copy.

Note [No RuntimeWarning]
    PyTorch says nothing about overflow or 0/0, NumPy warns. `np.errstate` around each
    kernel would cost 1 µs, switching its ContextVar 200 ns. Calling the kernel inside a
    ready-made Context where errors are ignored costs 25 ns, and leaves the user's own
    NumPy code and settings alone. A Context can be entered by one thread at a time;
    when it is taken, `recover` runs the kernel in a copy of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, ContextVar, Token
from types import TracebackType
from typing import Any

import numpy as np

GRAD = 1  # ops record what is done to tensors that require grad
SAVED_HOOKS = 2  # saved tensors pass through pack and unpack hooks
ANOMALY = 4  # nodes remember where in the program they were made
INFERENCE = 8  # results are inference tensors
FORWARD = 16  # inside Function.forward: intermediates are marked
TRANSFORMS = 32  # forward mode or vmap is at work
OBSERVED = 64  # somebody is told what is recorded and run: graph.observe

MODE: ContextVar[int] = ContextVar("gradfn_mode", default=GRAD)
mode: Callable[[], int] = MODE.get
set_mode = MODE.set
reset_mode = MODE.reset


class Trouble:
    """What Note [Zero annihilates] must know.

    met: has any kernel divided by zero or met an invalid operation in this process? NumPy
    tells, at no cost to kernels that have not. discarded: has the present backward pass
    come by an op that throws values away?
    """

    __slots__ = ("discarded", "met")

    def __init__(self) -> None:
        self.met = self.discarded = False

    def write(self, message: str) -> None:
        """Called by NumPy, for its errors go into this log."""
        self.met = True


trouble = Trouble()


def _be_quiet() -> None:
    np.seterr(all="ignore", divide="log", invalid="log")
    np.seterrcall(trouble)


_quiet = Context()
_quiet.run(_be_quiet)
run = _quiet.run


def recover(error: Exception, kernel: Callable[..., Any], *args: Any) -> Any:
    """Runs a kernel again whose Context was taken; else raises `error` again."""
    if type(error) is RuntimeError and "cannot enter context" in str(error):
        return _quiet.copy().run(kernel, *args)
    try:
        raise error
    finally:
        del error  # else the traceback, this frame and the error hold each other


def quiet(kernel: Callable[..., Any], *args: Any) -> Any:
    """Calls `kernel(*args)` with NumPy's floating-point warnings off."""
    try:
        return run(kernel, *args)
    except RuntimeError as error:
        return recover(error, kernel, *args)


class switch:
    """Turns bits of the mode on and off for a block."""

    __slots__ = ("_off", "_on", "_tokens")

    def __init__(self, on: int = 0, off: int = 0) -> None:
        self._on, self._off = on, ~off
        self._tokens: list[Token[int]] = []

    def __enter__(self) -> None:
        self._tokens.append(MODE.set(MODE.get() & self._off | self._on))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        MODE.reset(self._tokens.pop())
