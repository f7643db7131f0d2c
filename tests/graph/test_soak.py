"""Steps over and over, with all that a graph can hold: memory stays as it was.

`GRADFN_SOAK` sets the number of steps. The garbage collector is off, so a cycle counts
as a leak.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import gradfn as torch
from gradfn.utils.checkpoint import checkpoint
from tests.support import function, leaf

STEPS = int(os.environ.get("GRADFN_SOAK", "2000"))
WARM_UP = 500
MEBIBYTE = 2**20

cube = function(
    lambda ctx, x: (ctx.save_for_backward(x), x**3)[1],
    lambda ctx, g: 3 * g * ctx.saved_tensors[0] ** 2,
)


def step(x: Any, w: Any) -> None:
    """One pass with hooks, views, writes, a checkpoint and packed tensors."""
    y = x * w
    y.register_hook(lambda g: g * 1)
    y.retain_grad()
    y[0] = w[1] * 2  # a write through a view
    y[1:].mul_(2)
    z = cube.apply(y)
    z.grad_fn.register_hook(lambda ins, outs: None)
    part = checkpoint(lambda t: (t * t).tanh(), z, use_reentrant=False)
    again = checkpoint(lambda t: t.sin() * w, z, use_reentrant=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda box: box[0]):
        last = (part * again).exp()
    first, second = last.unbind()
    (first + second).backward()
    x.grad = w.grad = None


def resident() -> int:
    """How many bytes of memory the process holds (Linux)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_flat() -> None:
    x, w = leaf(0.1, 0.2), leaf(0.3, 0.4)
    removed = w.register_post_accumulate_grad_hook(lambda t: None)
    gc.collect()
    gc.disable()
    try:
        for _ in range(WARM_UP):
            step(x, w)
        objects, memory = len(gc.get_objects()), resident()
        for _ in range(STEPS):
            step(x, w)
        grown, more = len(gc.get_objects()) - objects, resident() - memory
    finally:
        gc.enable()
    removed.remove()
    print(f"{STEPS} steps: {grown} objects and {more / MEBIBYTE:.1f} MiB more")
    assert grown < 200  # the same after 500 steps and after 100 000
    assert more < 4 * MEBIBYTE
