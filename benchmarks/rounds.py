"""Timing in rounds: each library in turn does the same, so that a slow moment of the
machine slows all of them, and the ratios within a round hold."""

from __future__ import annotations

import math
from typing import Any

from catalogue import Entry
from figures import Figure
from processes import BenchmarkError, Worker

ROUND = 0.05  # seconds that a library's part of a round takes, if it is as PyTorch
RELATIVE, OF_LARGEST = 1e-4, 1e-5  # how far results in float32 may differ

Workers = dict[str, Worker]  # "torch", "candidate" and "numpy"


def measure_time(entry: Entry, workers: Workers, rounds: int) -> list[Figure]:
    for worker in workers.values():
        worker.ask("prepare", name=entry.name)
    compare({worker.library: worker.ask("check") for worker in workers.values()})
    repetitions = calibrate(workers["torch"])
    run_round(workers, repetitions)  # the first is for warmth
    times = [run_round(workers, repetitions) for _ in range(rounds)]
    return [Figure.of_times(entry.name, entry.limit, times)]


def run_round(workers: Workers, repetitions: int) -> dict[str, float]:
    return {
        role: worker.ask("time", repetitions=repetitions)
        for role, worker in workers.items()
    }


def calibrate(worker: Worker) -> int:
    """As many repetitions as fill a round."""
    repetitions = 1
    while True:
        step = float(worker.ask("time", repetitions=repetitions))
        if step * repetitions > ROUND / 4:
            return max(1, round(ROUND / step))
        repetitions *= 4


def compare(checks: dict[str, list[dict[str, Any]]]) -> None:
    """Whether all libraries have computed what PyTorch has."""
    for library, results in checks.items():
        if len(results) != len(checks["torch"]):
            raise BenchmarkError(f"{library}: not as many results as torch")
        for index, (mine, theirs) in enumerate(zip(results, checks["torch"])):
            if not close(mine, theirs):
                shown = "\n".join(
                    f"{name}: {result | {'sample': result['sample'][:5]}}"
                    for name, result in ((library, mine), ("torch", theirs))
                )
                raise BenchmarkError(f"result {index} differs\n{shown}")


def close(mine: dict[str, Any], theirs: dict[str, Any]) -> bool:
    if any(mine[what] != theirs[what] for what in ("dtype", "shape")):
        return False
    slack = OF_LARGEST * max(map(abs, theirs["sample"]))
    pairs = zip(
        [mine["magnitude"], *mine["sample"]], [theirs["magnitude"], *theirs["sample"]]
    )
    return all(math.isclose(a, b, rel_tol=RELATIVE, abs_tol=slack) for a, b in pairs)
