"""The node of a custom Function, which is also the `ctx` its methods are given.

Note [ctx is the node]
    `FunctionMeta` makes a node class `<Name>Backward` for each Function. `apply` makes
    one instance; it is the `ctx` that forward and backward are given, and the `grad_fn`
    of the results. It has a `__dict__`, so users' attributes are simply there.

Note [Arguments and gradients]
    Each tensor among the arguments, also inside lists, tuples and dicts, has a bit in
    `needs`, in the order in which they stand. `_places` says for each bit where its
    gradient is found in what backward returned: the argument's number, then the way
    into the container.

Note [Intermediates]
    In forward nothing is recorded. A backward that uses a value computed there (neither
    input nor output) is right, but its own derivative would miss that value's part, and
    PyTorch silently does. Here ops mark such values as they compute them (the mode bit
    FORWARD). When a backward is recorded, it sees them with a node that raises if a
    gradient comes to it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from gradfn._state import GRAD, MODE, mode
from gradfn.graph import saved
from gradfn.graph.gradient import hand_out
from gradfn.graph.node import Node, edges_of, new, output_of, public_edge, ticks
from gradfn.graph.view import edge, history_of_written
from gradfn.tensor import LEAF, Tensor, cell_of, wrap

if TYPE_CHECKING:
    from gradfn.autograd.function import Function

CONTAINERS = (list, tuple, dict)
ONLY = [0]  # the places of a single tensor that is the only argument


class FunctionCtx:
    """What forward and backward may do with `ctx`, besides setting attributes."""

    _saved: Any = ()
    _unusual = False  # was any of the following set?
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()
    _materialize = True
    _for_forward: tuple[Tensor | None, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors (inputs, outputs, others, or None) for `ctx.saved_tensors`.

        Call it once in forward or setup_context. What is saved is checked: overwriting
        it in place before backward uses it raises RuntimeError there.
        """
        self._saved = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors, or None, for `ctx.saved_tensors` in jvp. TypeError for others."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    "save_for_forward expects all arguments to be tensors or None, but "
                    f"argument {i} is of type {type(t).__name__}"
                )
        self._for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declares inputs that forward wrote into; each must be returned, too.

        Call it once in forward. What is wrong with them `apply` says (RuntimeError).
        """
        self._dirty, self._unusual = tensors, True

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declares outputs that have no gradient, such as indices or masks.

        They do not require grad, and backward gets zeros for them. Integers and bools
        need no declaration.
        """
        self._non_differentiable, self._unusual = tensors, True

    def set_materialize_grads(self, value: bool) -> None:
        """Should backward get zeros (True, the default) or None for unused outputs?"""
        self._materialize = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing; views are found without it."""


class FunctionNode(FunctionCtx, Node):
    """The node of a custom Function, which is its ctx."""

    _forward_cls: type[Function]
    _backward_name = "backward"
    _signature: Any = (None, None)  # (forward, its signature)
    _takes_none = True
    _places: Any = ()
    _arguments = 0
    _asked: int | None = None
    _materialize_non_diff_grads = True  # PyTorch's name, that users may clear
    _outputs: Any = None  # (shape, dtype) or None for each output, if several
    _differentiable_out: tuple[int, ...] = (0,)
    _sources: Any = ()  # the input tensors, if some were written
    _tangent_versions: Any = ()  # of the arguments' tangents, before jvp
    _plain: Any = ()  # the numbers of the arguments that are neither tensors nor numbers

    # -- for the user ------------------------------------------------------------------

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What save_for_backward was given; RuntimeError if it is gone or changed."""
        kept = self._saved
        if type(kept) is not tuple:
            kept = tuple(kept)  # RELEASED says what is wrong
        for t in kept:
            if type(t) is not Tensor or t._cell is not None:
                return self._unpacked(kept)
        return kept

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The old name of saved_tensors; DeprecationWarning."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.saved_tensors

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument: does this run want its gradient?"""
        needs = self._needs if self._asked is None else self._asked
        wanted = [False] * self._arguments
        for bit, place in enumerate(self._places):
            if needs >> bit & 1:
                wanted[place if type(place) is int else place[0]] = True
        return tuple(wanted)

    @property
    def materialize_grads(self) -> bool:
        """Does backward get zeros for outputs that nobody used?"""
        return self._materialize

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """(node, output number) for each tensor argument; (None, 0) for none."""
        edges = iter(edges_of(self))
        return tuple(
            public_edge(next(edges)) if self._needs >> bit & 1 else (None, 0)
            for bit in range(len(self._places))
        )

    def __repr__(self) -> str:
        cls = type(self)
        return f"<{cls.__module__}.{cls.__name__} object at {id(self):#x}>"

    # -- for the engine ----------------------------------------------------------------

    def _raw(self, g: Any, needs: int) -> Any:
        """Calls the user's backward on tensors around the arrays."""
        if self._outputs is not None or g is None:
            grads = self._call(self._filled(self._handed_out(g)), needs)
        elif needs != self._needs:
            grads = self._call((hand_out(g),), needs)
        else:  # the usual case, in as few steps as possible
            grads = getattr(self._forward_cls, self._backward_name)(self, hand_out(g))
            if type(grads) is Tensor and self._arguments == 1 and self._places == ONLY:
                return grads._array
            grads = self._sorted(grads, needs)
        if type(grads) is list:
            return [None if x is None else x._array for x in grads]
        return None if grads is None else grads._array

    def _handed_out(self, g: Any) -> list[Any]:
        parts = (g,) if self._outputs is None else _parts(g, self)
        return [None if x is None else hand_out(x, 5) for x in parts]

    def _recorded(self, g: Any, needs: int) -> Any:
        """Calls the user's backward, and records what it does."""
        parts = (g,) if self._outputs is None else _parts(g, self)
        given = self._filled([None if x is None else alias(x) for x in parts])
        with _Intermediates(self):
            return self._call(given, needs)

    def __call__(self, *grads: Any) -> Any:
        """The user's backward, applied to gradients by hand."""
        got = self._call(grads, self._needs)
        return tuple(got) if type(got) is list else got

    def _release(self) -> None:
        """Lets go of the saved tensors."""
        if self._saved:
            self._saved = saved.RELEASED

    def _name(self) -> str:
        """The node's name: that of the Function, and Backward."""
        return type(self).__name__

    def _hooked(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients as pre-hooks see them: None for outputs that have none."""
        if self._outputs is None:
            return grads
        full: list[Any] = [None] * len(self._outputs)
        for place, g in zip(self._differentiable_out, grads, strict=True):
            full[place] = g
        return tuple(full)

    def _unhooked(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the differentiable outputs among those."""
        if self._outputs is None:
            return grads
        return tuple(grads[place] for place in self._differentiable_out)

    # -- inside ------------------------------------------------------------------------

    def _zeros(self, output: int) -> Tensor | None:
        """What backward gets for an output that no gradient has reached."""
        if not self._materialize:
            return None
        if self._outputs is None:
            return wrap(np.zeros(self._out_shape, self._out_dtype))
        made = self._outputs[output]
        if made is None or not (
            self._materialize_non_diff_grads or output in self._differentiable_out
        ):
            return None
        return wrap(np.zeros(*made))

    def _filled(self, parts: list[Any]) -> list[Any]:
        """The gradients of the outputs, with zeros where they are wanted."""
        return [self._zeros(i) if x is None else x for i, x in enumerate(parts)]

    def _call(self, given: Any, needs: int) -> Any:
        """What backward returned for the tensors in `needs`: bare if it is one."""
        backward = getattr(self._forward_cls, self._backward_name)
        if needs == self._needs:
            got = backward(self, *given)
        else:
            self._asked = needs
            try:
                got = backward(self, *given)
            finally:
                self._asked = None
        return self._sorted(got, needs)

    def _sorted(self, got: Any, needs: int) -> Any:
        """The gradients for the tensors in `needs` from what backward returned."""
        if type(got) is not tuple:
            got = tuple(got) if isinstance(got, tuple) else (got,)
        if len(got) != self._arguments:
            got = self._counted(got)
        for i in self._plain:
            if got[i] is not None:
                raise self._unwanted(i)
        places = self._places
        if not needs & (needs - 1):
            return self._checked(got, places[needs.bit_length() - 1])
        return [
            self._checked(got, place)
            for bit, place in enumerate(places)
            if needs >> bit & 1
        ]

    def _counted(self, got: tuple[Any, ...]) -> tuple[Any, ...]:
        n = self._arguments
        if len(got) > n and all(x is None for x in got[n:]):
            return got[:n]
        raise RuntimeError(
            f"function {self._name()} returned an incorrect number of gradients "
            f"(expected {n}, got {len(got)}). {self._forward_cls.__name__}.backward "
            "must return one for each argument of forward after ctx; None where there "
            "is none."
        )

    def _unwanted(self, i: int) -> RuntimeError:
        return RuntimeError(
            f"function {self._name()} returned a gradient different than None at position "
            f"{i + 1}, but the corresponding forward input was not a Variable. Return None "
            "there. (The gradient of a number is dropped.)"
        )

    def _checked(self, got: Any, place: Any) -> Tensor | None:
        x = got[place] if type(place) is int else _dig(self, got, place)
        if x is None or isinstance(x, Tensor):
            return x
        raise RuntimeError(
            f"expected Variable or None (got {type(x).__name__}): "
            f"{self._forward_cls.__name__}.backward must return tensors, look at "
            f"gradient {_spell(place)}"
        )

    def _argument(self, place: int) -> str:
        """Where among the arguments the gradient number `place` belongs."""
        return _spell(self._places[super()._argument(place)])

    def _unpacked(self, kept: Any) -> tuple[Tensor | None, ...]:
        return tuple(
            x if x is None or (type(x) is Tensor and x._cell is None) else unpack(self, x)
            for x in kept
        )


def _parts(g: Any, node: FunctionNode) -> list[Any]:
    """A gradient or None for each output of a node with several."""
    grads = [None] * len(node._outputs)
    if g is not None:
        for at, x in zip(node._differentiable_out, g.grads, strict=True):
            grads[at] = x
    return grads


def _spell(place: Any) -> str:
    if type(place) is int:
        return str(place)
    return str(place[0]) + "".join(f"[{key!r}]" for key in place[1:])


def _dig(node: FunctionNode, got: Any, place: Any) -> Any:
    """The gradient at a place inside a container; None stands for a whole one."""
    x = got[place[0]]
    for key in place[1:]:
        if x is None:
            return None
        if not isinstance(x, CONTAINERS):
            raise TypeError(
                f"{node._forward_cls.__name__}.backward: gradient {place[0]} must be a "
                f"container like the argument, or None; got {type(x).__name__}"
            )
        try:
            x = x[key]
        except (KeyError, IndexError):
            raise RuntimeError(
                f"{node._forward_cls.__name__}.backward: gradient {place[0]} must have "
                f"the structure of the argument; it has nothing at {_spell(place)}"
            ) from None
    return x


def alias(g: Tensor) -> Tensor:
    """The same gradient, which may be written without changing what others get."""
    if type(g) is not Tensor or g._extra is not None:
        return g.clone()  # type: ignore[no-any-return]
    array = g._array.view()
    array.flags.writeable = False
    out = wrap(array)
    e = edge(g)
    out._grad_fn = g.view_as(g)._grad_fn if e is LEAF else e
    return out


class Kept:
    """A saved tensor that takes more than a reference: an output, or one with versions.

    An output goes in without its node (no cycle), as array, counter and number.
    """

    __slots__ = ("array", "cell", "index", "tensor", "version")

    def __init__(self, t: Tensor, index: int) -> None:
        self.tensor = t if index < 0 else None
        self.array = t._array
        # Of an output, writes that are still to come must be seen.
        self.cell = cell_of(t) if index >= 0 else t._cell
        self.version = 0 if self.cell is None else self.cell.count
        self.index = index

    def take(self, node: FunctionNode) -> Tensor:
        """The tensor again, if it was not overwritten."""
        if self.cell is not None and self.cell.count != self.version:
            raise saved.modified(node._name(), self.array, self.cell.count, self.version)
        if self.tensor is not None:
            return self.tensor
        out = wrap(self.array)
        out._cell = self.cell
        if self.index in node._differentiable_out and node._needs:
            if node._extra is not None and node._extra.written is not None:
                out._grad_fn = history_of_written(node)
            elif node._outputs is None:
                out._grad_fn = node
            else:
                at = node._differentiable_out.index(self.index)
                n = len(node._differentiable_out)
                known = node._output_nodes[at]
                out._grad_fn = (known and known()) or output_of(node, at, n, self.array)
        return out


def unpack(node: FunctionNode, x: Any) -> Tensor:
    """A saved entry as a tensor: checked, or unpacked by the user's hooks."""
    if type(x) is Kept:
        return x.take(node)
    if hasattr(x, "unpack"):
        return x.unpack(node)  # type: ignore[no-any-return]
    if x._cell is not None and x._cell.count:
        raise saved.modified(node._name(), x._array, x._cell.count, 0)
    return x  # type: ignore[no-any-return]


class _Intermediates:
    """For a recorded backward: marked values on ctx get a node that raises."""

    def __init__(self, node: FunctionNode) -> None:
        self.node = node
        self.attributes: dict[str, Any] = {}

    def __enter__(self) -> None:
        node = self.node
        for key, value in list(node.__dict__.items()):
            if value is saved.RELEASED:
                continue
            guarded = guard(node, value)
            if guarded is not value:
                self.attributes[key] = value
                node.__dict__[key] = guarded

    def __exit__(self, *error: object) -> None:
        released = self.node._saved is saved.RELEASED
        self.node.__dict__.update(self.attributes)
        if released:
            self.node._saved = saved.RELEASED


def guard(node: FunctionNode, value: Any) -> Any:
    """`value` with marked tensors in it replaced by ones that must not be derived."""
    if type(value) in (list, tuple):
        new_items = [guard(node, x) for x in value]
        same = all(a is b for a, b in zip(new_items, value, strict=True))
        return value if same else type(value)(new_items)
    if isinstance(value, Tensor):
        extra = value._extra
        if (
            extra is not None
            and extra.intermediate
            and value._grad_fn is None
            and value._array.dtype.kind in "fc"
        ):
            out = wrap(value._array)
            out._cell = value._cell
            name = node._forward_cls.__name__
            out._grad_fn = refusal(node, _INTERMEDIATE.format(name), value._array)
            return out
    return value


_INTERMEDIATE = (
    "the backward of {0} uses a value that was computed inside its forward (neither "
    "input nor output), so its derivative would miss the part that goes through that "
    "value. To make {0} differentiable twice: return the intermediate as an output "
    "(and mark it non-differentiable or ignore its gradient), or save only inputs and "
    "compute it again in backward. If it really is constant, save value.detach().clone() "
    "made outside of forward, or decorate backward with once_differentiable."
)


class Refusal(Node):
    """A node that raises RuntimeError when a gradient comes to it."""

    __slots__ = ("message",)
    message: str

    def _raw(self, g: Any, needs: int) -> Any:
        """Raises the message."""
        raise RuntimeError(self.message)

    _recorded = _raw

    def _name(self) -> str:
        """The name PyTorch gives to it."""
        return "torch::autograd::Error"


def refusal(source: Node, message: str, array: Any) -> Refusal:
    """A Refusal for `array` with the edges of `source`, so that walks find it."""
    node = new(Refusal)
    node._seq, node._extra, node._versions = next(ticks), None, None
    node._needs, node._next = source._needs, source._next
    node._out_shape, node._out_dtype, node.message = array.shape, array.dtype, message
    return node


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a backward that can't be differentiated itself.

    It runs without recording; differentiating its results raises RuntimeError.
    """

    @wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        flags = mode()
        token = MODE.set(flags & ~GRAD)
        try:
            got = backward(ctx, *grads)
        finally:
            MODE.reset(token)
        if not flags & GRAD:
            return got
        message = (
            "trying to differentiate twice a function that was marked with "
            f"@once_differentiable: {ctx._name()}"
        )
        if isinstance(got, tuple):
            return tuple(_refusing(x, ctx, message) for x in got)
        return _refusing(got, ctx, message)

    return wrapper


def _refusing(x: Any, ctx: Node, message: str) -> Any:
    if not isinstance(x, Tensor):
        return x
    out = wrap(x._array)
    out._grad_fn = refusal(ctx, message, x._array)
    return out
