"""torch.func, name for name: derivatives and vmap of functions.

Beyond PyTorch there are custom_vjp and custom_jvp, which make a plain function one with
derivatives of its own.
"""

from __future__ import annotations

from gradfn.func.decorators import custom_jvp, custom_vjp
from gradfn.func.derivatives import grad, grad_and_value, jvp, linearize, vjp
from gradfn.func.jacobians import hessian, jacfwd, jacrev
from gradfn.func.modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from gradfn.func.vmap import debug_unwrap, vmap

__all__ = [
    "custom_jvp",
    "custom_vjp",
    "debug_unwrap",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
