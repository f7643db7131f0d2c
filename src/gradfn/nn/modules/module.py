"""Module: parameters, buffers and other modules, and what they compute."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from gradfn._dtypes import dtype
from gradfn.autograd.grad_mode import no_grad
from gradfn.nn.modules.hooked import (
    EVERYWHERE,
    HOOKS,
    Hooked,
    call_with_hooks,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from gradfn.nn.modules.state import Stateful
from gradfn.nn.parameter import Buffer, Parameter
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

__all__ = [
    "Module",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
]

M = TypeVar("M", bound="Module")


_KINDS = {
    "_parameters": "nn.Parameter",
    "_modules": "nn.Module",
    "_buffers": "Tensor, torch.nn.Buffer",
}


def typename(x: Any) -> str:
    """What torch calls the type of a value."""
    return str(x.type()) if isinstance(x, Tensor) else type(x).__name__


def _before(value: Any) -> str:
    if isinstance(value, Parameter):
        return "parameters"
    return "module" if isinstance(value, Module) else "buffer"


class Module(Stateful, Hooked):
    """Base of all networks and their parts. Write `__init__` and `forward`.

    Parameters, buffers and modules that are assigned to attributes are found by
    `parameters()`, `state_dict()`, `to()` and so on.
    """

    training: bool
    dump_patches = False
    call_super_init = False
    _version = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        set_plainly = super().__setattr__
        set_plainly("training", True)
        for name in ("_parameters", "_buffers", "_modules"):
            set_plainly(name, {})
        set_plainly("_non_persistent_buffers_set", set())
        for name in HOOKS:
            set_plainly(name, OrderedDict())
        if self.call_super_init:
            super().__init__(*args, **kwargs)
        elif args or kwargs:
            got = f"{len(args) + 1} were" if args else f"{next(iter(kwargs))!r} was"
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but {got} "
                "given"
            )

    def forward(self, *input: Any) -> Any:
        """What the module computes; to be written."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or EVERYWHERE
        ):
            return self.forward(*args, **kwargs)
        return call_with_hooks(self, args, kwargs)

    _call_impl = __call__

    # -- attributes ----------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        groups = self.__dict__
        if isinstance(value, (Parameter, Module, Buffer)):
            if "_parameters" not in groups:
                raise AttributeError(
                    f"cannot assign {_before(value)} before Module.__init__() call"
                )
            self._forget(name)
            if isinstance(value, Parameter):
                groups["_parameters"][name] = value
            elif isinstance(value, Module):
                groups["_modules"][name] = value
            else:
                self.register_buffer(name, value, value.persistent)
            return
        for kind in ("_parameters", "_modules", "_buffers"):
            group = groups.get(kind)
            if group is not None and name in group:
                self._replace(kind, name, value)
                return
        super().__setattr__(name, value)

    def _replace(self, kind: str, name: str, value: Any) -> None:
        wanted = {
            "_parameters": "parameter",
            "_modules": "child module",
            "_buffers": "buffer",
        }
        allowed = value is None or (kind == "_buffers" and isinstance(value, Tensor))
        if not allowed:
            raise TypeError(
                f"cannot assign '{typename(value)}' as {wanted[kind]} '{name}' "
                f"(torch.{_KINDS[kind]} or None expected)"
            )
        self.__dict__[kind][name] = value

    def _forget(self, name: str) -> None:
        """Takes a name out of wherever it stands."""
        self.__dict__.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            self.__dict__[kind].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            group = self.__dict__.get(kind)
            if group is not None and name in group:
                return group[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__[kind]:
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        own = [*self._parameters, *self._buffers, *self._modules]
        return sorted({*super().__dir__(), *(n for n in own if n.isidentifier())})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter (or a place for one). KeyError, TypeError for bad ones."""
        self._check_name(name, "_parameters", "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                "be created explicitly."
            )
        self._parameters[name] = param

    def register_buffer(
        self, name: str, tensor: Tensor | None, persistent: bool = True
    ) -> None:
        """Adds a tensor that is state and no parameter; persistent: in the state_dict."""
        self._check_name(name, "_buffers", "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch "
                "Tensor or None required)"
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a module as an attribute."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name(name, "_modules", "module")
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, name: str, kind: str, what: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."')
        if not name:
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[kind]:
            raise KeyError(f"attribute '{name}' already exists")

    # -- finding -------------------------------------------------------------------------

    def named_modules(
        self,
        memo: set[Any] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, below, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (m for _, m in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below, with their names, each once."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below."""
        return (m for _, m in self.named_children())

    def _named(
        self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        found: Any = [(prefix, self)]
        if recurse:
            found = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in found:
            for name, value in module.__dict__[kind].items():
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names, each once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted names, each once."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module with a dotted name. AttributeError if there is none."""
        found: Any = self
        for part in target.split(".") if target else ():
            if not hasattr(found, part):
                raise AttributeError(f"{found._get_name()} has no attribute `{part}`")
            found = getattr(found, part)
            if not isinstance(found, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return found  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module in the place that a dotted name says. AttributeError, ValueError."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if not isinstance(module, Module):
            raise ValueError(f"{type(module).__name__} is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name. AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name. AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]  # type: ignore[no-any-return]

    # -- changing all --------------------------------------------------------------------

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Calls `fn` with each module below and then with this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self: M, fn: Callable[[Any], Any], recurse: bool = True) -> M:
        """Replaces the values of parameters, their gradients and buffers by `fn` of them."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for param in self._parameters.values():
            if param is None:
                continue
            with no_grad():
                param.data = fn(param.detach())
                if param.grad is not None:
                    param.grad.data = fn(param.grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Casts floating-point parameters and buffers; the device can only be the CPU.

        TypeError for dtypes of integers.
        """
        for given in (*args, kwargs.get("dtype")):
            if (
                isinstance(given, dtype)
                and not given.is_floating_point | given.is_complex
            ):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, but got "
                    f"desired dtype={given}"
                )

        def convert(t: Any) -> Any:
            floating = t.is_floating_point() or t.is_complex()
            return t.to(*args, **kwargs) if floating else t

        return self._apply(convert)

    def type(self: M, dst_type: Any) -> M:
        """Casts all parameters and buffers."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self: M) -> M:
        """Floating-point parameters and buffers as float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self: M) -> M:
        """Floating-point parameters and buffers as float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self: M) -> M:
        """Floating-point parameters and buffers as float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self: M) -> M:
        """Floating-point parameters and buffers as bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self: M, *, device: Any = None, recurse: bool = True) -> M:
        """New memory, not filled, for all parameters and buffers."""
        empty = PUBLIC["empty_like"]
        return self._apply(lambda t: empty(t, device=device), recurse)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Leaves the module as it is: Python runs it."""

    def cpu(self: M) -> M:
        """The module itself: it is on the CPU."""
        return self

    def cuda(self: M, device: Any = None) -> M:
        """Raises RuntimeError: there is only the CPU."""
        from gradfn._device import check_device

        check_device("cuda")
        return self

    def train(self: M, mode: bool = True) -> M:
        """Sets the mode of this module and all below: training or evaluation."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Sets evaluation mode."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Sets requires_grad of all parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters: to None, or to zeros."""
        for p in self.parameters():
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
            else:
                p.grad = p.grad.detach()
                p.grad.zero_()

    def share_memory(self: M) -> M:
        """The module itself: processes share nothing here."""
        return self

    # -- text ----------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands between the parentheses; to be written."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        below = [
            f"({name}): " + repr(module).replace("\n", "\n  ")
            for name, module in self._modules.items()
        ]
        if not below and len(lines) < 2:
            return f"{self._get_name()}({extra})"
        inside = "\n  ".join([*lines, *below])
        return f"{self._get_name()}(\n  {inside}\n)"

    def __getstate__(self) -> Any:
        return dict(self.__dict__)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        for name in HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
