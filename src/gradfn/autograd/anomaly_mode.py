"""torch.autograd.detect_anomaly: errors in backward say where forward stood."""

from __future__ import annotations

from gradfn._state import ANOMALY, MODE
from gradfn.graph.anomaly import CHECKS

__all__ = ["detect_anomaly", "is_anomaly_enabled", "set_detect_anomaly"]


def is_anomaly_enabled() -> bool:
    """Is anomaly mode on, in this thread?"""
    return bool(MODE.get() & ANOMALY)


class set_detect_anomaly:
    """Turns anomaly mode on or off: at once, and until the end of a `with` block.

    An error in backward then comes with the traceback of the forward call: as a warning
    and as a note on the exception. `check_nan`: a NaN in a gradient raises
    RuntimeError; `check_inf` does the same for infinities (PyTorch has no such thing).
    """

    def __init__(
        self, mode: bool, check_nan: bool = True, check_inf: bool = False
    ) -> None:
        self._before = MODE.get() & ANOMALY, CHECKS.get()
        MODE.set(MODE.get() | ANOMALY if mode else MODE.get() & ~ANOMALY)
        CHECKS.set((check_nan, check_inf))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        MODE.set(MODE.get() & ~ANOMALY | self._before[0])
        CHECKS.set(self._before[1])


class detect_anomaly:
    """Anomaly mode for a block; see `set_detect_anomaly`."""

    def __init__(self, check_nan: bool = True, check_inf: bool = False) -> None:
        self._checks = check_nan, check_inf
        self._set: list[set_detect_anomaly] = []

    def __enter__(self) -> None:
        self._set.append(set_detect_anomaly(True, *self._checks))

    def __exit__(self, *error: object) -> None:
        self._set.pop().__exit__()
