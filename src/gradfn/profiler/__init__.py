"""torch.profiler: profiles in steps, for training loops. See also autograd.profiler."""

from __future__ import annotations

from gradfn.autograd.profiler import record_function
from gradfn.profiler.steps import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
