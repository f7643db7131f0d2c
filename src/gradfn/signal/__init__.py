"""torch.signal: windows."""

from __future__ import annotations

from gradfn.signal import windows

__all__ = ["windows"]
