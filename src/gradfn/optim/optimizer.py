"""Optimizer: parameters in groups, their state, and a step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from typing import Any

from gradfn.autograd.grad_mode import enable_grad, set_grad_enabled
from gradfn.graph.hooks import RemovableHandle
from gradfn.tensor import Tensor


class _Required:
    """Stands for a setting without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


# What all of PyTorch's optimizers take. How the work is spread (foreach, fused,
# capturable) changes nothing here.
_OPTIONS = {
    "maximize": False,
    "foreach": None,
    "capturable": False,
    "differentiable": False,
    "fused": None,
}


class Optimizer:
    """Base of optimizers: write `update(param, grad, state, group)`, or `step`."""

    @property
    def _updates(self) -> bool:
        """Is it one of those that write `update`?"""
        return type(self).update is not Optimizer.update

    def __init__(self, params: Any, defaults: dict[str, Any], **options: Any) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {type(params).__name__}"
            )
        for name in options.keys() - _OPTIONS.keys():
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                f"'{name}'"
            )
        self.defaults = {**defaults, **_OPTIONS, **options} if self._updates else defaults
        self.state: Any = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._hooks: dict[str, dict[int, Any]] = {}
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with settings of their own.

        TypeError for what is no tensor, ValueError for results and for parameters that
        are in a group already.
        """
        given = param_group["params"]
        params = [given] if isinstance(given, Tensor) else [_tensor(p) for p in given]
        param_group["params"] = params
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    f"{type(p).__name__}"
                )
            recorded = self.defaults.get("differentiable")
            if not (recorded or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, value in self.defaults.items():
            if value is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization "
                    f"parameter {name}"
                )
            param_group.setdefault(name, value)
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if known & {id(p) for p in params} or len({id(p) for p in params}) < len(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears all gradients: to None, or to zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                else:
                    p.grad.detach_()
                    p.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters; returns what `closure`, run first, returned."""
        if not self._updates:
            raise NotImplementedError(
                f"{type(self).__name__} has neither step nor update"
            )
        for hook in self._of("step_pre"):
            hook(self, (closure,), {})
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            recorded = bool(group.get("differentiable"))
            with set_grad_enabled(recorded):
                for p in group["params"]:
                    if p.grad is not None:
                        grad = p.grad if recorded else p.grad.detach()
                        grad = -grad if group.get("maximize") else grad
                        self.update(p, grad, self.state[p], group)
        self._call_step_hooks((closure,))
        return loss

    def _call_step_hooks(self, args: tuple[Any, ...]) -> None:
        for hook in self._of("step_post"):
            hook(self, args, {})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: Any) -> None:
        """Updates one parameter in place; to be written."""
        raise NotImplementedError

    # -- hooks ---------------------------------------------------------------------------

    def _of(self, kind: str) -> list[Any]:
        return list(self._hooks.get(kind, {}).values())

    def _register(self, kind: str, hook: Any, prepend: bool = False) -> RemovableHandle:
        hooks = self._hooks.setdefault(kind, {})
        handle = RemovableHandle(hooks)
        others = dict(hooks)
        hooks[handle.id] = hook
        if prepend:
            for key in others:
                hooks[key] = hooks.pop(key)
        return handle

    def register_step_pre_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(
        self, hook: Any, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` before `state_dict`."""
        return self._register("state_pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Any, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)`, which may return another one."""
        return self._register("state_post", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Any, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)`, which may return another one to load."""
        return self._register("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Any, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` after `load_state_dict`."""
        return self._register("load_post", hook, prepend)

    # -- state ---------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """State and settings, parameters as numbers."""
        for hook in self._of("state_pre"):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            plain = {k: v for k, v in group.items() if k != "params"}
            groups.append({**plain, "params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(p)]: dict(s) for p, s in self.state.items() if s}
        found = {"state": state, "param_groups": groups}
        for hook in self._of("state_post"):
            got = hook(self, found)
            found = found if got is None else got
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over state and settings. ValueError if the groups don't match."""
        state_dict = dict(state_dict)
        for hook in self._of("load_pre"):
            got = hook(self, state_dict)
            state_dict = state_dict if got is None else got
        groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups"
            )
        by_number: dict[int, Any] = {}
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            if len(mine["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size "
                    "of optimizer's group"
                )
            by_number.update(zip(theirs["params"], mine["params"], strict=True))
            mine.update({k: v for k, v in theirs.items() if k != "params"})
        self.state = defaultdict(dict)
        for number, state in state_dict["state"].items():
            p = by_number[number]
            self.state[p] = {k: _taken_over(k, v, p) for k, v in state.items()}
        for hook in self._of("load_post"):
            hook(self)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])


def _taken_over(name: str, value: Any, p: Tensor) -> Any:
    """A copy of a parameter's state, in the parameter's dtype if it is like it."""
    if not isinstance(value, Tensor):
        return deepcopy(value)
    if name == "step" or not p.is_floating_point():
        return value.clone()
    return value.to(p.dtype, copy=True)


def _tensor(p: Any) -> Any:
    """The parameter of a (name, parameter) pair, or itself."""
    return p[1] if isinstance(p, tuple) and len(p) == 2 else p


def checked(**least: Any) -> Callable[[Any], Any]:
    """Decorates an __init__: each named setting must be at least this. ValueError."""

    def decorate(init: Any) -> Any:
        @wraps(init)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            for name, low in least.items():
                value = self.defaults.get(name)
                if isinstance(value, (int, float)) and value < low:
                    label = {"lr": "learning rate"}.get(name, f"{name} value")
                    raise ValueError(f"Invalid {label}: {value}")

        return wrapper

    return decorate
