"""Memory: in a process that has done nothing else, as freed memory would be used again
and growth not seen."""

from __future__ import annotations

import os

from catalogue import Entry, Memory
from figures import Figure
from processes import Worker

WARM_UP = "ops3"  # what a library loads at its first step is not the workload's


def can_weigh() -> bool:
    return os.path.exists("/proc/self/statm")


def measure_memory(entry: Entry, memory: Memory, candidate: str) -> list[Figure]:
    libraries = {"torch": "torch", "candidate": candidate}
    if memory.of == "step":  # by hand, there is no graph
        libraries["numpy"] = "numpy"
    sizes = {
        role: weigh(library, entry.name, memory) / memory.nodes
        for role, library in libraries.items()
    }
    name = f"{entry.name} memory"
    if memory.unit == "×":
        return [Figure.of_sizes(name, memory.limit, sizes)]
    return [Figure.absolute(name, memory.limit, memory.unit, sizes)]


def weigh(library: str, name: str, memory: Memory) -> int:
    with Worker(library) as worker:
        worker.ask("prepare", name=WARM_UP)
        worker.ask("check")
        worker.ask("prepare", name=name)
        return int(worker.ask(f"{memory.of}_memory"))
