"""The processes in which the libraries run: their environment, orders to workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).resolve().parent
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# The first two change which kernels NumPy's products use, and so only NumPy's times;
# without the cache that the third forbids, each start would compile the checkout anew.
DROPPED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONDONTWRITEBYTECODE")


class BenchmarkError(Exception):
    """A workload failed, or the libraries do not agree on its results."""


def pin(cpu: int | None) -> int | None:
    """Keep this process and all that it starts on one CPU, by default the last one."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    if cpu is None:
        cpu = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    return cpu


def environment() -> dict[str, str]:
    """Ours, with one thread, and the checkout's gradfn before any that is installed."""
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
    path = [str(HERE.parent / "src"), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": os.pathsep.join(path)}


class Worker:
    """A process of worker.py, of which things are asked by the names of its methods."""

    def __init__(self, library: str) -> None:
        self.library = library
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            encoding="utf-8",
        )
        self._answer("import")

    def ask(self, order: str, **arguments: Any) -> Any:
        assert self._process.stdin
        try:
            print(json.dumps([order, arguments]), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            pass  # it has ended, which shows below
        return self._answer(order)

    def _answer(self, order: str) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            raise BenchmarkError(f"{self.library}, {order}: it ended with {status}")
        answer = json.loads(line)
        if "error" in answer:
            raise BenchmarkError(f"{self.library}, {order}:\n{answer['error']}")
        return answer["answer"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
