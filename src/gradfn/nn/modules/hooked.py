"""Calling a module that has hooks."""

from __future__ import annotations

from typing import Any

from gradfn.autograd.function import Function
from gradfn.tensor import Tensor


def call_with_hooks(module: Any, args: Any, kwargs: Any) -> Any:
    """`forward` with the hooks before and after it, and on its gradients."""
    for hook, with_kwargs in list(module._forward_pre_hooks.values()):
        if with_kwargs:
            got = hook(module, args, kwargs)
            if got is not None:
                args, kwargs = got
        else:
            got = hook(module, args)
            if got is not None:
                args = got if isinstance(got, tuple) else (got,)
    watcher = None
    if module._backward_hooks or module._backward_pre_hooks:
        watcher = Watcher(module)
        args = watcher.on_inputs(args)
    out = module.forward(*args, **kwargs)
    for hook, with_kwargs in list(module._forward_hooks.values()):
        got = hook(module, args, kwargs, out) if with_kwargs else hook(module, args, out)
        if got is not None:
            out = got
    return out if watcher is None else watcher.on_outputs(out)


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
        for hook in list(self.module._backward_pre_hooks.values()):
            got = hook(self.module, grads)
            if got is not None:
                grads = got if isinstance(got, tuple) else (got,)
        self.grad_output = grads
        if not self.has_inputs:  # then nothing else will call the hooks
            self.inputs_known((None,) * len(grads))
        return grads

    def inputs_known(self, grads: Any) -> Any:
        """The gradients of the arguments: the hooks' turn."""
        for hook in list(self.module._backward_hooks.values()):
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
