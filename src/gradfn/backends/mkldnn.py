"""torch.backends.mkldnn: not there."""

from __future__ import annotations


def is_available() -> bool:
    """False: gradfn computes with NumPy."""
    return False
