"""A process that runs workloads on one library: `worker.py gradfn|torch|numpy`.

It reads orders and writes answers, a line of JSON each: prepare a workload; check, that
is, do a step and tell its results; time some steps; tell the memory that one needs.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from typing import Any

import by_hand
import catalogue
import numpy as np
import single
import workloads

SAMPLE = 1000  # of the elements of a result


class Runner:
    """What can be ordered: each method but the first, by its name."""

    workload: workloads.Workload | None

    def __init__(self, library: str) -> None:
        self.torch = None
        if library != "numpy":
            self.torch = importlib.import_module(library)
            if hasattr(self.torch, "set_num_threads"):
                self.torch.set_num_threads(1)

    def prepare(self, name: str) -> None:
        self.workload = None  # the last one's memory is free before this one's is taken
        entry = catalogue.BY_NAME.get(name) or single.ENTRIES[name]
        if self.torch is None:
            self.workload = getattr(by_hand, entry.function)(*entry.arguments)
        else:
            make = getattr(workloads, entry.function, single.single)
            self.workload = make(self.torch, *entry.arguments)

    def check(self) -> list[dict[str, Any]]:
        assert self.workload
        return [summary(result) for result in self.workload.step()]

    def time(self, repetitions: int) -> float:
        """CPU time of a step; caches are warm, unless one step is all of the round."""
        assert self.workload
        step = self.workload.step
        for _ in range((repetitions + 8) // 10):
            step()
        start = time.process_time()
        for _ in range(repetitions):
            step()
        return (time.process_time() - start) / repetitions

    def graph_memory(self) -> int:
        """By how much the process grows while a graph is made; in a fresh process."""
        assert self.workload
        assert self.workload.record
        before = resident()
        graph = self.workload.record()
        grown = resident() - before
        del graph
        return grown

    def step_memory(self) -> int:
        """The peak of a step above what was there before; in a fresh process."""
        assert self.workload
        before = resident()
        self.workload.step()
        return peak() - before


def summary(result: Any) -> dict[str, Any]:
    """What can be sent of a result of any size, and differs where the result does."""
    array = result.detach().numpy() if hasattr(result, "detach") else np.asarray(result)
    flat = array.ravel()
    return {
        "dtype": str(array.dtype),
        "shape": array.shape,
        "magnitude": float(np.abs(flat).mean(dtype=np.float64)),
        "sample": flat[:: max(1, flat.size // SAMPLE)].tolist(),
    }


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    import resource  # not on Windows, where memory is not measured

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    # What a library may print goes elsewhere than the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)

    def answer(**what: Any) -> None:
        print(json.dumps(what), file=answers)

    try:
        runner = Runner(sys.argv[1])
    except Exception:
        return answer(error=traceback.format_exc())
    answer(answer="ready")

    for line in sys.stdin:
        order, arguments = json.loads(line)
        try:
            result = getattr(runner, order)(**arguments)
        except Exception:
            answer(error=traceback.format_exc())
        else:
            answer(answer=result)


if __name__ == "__main__":
    main()
