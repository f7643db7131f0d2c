"""torch.func, name for name: derivatives and vmap of functions.

Beyond PyTorch there are custom_vjp and custom_jvp, which make a plain function one with
derivatives of its own.
"""

from __future__ import annotations

from gradfn.func.decorators import custom_jvp, custom_vjp
from gradfn.func.derivatives import grad, grad_and_value, jvp, linearize, vjp
from gradfn.func.jacobians import hessian, jacfwd, jacrev
from gradfn.func.modules import functional_call, stack_module_state
from gradfn.func.vmap import vmap

__all__ = [
    "custom_jvp",
    "custom_vjp",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
