"""custom_vjp and custom_jvp: plain functions with derivatives of one's own.

The interface is JAX's (jax.custom_vjp, jax.custom_jvp), the means are Functions: each
call flattens its arguments, applies one, and puts the results into their containers.

Note [Higher derivatives of a rule]
    What `fwd` hands to `bwd` was computed inside of Function.forward and has no history.
    If the backward pass is derived in turn, that would be missing from the second
    derivative; so then `fwd` is called again, on the saved arguments, unless it hands over
    nothing but arguments and results, which are saved with their history. A rule of
    custom_jvp is linear in the tangents; for backward it is recorded at tangents of zero
    and derived by them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, NamedTuple

from gradfn._pytree import tree_flatten, tree_map, tree_unflatten
from gradfn.autograd.backward import grad
from gradfn.autograd.function import Function
from gradfn.autograd.grad_mode import enable_grad, is_grad_enabled
from gradfn.graph.batched import batch_of
from gradfn.graph.tangent import is_dual, levels
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def custom_vjp(
    function: Callable[..., Any] | None = None,
    nondiff_argnums: int | tuple[int, ...] = (),
) -> Any:
    """Makes a function differentiable by a backward rule of its own.

        @custom_vjp
        def f(x, y):
            return x.sin() * y

        def fwd(x, y):
            return f(x, y), (x.cos(), x.sin(), y)

        def bwd(residuals, g):
            cos_x, sin_x, y = residuals
            return cos_x * g * y, sin_x * g

        f.defvjp(fwd, bwd)

    Arguments, results, residuals and gradients may be nested containers. `fwd` takes what
    the function takes and returns `(result, residuals)`; `bwd(residuals, g)` returns a
    tuple with the gradient of each argument (None for zero), of that argument's
    structure. Arguments in `nondiff_argnums` are no tensors to derive by; `bwd` is given
    them first. Derivatives of any order, forward mode and vmap follow.

    Calling it raises AttributeError without `defvjp`; TypeError if a rule returns another
    structure, RuntimeError if a gradient has another shape.
    """
    if function is None:
        return partial(custom_vjp, nondiff_argnums=nondiff_argnums)
    return CustomVjp(function, nondiff_argnums)


def custom_jvp(
    function: Callable[..., Any] | None = None,
    nondiff_argnums: int | tuple[int, ...] = (),
) -> Any:
    """Makes a function differentiable by a forward rule of its own.

        @custom_jvp
        def f(x, y):
            return x.sin() * y

        @f.defjvp
        def rule(primals, tangents):
            (x, y), (dx, dy) = primals, tangents
            return f(x, y), x.cos() * dx * y + x.sin() * dy

    The rule returns `(result, tangent)`, which must be linear in the tangents: backward
    mode is its transpose. Arguments in `nondiff_argnums` come before the primals.

    Calling it raises AttributeError without a rule; TypeError if the rule returns another
    structure, RuntimeError if a tangent has another shape.
    """
    if function is None:
        return partial(custom_jvp, nondiff_argnums=nondiff_argnums)
    return CustomJvp(function, nondiff_argnums)


class Custom:
    """A decorated function: what both kinds share."""

    by: type[Function]
    kind: str

    def __init__(self, function: Any, nondiff_argnums: int | tuple[int, ...]) -> None:
        update_wrapper(self, function)
        self.function = function
        given = nondiff_argnums
        self.static = (given,) if isinstance(given, int) else tuple(given)
        self.name = getattr(function, "__name__", type(function).__name__)
        self.applied: Any = type(self.name, (self.by,), {"__doc__": function.__doc__})

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.check_rule()
        args = self.positional(args, kwargs)
        call = Call(self, args)
        leaves, call.spec = tree_flatten(call.differentiable)
        if not any(map(_is_derived, leaves)):
            return self.function(*args)
        outs = self.applied.apply(call, *leaves)
        return tree_unflatten(outs[: call.out_spec.num_leaves], call.out_spec)

    def positional(self, args: Any, kwargs: Any) -> tuple[Any, ...]:
        """All arguments by position, defaults filled in. TypeError."""
        if not kwargs:
            return args  # type: ignore[no-any-return]
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{self.kind}: {self.name} takes {sorted(bound.kwargs)} by keyword alone; "
                "rules know arguments by position"
            )
        return bound.args

    def check_rule(self) -> None:
        """AttributeError if no rule was given."""
        raise NotImplementedError


class Call:
    """One call of a decorated function."""

    def __init__(self, owner: Any, args: tuple[Any, ...]) -> None:
        self.owner = owner
        self.places = {i % len(args) for i in owner.static} if args else set()
        self.static = tuple(args[i] for i in sorted(self.places))
        self.differentiable = tuple(x for i, x in enumerate(args) if i not in self.places)
        self.spec: Any = None  # of the differentiable arguments
        self.out_spec: Any = None
        self.residuals: list[Any] = []  # values, or where they are
        self.residual_spec: Any = None

    def primals(self, leaves: Any) -> tuple[Any, ...]:
        """The differentiable arguments."""
        return tree_unflatten(leaves, self.spec)  # type: ignore[no-any-return]

    def arguments(self, leaves: Any) -> list[Any]:
        """All arguments in their order."""
        static, others = iter(self.static), iter(self.primals(leaves))
        n = len(self.static) + len(self.spec.children)
        return [next(static if i in self.places else others) for i in range(n)]

    def flat(self, output: Any) -> tuple[Any, ...]:
        """The function's results, whose structure is noted."""
        self.differentiable = ()  # the leaves are what is kept
        outs, self.out_spec = tree_flatten(output)
        return tuple(outs)

    def pair(self, rule: str, got: Any) -> tuple[Any, Any]:
        """What a rule returned, if it is a pair. TypeError else."""
        if not (isinstance(got, tuple) and len(got) == 2):
            raise TypeError(
                f"{self.owner.kind}: the {rule} of {self.owner.name} must return a pair, got "
                f"{type(got).__name__}"
            )
        return got


def _is_derived(x: Any) -> bool:
    """Does any derivative depend on it, at whatever layer of a vmap?"""
    while isinstance(x, Tensor):
        if (x.requires_grad and is_grad_enabled()) or is_dual(x):
            return True
        if batch_of(x) is None:
            return False
        x = x._array.value  # type: ignore[attr-defined]
    return False


def _is_floating(x: Any) -> bool:
    return isinstance(x, Tensor) and x._array.dtype.kind in "fc"


# -- what a ctx keeps ----------------------------------------------------------------------

_TENSOR = object()  # stands for one among other values


def _save(ctx: Any, values: list[Any]) -> None:
    ctx.others = [_TENSOR if isinstance(x, Tensor) else x for x in values]
    tensors = [x for x in values if isinstance(x, Tensor)]
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)


def _saved(ctx: Any) -> list[Any]:
    tensors = iter(ctx.saved_tensors)
    return [next(tensors) if x is _TENSOR else x for x in ctx.others]


# -- backward rules --------------------------------------------------------------------------


class ByVjp(Function):
    """Applies fwd, and bwd in the backward pass."""

    generate_vmap_rule = True
    generate_jvp_rule = True

    @staticmethod
    def forward(call: Call, *leaves: Any) -> Any:
        """The results, and behind them those residuals that are neither they nor arguments.

        So each layer of a vmap sees its own residuals.
        """
        got = call.owner.fwd(*call.arguments(leaves))
        output, residuals = call.pair("fwd", got)
        outs = call.flat(output)
        flat, call.residual_spec = tree_flatten(residuals)
        extra: list[Any] = []
        call.residuals = [_place(x, leaves, outs, extra) for x in flat]
        return (*outs, *extra)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Saves the arguments, the results that bwd needs, and the other residuals."""
        call, *leaves = inputs
        ctx.call, ctx.count = call, len(leaves)
        values = [*leaves, *output]
        if extra := output[call.out_spec.num_leaves :]:
            ctx.mark_non_differentiable(*extra)
        ctx.has_history = not extra
        needed = {r.at for r in call.residuals if isinstance(r, _At)}
        needed.update(range(len(leaves)))
        _save(ctx, [x if i in needed else None for i, x in enumerate(values)])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """What bwd makes of the gradients: Note [Higher derivatives of a rule]."""
        call, values = ctx.call, _saved(ctx)
        leaves = values[: ctx.count]
        if (is_grad_enabled() or levels()) and not ctx.has_history:
            got = call.owner.fwd(*call.arguments(leaves))
            residuals = call.pair("fwd", got)[1]
        else:
            flat = [values[r.at] if isinstance(r, _At) else r for r in call.residuals]
            residuals = tree_unflatten(flat, call.residual_spec)
        cotangents = tree_unflatten(grads, call.out_spec)
        got = call.owner.bwd(*call.static, residuals, cotangents)
        return (None, *_gradients(call, leaves, got))


class _At(NamedTuple):
    """Where a residual stands among arguments, results and other residuals."""

    at: int


def _place(x: Any, leaves: Any, outs: Any, extra: list[Any]) -> Any:
    if not isinstance(x, Tensor):
        return x
    for at, y in enumerate((*leaves, *outs, *extra)):
        if y is x:
            return _At(at)
    extra.append(x)
    return _At(len(leaves) + len(outs) + len(extra) - 1)


def _gradients(call: Call, leaves: list[Any], got: Any) -> list[Any]:
    """A gradient, or None, for each leaf of the arguments. TypeError, RuntimeError."""
    name, specs = call.owner.name, call.spec.children
    if not (isinstance(got, tuple) and len(got) == len(specs)):
        size = f"tuple of {len(got)}" if isinstance(got, tuple) else type(got).__name__
        raise TypeError(
            f"custom_vjp: the bwd of {name} must return a tuple with a gradient for each of "
            f"the {len(specs)} differentiable arguments, got a {size}"
        )
    grads: list[Any] = []
    for i, (part, spec) in enumerate(zip(got, specs, strict=True)):
        some, part_spec = tree_flatten(part)
        if part is None:
            some = [None] * spec.num_leaves
        elif part_spec != spec:
            raise TypeError(
                f"custom_vjp: the bwd of {name} returned for argument {i} the structure "
                f"{part_spec}, but the argument has {spec}"
            )
        grads += some
    for x, g in zip(leaves, grads, strict=True):
        if isinstance(g, Tensor) and isinstance(x, Tensor) and g.shape != x.shape:
            raise RuntimeError(
                f"custom_vjp: the bwd of {name} returned a gradient of shape "
                f"{list(g.shape)} for an argument of shape {list(x.shape)}"
            )
    return [g if _is_floating(x) else None for x, g in zip(leaves, grads, strict=True)]


class CustomVjp(Custom):
    """A function with a backward rule: see custom_vjp."""

    by = ByVjp
    kind = "custom_vjp"
    fwd: Any = None
    bwd: Any = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Sets the rule: `fwd(*args)` and `bwd(residuals, gradient)`."""
        self.fwd, self.bwd = fwd, bwd

    def check_rule(self) -> None:
        """AttributeError if defvjp was not called."""
        if self.fwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {self.name} using defvjp."
            )


# -- forward rules -----------------------------------------------------------------------------


class ByJvp(Function):
    """Applies the function; its rule in forward mode, transposed in backward mode."""

    generate_vmap_rule = True

    @staticmethod
    def forward(call: Call, *leaves: Any) -> Any:
        return call.flat(call.owner.function(*call.arguments(leaves)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.call, *leaves = inputs
        _save(ctx, leaves)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        leaves = _saved(ctx)
        pushed = _pushed(ctx.call, leaves, tangents)
        return tuple(t if _is_floating(out) else None for out, t in pushed)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        leaves, record = _saved(ctx), is_grad_enabled()
        with enable_grad():
            ways = [_zeros(x) for x in leaves]
            for x, way in zip(leaves, ways, strict=True):
                if _is_floating(x):
                    way.requires_grad_()
            pushed = _pushed(ctx.call, leaves, ways)
        pairs = [
            (t, g)
            for (_, t), g in zip(pushed, grads, strict=True)
            if isinstance(t, Tensor) and t.requires_grad and g is not None
        ]
        wanted = [way for x, way in zip(leaves, ways, strict=True) if _is_floating(x)]
        found = iter([None] * len(wanted))
        if pairs:
            tangents, seeds = zip(*pairs, strict=True)
            options: Any = {"create_graph": record, "allow_unused": True}
            found = iter(grad(tangents, wanted, seeds, **options))
        return (None, *(next(found) if _is_floating(x) else None for x in leaves))


def _zeros(x: Any) -> Any:
    return PUBLIC["zeros_like"](x.detach()) if isinstance(x, Tensor) else None


def _pushed(call: Call, leaves: list[Any], tangents: Any) -> list[tuple[Any, Any]]:
    """(result, its tangent) for each leaf of the results. TypeError, RuntimeError."""
    name = call.owner.name
    primals, ways = call.primals(leaves), tree_unflatten(tangents, call.spec)
    got = call.pair("rule", call.owner.rule(*call.static, primals, ways))
    outs, spec = tree_flatten(got[0])
    pushed, pushed_spec = tree_flatten(got[1])
    if spec != pushed_spec:
        raise TypeError(
            f"custom_jvp: the rule of {name} returned a result of structure {spec} and a "
            f"tangent of {pushed_spec}; they must be alike"
        )
    for out, t in zip(outs, pushed, strict=True):
        if isinstance(out, Tensor) and isinstance(t, Tensor) and out.shape != t.shape:
            raise RuntimeError(
                f"custom_jvp: the rule of {name} returned a tangent of shape "
                f"{list(t.shape)} for a result of shape {list(out.shape)}"
            )
    return list(zip(outs, pushed, strict=True))


class CustomJvp(Custom):
    """A function with a forward rule: see custom_jvp."""

    by = ByJvp
    kind = "custom_jvp"
    rule: Any = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule, `rule(primals, tangents)`, and returns it."""
        self.rule = rule
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Sets a rule for each argument: `rule(tangent, result, *primals)`, None for zero.

        The result's tangent is their sum. TypeError with nondiff_argnums.
        """
        if self.static:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def rule(primals: Any, tangents: Any) -> Any:
            result = self(*primals)
            parts = [
                part(way, result, *primals)
                for part, way in zip(rules, tangents, strict=True)
                if part is not None
            ]
            total = parts[0] if parts else tree_map(_zeros, result)
            for part in parts[1:]:
                total = tree_map(lambda a, b: a + b, total, part)
            return result, total

        self.rule = rule

    def check_rule(self) -> None:
        """AttributeError if there is no rule."""
        if self.rule is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {self.name} using defjvp."
            )
