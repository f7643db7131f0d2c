"""Custom Functions under transforms of gradfn.func.

Note [A Function on a batch]
    On batched arguments a Function is applied twice. The layer within, where all samples
    are, sees either what its `vmap` staticmethod does, or with `generate_vmap_rule = True`
    a Function of its own (`Generated`), whose forward, backward and jvp are the user's,
    run under vmap. The layer of the samples sees the user's Function as ever, with that
    result in the place of forward's.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from gradfn._pytree import broadcast_prefix, tree_flatten, tree_map, tree_unflatten
from gradfn._state import reset_mode, set_mode
from gradfn.autograd.function import Function, tensors_in
from gradfn.autograd.node import FunctionCtx
from gradfn.graph.batched import batch_of, batched, innermost
from gradfn.graph.transforms import Batch, at_work, outside, work
from gradfn.tensor import Tensor


class VmapInfo(NamedTuple):
    """What a `vmap` staticmethod is told."""

    batch_size: int
    randomness: str


def forward(ctx: Any, split: bool, args: Any, kwargs: Any, flags: int) -> Any:
    """What `forward` gives under transforms; sets ctx up. `flags` is the mode outside.

    RuntimeError if the Function has not the form that transforms need.
    """
    cls = ctx._forward_cls
    token = set_mode(flags)
    try:
        now = work()
        batch = innermost(tensors_in(args))
        if innermost(x for x in kwargs.values() if isinstance(x, Tensor)) is not None:
            raise NotImplementedError(
                f"vmap over {cls.__name__}: kwarg-only Tensor args are not mapped over. Pass "
                "them by position."
            )
        if (batch is not None or now.depth) and not split:
            raise RuntimeError(
                "In order to use an autograd.Function with functorch transforms (vmap, grad, "
                "jvp, jacrev, ...), it must override the setup_context staticmethod. "
                f"{cls.__name__} saves in forward(ctx, ...); move that to "
                "setup_context(ctx, inputs, output)."
            )
        if batch is not None:
            out = on_batch(cls, args, kwargs, batch)
    finally:
        reset_mode(token)
    with at_work(now._replace(levels=())):
        if batch is None:
            out = (
                cls.forward(*args, **kwargs)
                if split
                else cls.forward(ctx, *args, **kwargs)
            )
        if split:
            cls.setup_context(ctx, args, out)
    return out


def on_batch(cls: type[Function], args: Any, kwargs: Any, batch: Batch) -> Any:
    """The results for all samples, as the function that is vmapped sees them."""
    own_rule = cls.vmap is not Function.vmap
    if own_rule and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True "
            "and an overriden vmap staticmethod. Please set generate_vmap_rule=False or "
            "delete the overriden vmap staticmethod to avoid ambiguity."
        )
    if not own_rule and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. "
            "Please override and implement the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )
    values = tree_map(lambda x: _value(x, batch), args)
    with outside(batch):
        if own_rule:
            dims = tree_map(lambda x: 0 if _is_batched(x, batch) else None, args)
            info = VmapInfo(batch.size, batch.randomness)
            if not any(d is not None for d in tree_flatten(dims)[0]):
                dims = (None,) * len(args)
            return _wrapped(
                cls, cls.vmap(info, dims, *values, **_taken(cls, kwargs)), batch
            )
        places = [_is_batched(x, batch) for x in tree_flatten(args)[0]]
        plan = Plan(cls, batch.size, batch.randomness, places)
        plan.kwargs = kwargs
        got = Generated.apply(plan, *values)
    return tree_map(lambda t: batched(t, batch) if isinstance(t, Tensor) else t, got)


def _taken(cls: type[Function], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keyword-only arguments that the `vmap` staticmethod has, too."""
    if not kwargs:
        return kwargs
    known = inspect.signature(cls.vmap).parameters
    return {name: value for name, value in kwargs.items() if name in known}


def _is_batched(x: Any, batch: Batch) -> bool:
    return isinstance(x, Tensor) and batch_of(x) is batch


def _value(x: Any, batch: Batch) -> Any:
    return x._array.value if _is_batched(x, batch) else x


def _wrapped(cls: type, got: Any, batch: Batch) -> Any:
    """The outputs of a `vmap` staticmethod, which says where their batch is."""
    if not (isinstance(got, tuple) and len(got) == 2):
        raise RuntimeError(
            f"Expected the vmap staticmethod of {cls.__name__} to have two returns, an output "
            f"and out_dims with pytree structure compatible with the output. Got a "
            f"{type(got).__name__}"
        )
    output, out_dims = got
    leaves, spec = tree_flatten(output)
    dims = broadcast_prefix(out_dims, spec)
    if dims is None and isinstance(out_dims, list) and isinstance(output, tuple):
        dims = broadcast_prefix(tuple(out_dims), spec)
    if dims is None:
        raise RuntimeError(
            f"The vmap staticmethod of {cls.__name__} returned an incompatible (output, "
            f"out_dims) tuple: out_dims is {out_dims}, and the output has the structure {spec}"
        )
    ended = [_at_front(t, d, batch) for t, d in zip(leaves, dims, strict=True)]
    found = tree_unflatten(ended, spec)
    return tuple(found) if isinstance(found, list) else found


def _at_front(t: Any, dim: int | None, batch: Batch) -> Any:
    if not isinstance(t, Tensor) or dim is None:
        return t
    return batched(t.movedim(dim, 0) if dim else t, batch)


class Plan:
    """One use of Generated: which Function on what batch, and what its ctx became."""

    def __init__(
        self, cls: type[Function], size: int, randomness: str, places: list[bool]
    ) -> None:
        self.cls = cls
        self.batch = Batch(size, randomness, work())
        self.places = places  # which arguments are batched
        self.inner = InnerCtx()
        self.kwargs: dict[str, Any] = {}  # forward's keyword-only arguments
        self.given: Any = ()  # the outputs as forward gave them

    def begin(self, values: Any, flags: Any = None) -> Any:
        """All samples as the user's methods see them; by default all are batched."""
        leaves, spec = tree_flatten(values)
        flags = [True] * len(leaves) if flags is None else flags
        return tree_unflatten(
            [
                batched(x, self.batch) if isinstance(x, Tensor) and f else x
                for x, f in zip(leaves, flags, strict=True)
            ],
            spec,
        )

    def end(self, x: Any) -> Any:
        """What a user's method gave for all samples."""
        if not isinstance(x, Tensor):
            return x
        if batch_of(x) is self.batch:
            return x._array.value  # type: ignore[attr-defined]
        return x.expand(self.batch.size, *x.shape)

    def running(self) -> Any:
        """The user's method runs under vmap, inside of what is at work now."""
        self.batch.outer = work()
        return at_work(self.batch.inside())


class InnerCtx(FunctionCtx):
    """The ctx that the user's methods are given."""

    saved_tensors: Any = ()
    needs_input_grad: tuple[bool, ...] = ()


class Generated(Function):
    """A Function on all samples, made of one on a single sample."""

    generate_vmap_rule = True

    @staticmethod
    def forward(plan: Plan, *values: Any) -> Any:
        """The user's forward and setup_context under vmap."""
        with plan.running():
            args = plan.begin(values, plan.places)
            got = plan.cls.forward(*args, **plan.kwargs)
            plan.cls.setup_context(plan.inner, args, got)
            plan.given = got if isinstance(got, (tuple, list)) else (got,)
        return tree_map(plan.end, got)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Saves what the user's setup_context saved, for all samples."""
        plan, *_ = inputs
        inner = plan.inner
        ctx.plan = plan
        ctx.saved_batched = [_in(t, plan) for t in inner._saved]
        ctx.save_for_backward(*(_value_in(t, plan) for t in inner._saved))
        ctx.forward_batched = [_in(t, plan) for t in inner._for_forward]
        ctx.save_for_forward(*(_value_in(t, plan) for t in inner._for_forward))
        ctx.set_materialize_grads(inner._materialize)
        outs = output if isinstance(output, (tuple, list)) else (output,)
        marked = [
            t
            for t, g in zip(outs, plan.given, strict=True)
            if any(g is m for m in inner._non_differentiable)
        ]
        if marked:
            ctx.mark_non_differentiable(*marked)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The user's backward under vmap; summed for arguments that all samples share."""
        plan = ctx.plan
        with plan.running():
            inner = plan.inner
            inner.saved_tensors = plan.begin(ctx.saved_tensors, ctx.saved_batched)
            inner.needs_input_grad = ctx.needs_input_grad[1:]
            name = plan.cls._backward_cls._backward_name
            got = getattr(plan.cls, name)(inner, *plan.begin(grads))
            inner.saved_tensors = ()
        got = got if isinstance(got, tuple) else (got,)
        flat = tree_flatten(got)[0]
        flags = plan.places
        if len(flat) != len(flags):
            flags = [True] * len(flat)
        with plan.running():
            ended = [_gathered(x, f, plan) for x, f in zip(flat, flags, strict=True)]
        return (None, *tree_unflatten(ended, tree_flatten(got)[1]))

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        """The user's jvp under vmap."""
        plan = ctx.plan
        with plan.running():
            inner = plan.inner
            inner.saved_tensors = plan.begin(ctx.saved_tensors, ctx.forward_batched)
            got = plan.cls.jvp(inner, *plan.begin(tangents, plan.places))
            inner.saved_tensors = ()
        return tree_map(plan.end, got)


def _in(t: Any, plan: Plan) -> bool:
    return isinstance(t, Tensor) and batch_of(t) is plan.batch


def _value_in(t: Any, plan: Plan) -> Any:
    return t._array.value if _in(t, plan) else t


def _gathered(x: Any, is_batched: bool, plan: Plan) -> Any:
    """A gradient for all samples, or their sum for an argument that they share."""
    if not isinstance(x, Tensor):
        return x
    value = plan.end(x)
    return value if is_batched else value.sum(0)
