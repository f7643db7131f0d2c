"""torch.autograd, name for name."""

from gradfn.autograd.backward import backward, grad
from gradfn.autograd.function import Function
from gradfn.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)

Variable = None  # set below: importing Tensor here would hide its module
__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]
