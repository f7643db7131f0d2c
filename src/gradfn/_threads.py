"""torch.get_num_threads and the like."""

from __future__ import annotations

import os

_asked: dict[str, int] = {}


def get_num_threads() -> int:
    """How many threads matrix products may use: as set, by OMP_NUM_THREADS, or all."""
    if "compute" in _asked:
        return _asked["compute"]
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return int(wanted) if wanted.isdecimal() and int(wanted) else os.cpu_count() or 1


def set_num_threads(num: int) -> None:
    """Limits the threads of NumPy's BLAS, where threadpoolctl is installed to do so.

    Without it the number is kept and BLAS goes by OMP_NUM_THREADS. TypeError unless an int,
    RuntimeError unless positive.
    """
    _asked["compute"] = _positive("set_num_threads", num)
    try:
        import threadpoolctl  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return
    threadpoolctl.threadpool_limits(limits=num)


def get_num_interop_threads() -> int:
    """1: ops run one after the other."""
    return _asked.get("interop", 1)


def set_num_interop_threads(num: int) -> None:
    """Keeps the number; ops run one after the other. RuntimeError unless positive."""
    _asked["interop"] = _positive("set_num_interop_threads", num)


def _positive(name: str, num: int) -> int:
    if isinstance(num, bool) or not isinstance(num, int):
        raise TypeError(f"{name} expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError(f"{name} expects a positive integer, but got {num}")
    return num
