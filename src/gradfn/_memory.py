"""Has the C library keep memory that arrays give back.

Note [Memory is kept]
    glibc maps large blocks from the kernel one by one and returns each when it is freed,
    so that every new array of some hundred kilobytes begins with page faults: they cost
    as much as the arithmetic. It does so only for blocks larger than any that was freed
    before, up to 32 MB. So one block of nearly that size is taken and given back,
    untouched; it costs a few microseconds and no memory. From then on up to 64 MB of
    freed memory stay with the process. Elsewhere this does nothing.
"""

from __future__ import annotations

import numpy as np

_LARGEST = (32 << 20) - (64 << 10)


def keep_freed_memory() -> None:
    """Raises the size from which freed blocks go back to the system."""
    np.empty(_LARGEST, np.uint8)
