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
from gradfn.ops.zeros import zero_annihilates

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "zero_annihilates",
]

# Loaded when first named. As in torch, the function gradcheck hides its module.
_LATE_FUNCTIONS = {
    "detect_anomaly": "anomaly_mode",
    "set_detect_anomaly": "anomaly_mode",
    "gradcheck": "gradcheck",
    "gradgradcheck": "gradcheck",
}
__getattr__ = _late(
    __name__,
    (
        "anomaly_mode",
        "forward_ad",
        "functional",
        "graph",
        "profiler",
        "profiler_util",
    ),
    _LATE_FUNCTIONS,
)
