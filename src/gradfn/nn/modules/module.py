"""Module: parameters, buffers and other modules, and what they compute."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from gradfn.autograd.grad_mode import no_grad
from gradfn.graph.hooks import RemovableHandle
from gradfn.nn.parameter import Buffer, Parameter
from gradfn.tensor import Tensor

__all__ = ["Module"]

M = TypeVar("M", bound="Module")


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """What `load_state_dict` found on one side only."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()


class Module:
    """Base of all networks and their parts. Write `__init__` and `forward`.

    Parameters, buffers and modules that are assigned to attributes are found by
    `parameters()`, `state_dict()`, `to()` and so on.
    """

    training: bool
    _version = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        set_plainly = super().__setattr__
        set_plainly("training", True)
        for name in ("_parameters", "_buffers", "_modules"):
            set_plainly(name, {})
        set_plainly("_non_persistent_buffers_set", set())
        for name in (
            "_forward_pre_hooks",
            "_forward_hooks",
            "_backward_hooks",
            "_backward_pre_hooks",
            "_state_dict_hooks",
            "_load_state_dict_pre_hooks",
        ):
            set_plainly(name, OrderedDict())

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
        ):
            return self.forward(*args, **kwargs)
        from gradfn.nn.modules.hooked import call_with_hooks

        return call_with_hooks(self, args, kwargs)

    # -- attributes ----------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        groups = self.__dict__
        if isinstance(value, (Parameter, Module, Buffer)):
            if "_parameters" not in groups:
                raise AttributeError(
                    f"cannot assign {type(value).__name__.lower()} before Module.__init__() "
                    "call"
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
                f"cannot assign '{type(value).__name__}' object to {wanted[kind]} '{name}' "
                "(torch.nn.Parameter, Module or Tensor, or None expected)"
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
                f"cannot assign '{type(param).__name__}' object to parameter '{name}' "
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
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (torch "
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
            raise KeyError(f'{what} name can\'t contain ".", got: {name}')
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
        found = self.named_modules(prefix=prefix) if recurse else [(prefix, self)]
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
            found = getattr(found, part)
            if not isinstance(found, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return found  # type: ignore[no-any-return]

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
        """Casts floating-point parameters and buffers; the device can only be the CPU."""

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

    # -- state ---------------------------------------------------------------------------

    def state_dict(
        self,
        *args: Any,
        destination: Any = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> Any:
        """Parameters and persistent buffers by their dotted names, detached."""
        if destination is None:
            destination = OrderedDict()
        for group in (self._parameters, self._buffers):
            for name, value in group.items():
                if value is not None and name not in self._non_persistent_buffers_set:
                    destination[prefix + name] = value if keep_vars else value.detach()
        extra = type(self).get_extra_state
        if extra is not Module.get_extra_state:
            destination[prefix + "_extra_state"] = self.get_extra_state()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination,
                    prefix=f"{prefix}{name}.",
                    keep_vars=keep_vars,
                )
        for hook in self._state_dict_hooks.values():
            hook(self, destination, prefix, {})
        return destination

    def get_extra_state(self) -> Any:
        """More state for the state_dict; to be written with `set_extra_state`."""
        raise RuntimeError("get_extra_state is not written for this module")

    def set_extra_state(self, state: Any) -> None:
        """Takes over what `get_extra_state` gave."""
        raise RuntimeError("set_extra_state is not written for this module")

    def load_state_dict(
        self, state_dict: Any, strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Writes values by name into parameters and buffers.

        RuntimeError that lists missing and unexpected names (if `strict`) and sizes that
        differ.
        """
        missing: list[str] = []
        errors: list[str] = []
        used: set[str] = set()
        for path, module in self.named_modules(remove_duplicate=False):
            module._load_own(
                f"{path}." if path else "", state_dict, assign, missing, errors, used
            )
        unexpected = [key for key in state_dict if key not in used]
        if strict and unexpected:
            names = ", ".join(f'"{k}"' for k in unexpected)
            errors.insert(0, f"Unexpected key(s) in state_dict: {names}. ")
        if strict and missing:
            names = ", ".join(f'"{k}"' for k in missing)
            errors.insert(0, f"Missing key(s) in state_dict: {names}. ")
        if errors:
            told = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{told}"
            )
        return _IncompatibleKeys(missing, unexpected)

    def _load_own(
        self,
        prefix: str,
        state: Any,
        assign: bool,
        missing: list[str],
        errors: list[str],
        used: set[str],
    ) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, state, prefix, {}, True, missing, [], errors)
        for group in (self._parameters, self._buffers):
            for name, value in group.items():
                key = prefix + name
                if value is None or name in self._non_persistent_buffers_set:
                    continue
                if key not in state:
                    missing.append(key)
                    continue
                used.add(key)
                given = state[key]
                if tuple(given.shape) != tuple(value.shape):
                    errors.append(
                        f"size mismatch for {key}: copying a param with shape {given.shape} "
                        f"from checkpoint, the shape in current model is {value.shape}."
                    )
                elif assign:
                    grad = value.requires_grad
                    group[name] = (
                        Parameter(given, grad) if isinstance(value, Parameter) else given
                    )
                else:
                    with no_grad():
                        value.copy_(given)
        key = prefix + "_extra_state"
        if key in state and type(self).set_extra_state is not Module.set_extra_state:
            used.add(key)
            self.set_extra_state(state[key])

    # -- hooks ---------------------------------------------------------------------------

    def _register(self, group: str, hook: Any, prepend: bool = False) -> RemovableHandle:
        hooks = getattr(self, group)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_pre_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before forward; it may return other arguments."""
        return self._register("_forward_pre_hooks", (hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Any,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after forward; it may return another output."""
        return self._register("_forward_hooks", (hook, with_kwargs), prepend)

    def register_full_backward_hook(
        self, hook: Any, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when both are known.

        It may return other gradients in the place of grad_input.
        """
        return self._register("_backward_hooks", hook, prepend)

    register_backward_hook = register_full_backward_hook

    def register_full_backward_pre_hook(
        self, hook: Any, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_output)` first; it may return another grad_output."""
        return self._register("_backward_pre_hooks", hook, prepend)

    def _register_state_dict_hook(self, hook: Any) -> RemovableHandle:
        return self._register("_state_dict_hooks", hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Any, with_module: bool = False
    ) -> RemovableHandle:
        def call(module: Any, *args: Any) -> Any:
            return hook(module, *args) if with_module else hook(*args)

        return self._register("_load_state_dict_pre_hooks", call)

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
