"""torch.backends.mps: not there."""

from __future__ import annotations


def is_available() -> bool:
    """False: gradfn computes with NumPy."""
    return False


def is_built() -> bool:
    """False."""
    return False
