"""torch.random: the state of random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradfn.ops.random import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """Within it numbers are drawn as one likes; after it the stream goes on as before.

    AssertionError if `devices` names one: there is only the CPU, which is always kept.
    """
    if not enabled:
        yield
        return
    if devices is not None and list(devices):
        raise AssertionError(
            f"{_caller}({_devices_kw}={devices!r}): Torch not compiled with CUDA enabled; "
            "the state of the CPU is kept without naming it"
        )
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
