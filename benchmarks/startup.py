"""A whole process, from its start to its first gradient."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

from catalogue import STARTUP, STARTUP_LIMIT, STARTUP_MEMORY
from figures import Figure, Round
from processes import HERE, BenchmarkError, environment

PROGRAM = """
import {library} as torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        return grad_output * 2 * x

x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
Square.apply(x).sum().backward()
print(x.grad.tolist())
"""

BY_HAND = """
import numpy as np

x = np.array([1.0, -2.0, 3.0], np.float32)
loss = (x ** 2).sum()
print((np.ones_like(x) * 2 * x).tolist())
"""

PRINTED = "[2.0, -4.0, 6.0]"


def can_launch() -> bool:
    return hasattr(os, "wait4")


def measure_startup(candidate: str, rounds: int) -> list[Figure]:
    programs = {
        "torch": PROGRAM.format(library="torch"),
        "candidate": PROGRAM.format(library=candidate),
        "numpy": BY_HAND,
    }
    run_round(programs)  # the first reads files from the disk, and compiles modules
    done = [run_round(programs) for _ in range(rounds)]
    times = [{role: seconds for role, (seconds, _) in each.items()} for each in done]
    sizes: Round = {role: median(each[role][1] for each in done) for role in programs}
    name = f"{STARTUP} memory"
    memory = STARTUP_MEMORY
    return [
        Figure.of_times(STARTUP, STARTUP_LIMIT, times),
        Figure.absolute(name, memory.limit, memory.unit, sizes),
    ]


def run_round(programs: dict[str, str]) -> dict[str, tuple[float, float]]:
    return {role: launch(program) for role, program in programs.items()}


def launch(program: str) -> tuple[float, float]:
    """The CPU time of a process in seconds, and its peak memory in MB."""
    launcher = [sys.executable, "-I", "-S", str(HERE / "launch.py")]
    done = subprocess.run(
        [*launcher, sys.executable, "-c", program],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    printed, _, usage = done.stdout.strip().rpartition("\n")
    if done.returncode or printed != PRINTED:
        raise BenchmarkError(f"it prints {printed!r}, not {PRINTED!r}:\n{program}")
    seconds, size = map(float, usage.split())
    return seconds, size / 1e6
