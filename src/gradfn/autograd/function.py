"""Function: operations of one's own, anywhere in the graph. Its ctx is in node.py."""

from __future__ import annotations

import inspect
import warnings
from typing import Any
from weakref import ref

from gradfn._state import FORWARD, GRAD, TRANSFORMS, mode, reset_mode, set_mode
from gradfn.autograd.node import (
    CONTAINERS,
    FunctionCtx,
    FunctionNode,
    Kept,
    once_differentiable,
)
from gradfn.graph.node import Output, new, output_of, ticks
from gradfn.graph.view import FUNCTION, MULTI, check_inplace, edge, mark_view, rebase
from gradfn.ops.inplace import bump
from gradfn.ops.rare import finish
from gradfn.ops.rule import TABLE
from gradfn.tensor import INTERMEDIATE, LEAF, Tensor, share

BackwardCFunction = FunctionNode
__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "once_differentiable",
]


# -- apply -------------------------------------------------------------------------------


class FunctionMeta(type):
    """Gives each Function its node class."""

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        super().__init__(name, bases, attrs)
        body = {
            "_forward_cls": cls,
            "_backward_name": _backward_name(cls),
            "__module__": "torch.autograd.function",
        }
        cls._backward_cls = type(f"{name}Backward", (FunctionNode,), body)


def _backward_name(cls: type) -> str:
    """The attribute that is called in the backward pass: vjp is another name of it."""
    written = [c for c in cls.__mro__ if c.__module__ != __name__]
    names = [n for n in ("backward", "vjp") if any(n in vars(c) for c in written)]
    return "_ambiguous" if len(names) > 1 else (*names, "backward")[0]


class Function(metaclass=FunctionMeta):
    """Base of operations with a derivative of their own.

    Subclass it, write the static methods `forward(ctx, *args)` and
    `backward(ctx, *grads)`, and call `.apply(*args)`. In the other form `forward(*args)`
    has no ctx, and `setup_context(ctx, inputs, output)` saves what backward needs.

    `forward` runs without recording and returns a tensor, or a tuple or list of tensors
    and other values. `backward` gets a gradient for each of them and returns one for each
    argument of forward, None where there is none.

    `generate_vmap_rule = True` lets vmap batch the tensor operations of forward and
    backward; `generate_jvp_rule = True` derives forward mode from backward.
    """

    generate_vmap_rule = False
    generate_jvp_rule = False
    _backward_cls: type[FunctionNode]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions "
            "are all static, so you should invoke them on the class itself. "
            "Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. "
            "Please use new-style autograd function with static forward method: "
            f"{type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation: `forward(ctx, *args)`, or `forward(*args)` with setup_context.

        Gets what `apply` was given, tensors and other values, and returns a tensor, or a
        tuple or list of tensors and other values. Outputs of a floating or complex dtype
        get this operation as their grad_fn if one of the tensors requires grad.
        Must be overridden (NotImplementedError).
        """
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Saves for backward, after a forward without ctx.

        `inputs` is the tuple of forward's arguments, with defaults filled in; `output` is
        what it returned. The result is not used.
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments, given those of the outputs.

        Each of `grad_outputs` has the shape and dtype of its output; zeros stand for an
        output that was not used, or None after `ctx.set_materialize_grads(False)`.
        Returns one gradient for each argument of forward, or a single one alone: a tensor
        of the argument's shape, or of one that was broadcast from it; None for no
        gradient. RuntimeError if their number or a shape does not fit.
        Must be overridden, or `vjp` be (NotImplementedError when it is reached).
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs, given those of the arguments.

        Each of `grad_inputs` has the shape and dtype of its tensor, zeros where it has no
        tangent; None stands for other arguments. Returns one tangent for each output, of
        its shape. `ctx.saved_tensors` are those of `save_for_forward`.
        Must be overridden for forward mode (NotImplementedError), unless
        `generate_jvp_rule` is set.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use "
            "it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The operation on a batch.

        `info` has `batch_size` and `randomness`. `in_dims` says for each argument where
        its batch is, or None if it has none. Returns the outputs, and in the same
        structure where their batch is. Must be overridden for vmap (RuntimeError), unless
        `generate_vmap_rule` is set.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap "
            "staticmethod or set generate_vmap_rule=True."
        )

    @staticmethod
    def _ambiguous(ctx: Any, *grad_outputs: Any) -> Any:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed "
            f"({ctx._forward_cls.__name__}). You should only implement one of them."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward on the arguments and records the operation.

        Returns what forward returned. Tensors may also stand in lists, tuples and dicts
        among the arguments. An output that is one of the inputs is a view of it, unless it
        was marked dirty. Raises what forward raises; TypeError for arguments that it does
        not have or a saved value that is no tensor; RuntimeError for `mark_dirty` of
        something that is no input, is not returned, or is a leaf that requires grad.
        """
        split = cls.setup_context is not Function.setup_context
        if kwargs or split:
            args, kwargs = bound(cls, not split, args, kwargs)
        ctx: FunctionNode = new(cls._backward_cls)
        ctx._seq = next(ticks)
        ctx._extra = ctx._versions = None
        needs = collect(ctx, args)
        flags = mode()
        ctx._needs = needs if flags & GRAD else 0
        quiet = flags & ~(GRAD | TRANSFORMS)
        token = set_mode(quiet | FORWARD if needs else quiet)
        try:
            if flags & TRANSFORMS:
                out = transformed(ctx, split, args, kwargs, flags)
            elif split:
                out = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, out)
            else:
                out = cls.forward(ctx, *args, **kwargs)
        finally:
            reset_mode(token)
        if (
            type(out) is not Tensor
            or ctx._unusual
            or flags & TRANSFORMS
            or out._grad_fn is not None
            or out._view is not None
            or (out is args[0] if len(args) == 1 else among(out, args))
        ):
            return finished(ctx, args, out, flags)
        if out._extra is INTERMEDIATE:
            out._extra = None
        if ctx._needs:
            r = out._array
            if r.dtype.kind in "fc":
                ctx._out_shape, ctx._out_dtype = r.shape, r.dtype
                out._grad_fn = ctx
            for t in ctx._saved:
                if type(t) is not Tensor or t._cell is not None or t is out:
                    keep(ctx, (out,))
                    break
            if flags & ~GRAD:
                finish(ctx, flags, out)
        return out


def transformed(
    ctx: FunctionNode, split: bool, args: Any, kwargs: Any, flags: int
) -> Any:
    """What forward gives where forward mode or vmap is at work."""
    from gradfn.func.custom import forward

    return forward(ctx, split, args, kwargs, flags)


def bound(
    cls: type[Function], has_ctx: bool, args: Any, kwargs: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments with defaults filled in, and keyword-only ones."""
    node: Any = cls._backward_cls
    if node._signature[0] is not cls.forward:
        node._signature = cls.forward, inspect.signature(cls.forward)
    signature = node._signature[1]
    given = ((None, *args) if has_ctx else args, kwargs)
    try:
        call = signature.bind(*given[0], **given[1])
    except TypeError as error:
        raise TypeError(f"forward() {error}: see {cls.__name__}.forward") from None
    if not has_ctx:
        call.apply_defaults()
    return call.args[has_ctx:], call.kwargs


def collect(ctx: FunctionNode, args: Any) -> int:
    """Finds the tensors among the arguments; sets ctx's edges, and returns its needs."""
    ctx._arguments = len(args)
    places: list[Any] = []
    edges: list[Any] = []
    plain: list[int] = []
    needs = 0
    for i, x in enumerate(args):
        if isinstance(x, Tensor):
            e = x._grad_fn if x._view is None else edge(x)
            if e is not None:
                needs |= 1 << len(places)
                edges.append(x if e is LEAF else e)
            places.append(i)
        elif isinstance(x, CONTAINERS):
            needs |= _inside(x, (i,), places, edges)
        elif not isinstance(x, (int, float, complex)) or type(x) is bool:
            plain.append(i)
    if plain:
        ctx._plain = plain
    ctx._places = places
    ctx._next = edges[0] if len(edges) == 1 else tuple(edges)
    return needs


def _inside(x: Any, way: Any, places: list[Any], edges: list[Any]) -> int:
    """The same for the tensors in a container."""
    needs = 0
    for key, value in x.items() if isinstance(x, dict) else enumerate(x):
        if isinstance(value, Tensor):
            e = edge(value)
            if e is not None:
                needs |= 1 << len(places)
                edges.append(value if e is LEAF else e)
            places.append((*way, key))
        elif isinstance(value, CONTAINERS):
            needs |= _inside(value, (*way, key), places, edges)
    return needs


def tensors_in(args: Any) -> list[Tensor]:
    """The tensors among arguments, also inside containers."""
    found: list[Tensor] = []
    for x in args.values() if isinstance(args, dict) else args:
        if isinstance(x, Tensor):
            found.append(x)
        elif isinstance(x, CONTAINERS):
            found += tensors_in(x)
    return found


def finished(ctx: FunctionNode, args: Any, out: Any, flags: int) -> Any:
    """Makes ctx the history of any outputs, and keeps what was to be saved."""
    if isinstance(out, (tuple, list)):
        outs = several(ctx, args, list(out))
        named = hasattr(out, "_fields")
        result = type(out)(*outs) if named else type(out)(outs)
    else:
        outs = several(ctx, args, [out])
        result = outs[0]
    if flags & TRANSFORMS:
        from gradfn.autograd.forward_function import push_function

        push_function(ctx, args, outs)
    if ctx._unusual:  # or the node would keep its outputs alive, and they keep it
        ctx._dirty = ctx._non_differentiable = ctx._sources = ()
    if ctx._needs:
        keep(ctx, outs)
        if flags & ~GRAD:
            finish(ctx, flags, outs)
    return result


def among(x: Any, things: Any) -> bool:
    """Is `x` one of them, the very object?"""
    for thing in things:  # noqa: SIM110 - a generator would take 0.2 µs more
        if thing is x:
            return True
    return False


def several(ctx: FunctionNode, args: Any, outs: list[Any]) -> list[Any]:
    """Any outputs: several, inputs among them, dirty or non-differentiable ones."""
    inputs = tensors_in(args)
    check_dirty(ctx, inputs, outs)
    differentiable = [i for i, t in enumerate(outs) if _differentiable(ctx, t)]
    how = MULTI if len(differentiable) > 1 else FUNCTION
    made = [_own(t, inputs, ctx._dirty, how) for t in outs]
    if not ctx._needs:
        return made
    alone = len(outs) == 1
    if not alone:
        ctx._out_shape = ctx._out_dtype = None
        ctx._outputs = [_metadata(t) for t in outs]
        ctx._differentiable_out = tuple(differentiable)
        ctx._output_nodes = [None] * len(differentiable)
    for number in reversed(range(len(differentiable))):  # hooks run in this order
        t = made[differentiable[number]]
        r = t._array
        if alone:
            ctx._out_shape, ctx._out_dtype = r.shape, r.dtype
            node: Any = ctx
        else:
            node = output_of(ctx, number, len(differentiable), r)
            ctx._output_nodes[number] = ref(node)
        become(ctx, t, node)
    return made


def _differentiable(ctx: FunctionNode, t: Any) -> bool:
    floating = isinstance(t, Tensor) and t._array.dtype.kind in "fc"
    return floating and not among(t, ctx._non_differentiable)


def _metadata(t: Any) -> Any:
    return (t._array.shape, t._array.dtype) if isinstance(t, Tensor) else None


def _own(t: Any, inputs: list[Tensor], dirty: Any, made: int) -> Any:
    """An output as a tensor of its own: an input returned as it is becomes a view.

    `made`: how views count as made. Outside of grad mode views are what they would be
    without the Function, and an input returned as it is has no history.
    """
    if not isinstance(t, Tensor) or among(t, dirty):
        return t
    recorded = mode() & GRAD
    if among(t, inputs):
        out = share(t, t._array)
        if recorded:
            mark_view(out, t, TABLE["_view"], (t._array.shape,), made)
        return out
    if t._extra is INTERMEDIATE:
        t._extra = None
    if t._view is not None:
        if not recorded:
            return t
        t._view.made = made
    t._grad_fn = None
    return t


def become(ctx: FunctionNode, t: Tensor, node: Any) -> None:
    """Makes `node` the history of an output."""
    if among(t, ctx._dirty):
        if t._view is not None and isinstance(node, Output):
            raise RuntimeError(
                f"{ctx._forward_cls.__name__}: a Function that writes into a view must "
                "return exactly one output"
            )
        if t._extra is not None:
            t._extra.grad = None  # it was that of the value before
        rebase(t, node, dirty_bit(ctx, t))
        return
    t._grad_fn = node
    if t._view is not None:
        t._view.version = t._cell.count  # type: ignore[union-attr]


def dirty_bit(ctx: FunctionNode, t: Tensor) -> int:
    """The bit in `needs` of an input that was written."""
    for bit, source in enumerate(ctx._sources):
        if source is t:
            return 1 << bit
    return 0


def check_dirty(ctx: FunctionNode, inputs: list[Tensor], outs: list[Any]) -> None:
    """Checks what was marked dirty, and notes that it was written. RuntimeErrors."""
    ctx._sources = inputs if ctx._dirty else ()
    for t in ctx._dirty:
        if not among(t, inputs):
            raise RuntimeError(
                f"{ctx._forward_cls.__name__}: mark_dirty takes inputs of forward only"
            )
        if not among(t, outs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not "
                "returned as output. The inputs that are modified inplace must all be "
                f"outputs of the Function ({ctx._forward_cls.__name__})."
            )
        bump(t)
        check_inplace(t, *inputs, used="has been")


def keep(ctx: FunctionNode, outs: Any) -> None:
    """Sees to it that what save_for_backward was given can be kept."""
    ctx._saved = tuple(kept(i, t, outs) for i, t in enumerate(ctx._saved))


def kept(place: int, t: Any, outs: Any) -> Any:
    """An entry of `_saved`: the tensor itself where that is all there is to know."""
    if t is None:
        return None
    if not isinstance(t, Tensor):
        raise TypeError(
            "save_for_backward can only save variables, but argument "
            f"{place} is of type {type(t).__name__}; keep other values as attributes "
            "of ctx"
        )
    index = next((i for i, out in enumerate(outs) if out is t), -1)
    return t if index < 0 and t._cell is None else Kept(t, index)
