"""Hooks of modules: registering them, and calling a module that has some.

Note [Hooks of a call]
    Before `forward`: the hooks for all modules, then the module's own; after it likewise.
    The gradients pass two gates around the module, which call the backward hooks.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from gradfn.autograd.function import Function
from gradfn.graph.hooks import RemovableHandle
from gradfn.tensor import Tensor

# What a module keeps of hooks: each an OrderedDict by the number of the handle.
HOOKS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
EVERYWHERE: dict[str, OrderedDict[int, Any]] = {}  # hooks for all modules; empty if none


class Hooked:
    """Module's methods that register hooks. Each returns a handle with `remove()`."""

    def _register(self, group: str, hook: Any, prepend: bool = False) -> RemovableHandle:
        return _added(getattr(self, group), hook, prepend)

    def register_forward_pre_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before forward; it may return other arguments.

        With kwargs: `hook(module, args, kwargs)`, which may return both.
        """
        return self._register("_forward_pre_hooks", (hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Any,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after forward; it may return another output.

        `always_call`: also when forward raises, then with None for the output.
        """
        kept = (hook, with_kwargs, always_call)
        return self._register("_forward_hooks", kept, prepend)

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

    def register_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before the state is collected."""
        return self._register("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)`, which may change it."""
        return self._register("_state_dict_hooks", (hook, False))

    def _register_state_dict_hook(self, hook: Any) -> RemovableHandle:
        """The same, but the hook may return another state_dict."""
        return self._register("_state_dict_hooks", (hook, True))

    def register_load_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` before a module takes over its state."""
        return self._register("_load_state_dict_pre_hooks", hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Any, with_module: bool = False
    ) -> RemovableHandle:
        def call(module: Any, *args: Any) -> Any:
            return hook(module, *args) if with_module else hook(*args)

        return self._register("_load_state_dict_pre_hooks", call)

    def register_load_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)`, whose lists it may change."""
        return self._register("_load_state_dict_post_hooks", hook)


def _added(hooks: Any, hook: Any, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class _EverywhereHandle(RemovableHandle):
    """Removes a hook for all modules; EVERYWHERE is empty after the last one."""

    def __init__(self, kind: str, hook: Any) -> None:
        hooks = EVERYWHERE.setdefault(kind, OrderedDict())
        super().__init__(hooks)
        self._kind = kind
        hooks[self.id] = hook

    def remove(self) -> None:
        """Takes the hook out."""
        super().remove()
        if not EVERYWHERE.get(self._kind, True):
            del EVERYWHERE[self._kind]


def register_module_forward_pre_hook(hook: Any) -> RemovableHandle:
    """Calls `hook(module, args)` before the forward of every module."""
    return _EverywhereHandle("_forward_pre_hooks", (hook, False))


def register_module_forward_hook(
    hook: Any, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls `hook(module, args, output)` after the forward of every module."""
    return _EverywhereHandle("_forward_hooks", (hook, with_kwargs, always_call))


def register_module_full_backward_hook(hook: Any) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` in the backward of every module."""
    return _EverywhereHandle("_backward_hooks", hook)


def register_module_full_backward_pre_hook(hook: Any) -> RemovableHandle:
    """Calls `hook(module, grad_output)` first in the backward of every module."""
    return _EverywhereHandle("_backward_pre_hooks", hook)


def hooks_of(module: Any, kind: str) -> list[Any]:
    """The hooks of one kind: those for all modules, then the module's own."""
    return [*EVERYWHERE.get(kind, {}).values(), *getattr(module, kind).values()]


# -- calling -----------------------------------------------------------------------------


def call_with_hooks(module: Any, args: Any, kwargs: Any) -> Any:
    """`forward` with the hooks before and after it, and on its gradients."""
    called: set[int] = set()
    try:
        return _call(module, args, kwargs, called)
    except Exception:
        for hook, with_kwargs, always in hooks_of(module, "_forward_hooks"):
            if always and id(hook) not in called:
                _after(hook, with_kwargs, module, args, kwargs, None)
        raise


def _call(module: Any, args: Any, kwargs: Any, called: set[int]) -> Any:
    for hook, with_kwargs in hooks_of(module, "_forward_pre_hooks"):
        if with_kwargs:
            got = hook(module, args, kwargs)
            if got is None:
                continue
            if not (isinstance(got, tuple) and len(got) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {got}."
                )
            args, kwargs = got
        else:
            got = hook(module, args)
            if got is not None:
                args = got if isinstance(got, tuple) else (got,)
    watcher = None
    if hooks_of(module, "_backward_hooks") or hooks_of(module, "_backward_pre_hooks"):
        watcher = Watcher(module)
        args = watcher.on_inputs(args)
    out = module.forward(*args, **kwargs)
    for hook, with_kwargs, _ in hooks_of(module, "_forward_hooks"):
        called.add(id(hook))
        got = _after(hook, with_kwargs, module, args, kwargs, out)
        if got is not None:
            out = got
    return out if watcher is None else watcher.on_outputs(out)


def _after(
    hook: Any, with_kwargs: bool, module: Any, args: Any, kwargs: Any, out: Any
) -> Any:
    return hook(module, args, kwargs, out) if with_kwargs else hook(module, args, out)


class _Gate(Function):
    """Gives its arguments on, and their gradients to `ctx.gate`."""

    @staticmethod
    def forward(ctx: Any, gate: Any, *tensors: Tensor) -> Any:
        ctx.gate = gate
        ctx.set_materialize_grads(False)
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, *ctx.gate(grads)


class Watcher:
    """The two gates around a module, of which backward passes the outer one first."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.grad_output: Any = None
        self.has_inputs = False  # does any argument require grad?

    def on_inputs(self, args: Any) -> Any:
        """The arguments, behind a gate."""
        got = _through(args, self.inputs_known)
        self.has_inputs = got is not args
        return got

    def on_outputs(self, out: Any) -> Any:
        """The results, behind a gate."""
        several = isinstance(out, tuple)
        got = _through(out if several else (out,), self.outputs_known)
        return got if several else got[0]

    def outputs_known(self, grads: Any) -> Any:
        """The gradients of the results: the pre-hooks' turn."""
        for hook in hooks_of(self.module, "_backward_pre_hooks"):
            got = hook(self.module, grads)
            if got is not None:
                grads = got if isinstance(got, tuple) else (got,)
        self.grad_output = grads
        if not self.has_inputs:  # then nothing else will call the hooks
            self.inputs_known((None,) * len(grads))
        return grads

    def inputs_known(self, grads: Any) -> Any:
        """The gradients of the arguments: the hooks' turn."""
        for hook in hooks_of(self.module, "_backward_hooks"):
            got = hook(self.module, grads, self.grad_output)
            if got is not None:
                grads = got if isinstance(got, tuple) else (got,)
        return grads


def _through(values: Any, gate: Any) -> Any:
    places = [i for i, x in enumerate(values) if isinstance(x, Tensor)]
    if not places or not any(values[i].requires_grad for i in places):
        return values
    passed = _Gate.apply(gate, *(values[i] for i in places))
    out = list(values)
    for i, t in zip(places, passed, strict=True):
        out[i] = t
    return tuple(out)
