"""Channels of groups, interleaved."""

from __future__ import annotations

from gradfn.nn.modules.simple import REQUIRED, simple

__all__ = ["ChannelShuffle"]

ChannelShuffle = simple("ChannelShuffle", "channel_shuffle", {"groups": REQUIRED})
