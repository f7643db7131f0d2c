"""Parametrizations: a parameter computed from others each time that it is asked for.

Note [How a parametrization works]
    The parameter moves into `module.parametrizations.<name>.original` and its place in
    the module is taken by a property of a class made for this module, which runs the
    registered modules, one after the other, on the original.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradfn.autograd.grad_mode import no_grad
from gradfn.nn.modules.container import ModuleDict, ModuleList
from gradfn.nn.modules.module import Module
from gradfn.nn.parameter import Parameter
from gradfn.tensor import Tensor

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]
_cache: dict[tuple[int, str], Any] = {}
_caching = 0


@contextmanager
def cached() -> Iterator[None]:
    """Within it each parametrized parameter is computed once."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The modules that compute one parameter, and what they compute it from."""

    is_tensor: bool
    ntensors: int

    def __init__(self, modules: Any, original: Any, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        value: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    value = module.right_inverse(value)
        self.is_tensor = isinstance(value, Tensor)
        self.ntensors = 1 if self.is_tensor else len(value)
        if self.is_tensor:
            self._keep("original", value, original)
        else:
            for i, part in enumerate(value):
                self._keep(f"original{i}", part, original)

    def _keep(self, name: str, value: Any, original: Any) -> None:
        if isinstance(original, Parameter):
            kept = (
                original
                if value is original
                else Parameter(value, original.requires_grad)
            )
            self.register_parameter(name, kept)
        else:
            self.register_buffer(name, value)

    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Writes originals that give this value. RuntimeError without the way back."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement "
                        "right_inverse."
                    )
                value = module.right_inverse(value)
            parts = [value] if self.is_tensor else list(value)
            for own, new in zip(self._originals(), parts, strict=True):
                own.data = new.detach().clone().to(own.dtype)

    def forward(self) -> Any:
        """The parameter."""
        modules = iter(self)
        value = next(modules)(*self._originals())
        for module in modules:
            value = module(value)
        return value


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        if not _caching:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def set(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set)


def _own_class(module: Module) -> None:
    cls = type(module)
    body = {
        "__module__": cls.__module__,
        "_before_parametrizations": cls,
        "__deepcopy__": _deepcopy,
        "__reduce_ex__": _refuse_pickle,
    }
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    from copy import deepcopy

    twin = self._before_parametrizations.__new__(self._before_parametrizations)
    memo[id(self)] = twin
    twin.__dict__.update(deepcopy(self.__dict__, memo))
    _own_class(twin)
    for name in self.parametrizations:
        setattr(type(twin), name, _property(name))
    return twin


def _refuse_pickle(self: Any, protocol: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict()"
    )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Lets a parameter or buffer be computed by `parametrization`; returns the module.

    ValueError if there is no such parameter, or shape or dtype would change.
    """
    if is_parametrized(module, tensor_name):
        parts: Any = module.parametrizations[tensor_name]
        before = getattr(module, tensor_name)
        parts.append(parametrization)
        _check(parametrization, before, getattr(module, tensor_name), unsafe)
        return module
    if tensor_name in module._parameters:
        original = module._parameters[tensor_name]
    elif tensor_name in module._buffers:
        original = module._buffers[tensor_name]
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized "
            f"element with name '{tensor_name}'"
        )
    made = ParametrizationList([parametrization], original, unsafe)
    with no_grad():
        _check(parametrization, original, made(), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module)
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = made
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def _check(parametrization: Module, before: Any, after: Any, unsafe: bool) -> None:
    if unsafe:
        return
    if after.shape != before.shape or after.dtype != before.dtype:
        raise ValueError(
            "Registering a parametrization may not change the shape or dtype of the tensor, "
            f"unless `unsafe` flag is enabled: {type(parametrization).__name__} makes "
            f"{after.shape}, {after.dtype} of {before.shape}, {before.dtype}"
        )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Is a parameter (or any) computed by a parametrization?"""
    parts = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(parts, ModuleDict) or not len(parts):
        return False
    return tensor_name is None or tensor_name in parts


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Puts a plain parameter back: the computed value, or the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"Module {module} does not have a parametrization on {tensor_name}"
        )
    parts: Any = module.parametrizations[tensor_name]
    if not leave_parametrized and not parts.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    first = parts._originals()[0]
    with no_grad():
        value = parts() if leave_parametrized else first
    if isinstance(first, Parameter):
        kept = first if parts.is_tensor else Parameter(value, first.requires_grad)
        kept.data = value.detach()
        value = kept
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
        module.__class__ = type_before_parametrizations(module)
    if isinstance(value, Parameter):
        module.register_parameter(tensor_name, value)
    else:
        module.register_buffer(tensor_name, value)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had."""
    return getattr(type(module), "_before_parametrizations", type(module))
