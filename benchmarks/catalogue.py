"""What is measured: each workload's name, its size, and how far it may go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Unit = Literal["×", "B/node", "MB"]  # ×: a ratio to PyTorch; a MB is 10⁶ bytes


@dataclass(frozen=True)
class Memory:
    """A workload's memory is measured too: of its graph, or the peak of its step."""

    of: Literal["graph", "step"]
    unit: Unit
    limit: float
    nodes: int = 1


@dataclass(frozen=True)
class Entry:
    """A function of workloads.py and by_hand.py with its arguments.

    The limit is of the ratio of CPU times, gradfn's to PyTorch's.
    """

    name: str
    limit: float
    function: str
    arguments: tuple[Any, ...] = ()
    memory: Memory | None = None


ENTRIES = (
    Entry("square3", 0.28, "square"),
    Entry("ops3", 0.40, "ops"),
    Entry("chain1000", 0.50, "chain", (1000,)),
    Entry(
        "chain100000",
        0.55,
        "chain",
        (100_000,),
        Memory("graph", "B/node", 1000, nodes=100_000),
    ),
    Entry("leaf10000", 0.55, "leaf", (10_000,)),
    Entry("net32", 0.55, "net", (32, 64, 64, 10)),
    Entry("net128", 0.85, "net", (128, 784, 256, 10)),
    Entry("elementwise1e4", 0.60, "elementwise", (10**4,)),
    Entry("elementwise1e6", 0.60, "elementwise", (10**6,)),
    Entry("elementwise1e7", 0.45, "elementwise", (10**7,), Memory("step", "×", 1.0)),
    Entry("jacrev64", 1.0, "jacobian", ("jacrev", 64)),
    Entry("jacfwd64", 1.0, "jacobian", ("jacfwd", 64)),
    Entry("jacloop64", 1.0, "jacobian", ("loop", 64)),
    Entry("hvp32", 1.0, "hvp", (32, 64, 64, 10)),
    Entry("samples128", 1.0, "samples", (128, 784, 256, 10)),
)
BY_NAME = {entry.name: entry for entry in ENTRIES}

# A whole process rather than a function, so it stands apart; see startup.py.
STARTUP = "startup"
STARTUP_LIMIT = 0.13
STARTUP_MEMORY = Memory("step", "MB", 42)

NAMES = (*BY_NAME, STARTUP)
