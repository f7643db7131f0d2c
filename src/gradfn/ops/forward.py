"""Forward mode: the tangents of an op's results, from its row.

Note [One derivative, both ways]
    A row gives the gradient of its arguments, a linear map of the result's gradient. Its
    tangent is the transposed map, and it is found from the same formula:
    - a view of a tangent is the tangent of the view, and where an op is linear in each
      argument (`linear=True`) the tangent is a sum of the op applied to tangents;
    - an elementwise op's map is diagonal, so on real numbers the formula itself serves;
    - in general the formula is recorded at a gradient `u`, whose value does not matter, and
      derived by it: the gradient of <formula(u), tangent> by `u` is the result's tangent.
    So no row needs a second formula, and the orders agree in both modes.
"""

from __future__ import annotations

from typing import Any

from gradfn._state import GRAD, mode, switch
from gradfn.graph import engine
from gradfn.graph.batched import is_recorded_beneath
from gradfn.graph.gradient import fit_tensor
from gradfn.graph.node import Node, new, ticks
from gradfn.graph.tangent import (
    below,
    levels_of,
    set_tangent,
    tangent,
    write_tangent,
)
from gradfn.ops.pointwise import is_pointwise
from gradfn.ops.source import names_of
from gradfn.ops.world import RECORDED
from gradfn.tensor import Tensor, wrap


def push(op: Any, out: Any, tensors: Any, args: Any) -> None:
    """Gives a result (or the list of them) its tangents."""
    for level in levels_of(out[0] if isinstance(out, list) else out):
        given = [None if t is None else tangent(t, level) for t in tensors]
        if any(g is not None for g in given):
            with below(level):
                found = Pushing(op, out, tensors, args, given).tangents()
            for t, value in zip(out if isinstance(out, list) else [out], found):
                if value is not None:
                    if not op.view and any(shares(value, g) for g in given):
                        with below(level):
                            value = value.clone()
                    set_tangent(t, level, value)


def shares(value: Tensor, given: Tensor | None) -> bool:
    """Is one the other, or a view of it? A result's tangent is to have its own memory."""
    if value is given:
        return True
    if given is None or value._view is None:
        return False
    return value._view.base is (given if given._view is None else given._view.base)


def push_written(op: Any, t: Tensor, old: Tensor, tensors: Any, args: Any) -> None:
    """The same for a result that was written into `t`, which had been as `old` is."""
    tensors = [old if x is t else x for x in tensors]
    args = tuple(old if x is t else x for x in args)
    for level in levels_of(t):
        given = [None if x is None else tangent(x, level) for x in tensors]
        if any(g is not None for g in given):
            with below(level):
                (value,) = Pushing(op, t, tensors, args, given).tangents()
            if value is not None:
                write_tangent(t, level, value)


class Pushing:
    """One op at one level: its arguments, their tangents, and its results."""

    def __init__(self, op: Any, out: Any, tensors: Any, args: Any, given: Any) -> None:
        self.op, self.args = op, args
        self.tensors, self.given = tensors, given
        self.outs = out if isinstance(out, list) else [out]
        self.values = dict(zip(op.params, args, strict=True))

    def tangents(self) -> list[Tensor | None]:
        """A tangent, or None, for each result."""
        if not self.op.rules:
            return [None] * len(self.outs)
        if self.op.view or self.op.linear:
            return self.linear()
        if is_pointwise(self.op) and self.is_real():
            return [self.diagonal()]
        return self.transposed()

    def is_real(self) -> bool:
        there = [t for t in self.tensors if t is not None]
        return all(t._array.dtype.kind != "c" for t in (*there, *self.outs))

    def linear(self) -> list[Tensor | None]:
        """The op applied to one argument's tangent after the other, summed up."""
        if self.op.many:
            full = [
                zeros(t) if g is None else g for t, g in zip(self.tensors, self.given)
            ]
            got = self.op.function(**self.values | {self.op.many: full})
            return list(got) if self.op.outputs else [got]
        total: list[Any] = [None] * len(self.outs)
        for name, value in zip(self.op.takes, self.given, strict=True):
            if value is None or name not in self.op.rules:
                continue
            got = self.op.function(**self.values | {name: value})
            parts = got if self.op.outputs else (got,)
            total = [b if a is None else a + b for a, b in zip(total, parts, strict=True)]
        return total

    def diagonal(self) -> Tensor:
        """The formula at the tangents, where each result depends on one place only."""
        out = self.outs[0]
        total: Any = None
        for name, value in zip(self.op.takes, self.given, strict=True):
            if value is not None and name in self.op.rules:
                if value._array.shape != out._array.shape:
                    value = value.expand(out._array.shape)
                part = self.formula(name, value)
                total = part if total is None else total + part
        if total is None:
            return zeros(out)
        if total._array.shape != out._array.shape:
            total = total.expand(out._array.shape)
        return fit_tensor(  # type: ignore[no-any-return]
            total, out._array.shape, out._array.dtype, None, ()
        )

    def transposed(self) -> list[Tensor | None]:
        """The gradient of the formulas by the gradient they are given."""
        count = len(self.outs) if self.op.outputs == ["many"] else self.op.differentiable
        floating = [
            i < count and t._array.dtype.kind in "fc" for i, t in enumerate(self.outs)
        ]
        seeds = [source(t) if f else None for t, f in zip(self.outs, floating)]
        with switch(on=GRAD):
            pairs = [
                (g, v)
                for g, v in self.gradients(seeds)
                if g is not None and g._grad_fn is not None
            ]
        captures: dict[Any, Any] = {s._grad_fn: None for s in seeds if s is not None}
        if pairs:
            engine.backward(
                [g._grad_fn for g, _ in pairs],
                [v for _, v in pairs],
                keep=True,
                create_graph=bool(mode() & GRAD) and self.is_recorded(),
                captures=captures,
                into_grad=False,
            )
        found: list[Tensor | None] = []
        for s, t in zip(seeds, self.outs):
            got = None if s is None else captures[s._grad_fn]
            found.append(zeros(t) if got is None and s is not None else got)
        return found

    def is_recorded(self) -> bool:
        """Does anything here require grad?"""
        there = [t for t in (*self.tensors, *self.given) if t is not None]
        return any(t.requires_grad or is_recorded_beneath(t) for t in there)

    def gradients(self, seeds: Any) -> list[tuple[Any, Any]]:
        """(gradient for the results' gradients `seeds`, tangent) for each argument."""
        g = seeds if self.several() else seeds[0]
        if self.op.many:
            got = self.formula(self.op.many, g)
            pairs = list(zip(self.tensors, got, self.given, strict=True))
        else:
            pairs = [
                (t, self.formula(name, g), value)
                for name, t, value in zip(self.op.takes, self.tensors, self.given)
                if value is not None and name in self.op.rules
            ]
        return [
            (fit_tensor(x, t._array.shape, t._array.dtype, None, (x,)), value)
            for t, x, value in pairs
            if value is not None and x is not None
        ]

    def several(self) -> bool:
        return self.op.differentiable > 1 or self.op.outputs == ["many"]

    def formula(self, name: str, g: Any) -> Any:
        """The row's formula for an argument."""
        rule = self.op.rules[name]
        return rule(*[g if n in ("g", "gs") else self.value(n) for n in names_of(rule)])

    def value(self, n: str) -> Any:
        """What a formula means by a name."""
        op = self.op
        if n == "xp":
            return RECORDED
        if n == "result":
            return self.outs[0]
        if n in op.outputs:
            return self.outs[op.outputs.index(n)]
        if n in self.values:
            return self.values[n]
        name, _, what = n.rpartition("_")
        if name == op.many:
            return [getattr(t._array, what) for t in self.tensors]
        t = self.tensors[op.takes.index(name)]
        return None if t is None else getattr(t._array, what)


class Source(Node):
    """Where a gradient starts: a node without edges."""

    __slots__ = ()


def source(like: Tensor) -> Tensor:
    """Zeros that need a gradient; the node is new, so whatever is older is not looked at."""
    t = zeros(like)
    node = t._grad_fn = new(Source)
    node._seq, node._extra, node._versions = next(ticks), None, None
    node._needs, node._next = 0, ()
    node._out_shape, node._out_dtype = t._array.shape, t._array.dtype
    return t


def zeros(like: Tensor) -> Tensor:
    """Zeros of the shape and dtype of a tensor."""
    return wrap(RECORDED._zeros_like(like.detach())._array)
