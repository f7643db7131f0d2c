"""Channels as places and back: pixel_shuffle, pixel_unshuffle, channel_shuffle."""

from __future__ import annotations

from typing import Any

from gradfn.tensor import Tensor


def _check(op: str, input: Tensor, factor: int) -> None:
    if input.dim() < 3:
        raise RuntimeError(
            f"{op} expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{op} expects a positive factor, but got {factor}")


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Any:
    """(*, C·r², H, W) as (*, C, H·r, W·r). RuntimeError if r² does not divide the channels."""
    r = int(upscale_factor)
    _check("pixel_shuffle", input, r)
    *lead, channels, h, w = input.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the "
            f"square of upscale_factor, but input.size(-3)={channels} is not divisible by "
            f"{r * r}"
        )
    out = channels // (r * r)
    parts = input.reshape(*lead, out, r, r, h, w)
    return parts.movedim((-4, -3), (-3, -1)).reshape(*lead, out, h * r, w * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Any:
    """(*, C, H·r, W·r) as (*, C·r², H, W). RuntimeError if r does not divide H and W."""
    r = int(downscale_factor)
    _check("pixel_unshuffle", input, r)
    *lead, channels, h, w = input.shape
    for size, which, place in ((h, "height", -2), (w, "width", -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {which} to be divisible by downscale_factor, but "
                f"input.size({place})={size} is not divisible by {r}"
            )
    parts = input.reshape(*lead, channels, h // r, r, w // r, r)
    return parts.movedim((-3, -1), (-4, -3)).reshape(
        *lead, channels * r * r, h // r, w // r
    )


def channel_shuffle(input: Tensor, groups: int) -> Any:
    """The channels (dim 1) of several groups interleaved. RuntimeError if they are uneven."""
    _check("channel_shuffle", input, groups)
    n, channels, *places = input.shape
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and "
            f"{groups} groups."
        )
    parts = input.reshape(n, groups, channels // groups, *places)
    return parts.transpose(1, 2).reshape(n, channels, *places)
