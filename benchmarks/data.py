"""The numbers that all libraries are given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

X = [1.0, -2.0, 3.0]
W = [0.5, 0.25, -0.125]
B = [0.1, 0.2, 0.3]

# So near to one that a hundred thousand factors neither overflow nor vanish: the time
# of subnormal numbers would be the processor's, not the library's.
FACTORS = [0.99999, 1.0, 1.00001]

RATE = 0.01  # of the descent of the network


def normal(seed: int, *shape: int, scale: float = 1.0) -> Array:
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    values *= np.float32(scale)
    return values


def network(batch: int, inputs: int, hidden: int, outputs: int) -> tuple[Array, ...]:
    """Inputs, targets, then weights and biases of two layers."""
    return (
        normal(1, batch, inputs),
        normal(2, batch, outputs),
        normal(3, inputs, hidden, scale=inputs**-0.5),
        normal(4, hidden, scale=0.1),
        normal(5, hidden, outputs, scale=hidden**-0.5),
        normal(6, outputs, scale=0.1),
    )
