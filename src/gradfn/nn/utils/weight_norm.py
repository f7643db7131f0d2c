"""The older weight_norm, which recomputes the weight by a hook before each call."""

from __future__ import annotations

from typing import Any

from gradfn._names import callable_as
from gradfn.nn.modules.module import Module
from gradfn.nn.parameter import Parameter
from gradfn.nn.utils.parametrizations import norm_except

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook: sets the weight from `<name>_g` and `<name>_v`."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """g * v / |v|."""
        g, v = (getattr(module, f"{self.name}_{part}") for part in "gv")
        return v * (g / norm_except(v, self.dim))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Computes a weight from its lengths along `dim` and its directions.

    RuntimeError if the weight has it already.
    """
    if _find(module, name) is not None:
        raise RuntimeError(
            f"Cannot register two weight_norm hooks on the same parameter {name}"
        )
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    delattr(module, name)
    length = Parameter(norm_except(weight, hook.dim).detach())
    module.register_parameter(f"{name}_g", length)
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight a plain parameter again. ValueError if it is one."""
    key = _find(module, name)
    if key is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    hook, _ = module._forward_pre_hooks.pop(key)
    weight = hook.compute_weight(module).detach()
    for gone in (name, f"{name}_g", f"{name}_v"):
        delattr(module, gone)
    setattr(module, name, Parameter(weight))
    return module


def _find(module: Any, name: str) -> Any:
    for key, (hook, _) in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            return key
    return None


callable_as(__name__, weight_norm)
