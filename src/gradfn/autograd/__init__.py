"""torch.autograd, name for name."""

from __future__ import annotations

from gradfn._names import late as _late
from gradfn.autograd import function, grad_mode
from gradfn.autograd.backward import backward, grad
from gradfn.autograd.function import Function
from gradfn.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from gradfn.autograd.variable import Variable

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "grad",
    "grad_mode",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

_FROM_ANOMALY_MODE = ("detect_anomaly", "set_detect_anomaly")
_late_module = _late(
    __name__,
    ("anomaly_mode", "forward_ad", "functional", "gradcheck", "graph", "profiler"),
)


def __getattr__(name: str) -> object:
    if name in _FROM_ANOMALY_MODE:
        from gradfn.autograd import anomaly_mode

        return getattr(anomaly_mode, name)
    return _late_module(name)
