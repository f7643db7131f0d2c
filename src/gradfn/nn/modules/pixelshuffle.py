"""Channels as pixels, and back."""

from __future__ import annotations

from gradfn.nn.modules.simple import REQUIRED, simple

__all__ = ["PixelShuffle", "PixelUnshuffle"]

PixelShuffle = simple("PixelShuffle", "pixel_shuffle", {"upscale_factor": REQUIRED})
PixelUnshuffle = simple(
    "PixelUnshuffle", "pixel_unshuffle", {"downscale_factor": REQUIRED}
)
