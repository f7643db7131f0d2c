"""Forward mode through a custom Function: its jvp, or its backward transposed.

Note [A Function's tangents]
    `jvp(ctx, *tangents)` is called once for each level, after forward, with None for
    arguments that have no tangent, and `ctx.saved_tensors` are what save_for_forward was
    given. With `generate_jvp_rule = True` a Function needs no jvp: its backward is a
    linear map of the gradient, and the transposed map is found by differentiating it
    (Note [One derivative, both ways] in ops/forward.py).
"""

from __future__ import annotations

from typing import Any

from gradfn._state import GRAD, mode, switch
from gradfn.autograd.node import CONTAINERS, FunctionNode, Kept, _dig
from gradfn.graph import engine
from gradfn.graph.gradient import fit_tensor
from gradfn.graph.tangent import below, levels, set_tangent, tangent, write_tangent
from gradfn.ops.forward import source, zeros
from gradfn.tensor import Tensor


def push_function(ctx: FunctionNode, args: Any, outs: list[Any]) -> None:
    """Gives the outputs of a Function their tangents. RuntimeErrors."""
    for level in levels():
        given = [_tangents(x, level) for x in args]
        if any(_there(g) for g in given):
            with below(level):
                found = _found(ctx, args, outs, given)
            _check_and_set(ctx, level, args, outs, given, found)


def _tangents(x: Any, level: Any) -> Any:
    """The tangent of an argument; of a container, one of its shape."""
    if isinstance(x, Tensor):
        return tangent(x, level)
    if isinstance(x, dict):
        return {k: _tangents(v, level) for k, v in x.items()}
    if isinstance(x, CONTAINERS):
        return [_tangents(v, level) for v in x]
    return None


def _there(given: Any) -> bool:
    """Is there any tangent?"""
    if isinstance(given, CONTAINERS):
        items = given.values() if isinstance(given, dict) else given
        return any(_there(x) for x in items)
    return given is not None


def _found(ctx: FunctionNode, args: Any, outs: list[Any], given: Any) -> list[Any]:
    """The tangents of the outputs."""
    cls = ctx._forward_cls
    if cls.generate_jvp_rule:
        return _transposed(ctx, args, outs, given)
    if ctx._materialize:
        given = [
            zeros(x) if g is None and _is_floating(x) else g
            for x, g in zip(args, given, strict=True)
        ]
    kept = ctx._saved
    ctx._saved = tuple(None if t is None else Kept(t, -1) for t in ctx._for_forward)
    versions = [g._version if isinstance(g, Tensor) else 0 for g in given]
    try:
        got = cls.jvp(ctx, *given)
    finally:
        ctx._saved = kept
    ctx._tangent_versions = versions
    found = list(got) if isinstance(got, (tuple, list)) else [got]
    if len(found) != len(outs):
        raise RuntimeError(
            "Function's jvp returned an invalid number of forward gradients (expected "
            f"{len(outs)} but got {len(found)}): {cls.__name__}.jvp must return one for "
            "each output of forward"
        )
    return found


def _check_and_set(
    ctx: FunctionNode, level: Any, args: Any, outs: list[Any], given: Any, found: Any
) -> None:
    """Gives the outputs what jvp returned for them, if that is as it must be."""
    name = ctx._forward_cls.__name__
    for i, (out, value) in enumerate(zip(outs, found, strict=True)):
        if not _takes_tangent(ctx, out):
            if value is not None:
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {i}, but the "
                    "corresponding forward output is not a differentiable Tensor. You "
                    f"should return None at that position instead ({name}.jvp)."
                )
            continue
        if value is None:
            continue
        if not isinstance(value, Tensor):
            raise RuntimeError(
                f"expected Tensor or None (got {type(value).__name__}): {name}.jvp must "
                f"return tensors, look at tangent {i}"
            )
        dirty = next((k for k, x in enumerate(args) if x is out), None)
        if dirty is not None:
            _set_written(ctx, level, out, given[dirty], dirty, value)
            continue
        with below(level):
            _check_view(out, args, given, value)
        if out._view is not None and tangent(out._view.base, level) is None:
            write_tangent(out, level, value)
        else:
            set_tangent(out, level, value)


def _is_floating(x: Any) -> bool:
    return isinstance(x, Tensor) and x._array.dtype.kind in "fc"


def _takes_tangent(ctx: FunctionNode, out: Any) -> bool:
    return _is_floating(out) and all(t is not out for t in ctx._non_differentiable)


def _set_written(
    ctx: Any, level: Any, out: Tensor, given: Any, place: int, value: Tensor
) -> None:
    """The tangent of an input that forward wrote, which jvp must have written likewise."""
    if given is None:
        write_tangent(out, level, value)
        return
    if value._version == ctx._tangent_versions[place]:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients "
            "inplace. If the forward is modifying an input inplace, then the jvp function "
            "must modify the corresponding gradient inplace."
        )
    if value is not given:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. "
            "If the forward is modifying an input inplace, then the jvp function must "
            "modify the gradient inplace and return it as-is."
        )


def _check_view(out: Tensor, args: Any, given: Any, value: Tensor) -> None:
    """RuntimeError if forward returned a view of an input and jvp no such view."""
    if out._view is None:
        return
    for x, g in zip(args, given, strict=True):
        if not isinstance(x, Tensor) or g is None:
            continue
        if out._view.base is not (x if x._view is None else x._view.base):
            continue
        if value._view is None:
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but "
                "the jvp is not returning a view."
            )
        if value._view.base is not (g if g._view is None else g._view.base):
            of = (
                "the same base as the given grad input"
                if g._view
                else "the given grad input"
            )
            raise RuntimeError(
                "A custom Function is returning a view but the jvp is not returning a view "
                f"of {of}."
            )


def _transposed(ctx: FunctionNode, args: Any, outs: list[Any], given: Any) -> list[Any]:
    """The tangents by differentiating backward in the gradient: generate_jvp_rule."""
    seeds = [source(t) if _takes_tangent(ctx, t) else None for t in outs]
    saved = ctx._saved
    with switch(on=GRAD):
        ctx._saved = tuple(None if t is None else Kept(t, -1) for t in saved)
        try:
            given_grads = [
                zeros(t)
                if s is None and ctx._materialize and isinstance(t, Tensor)
                else s
                for s, t in zip(seeds, outs, strict=True)
            ]
            got = getattr(ctx._forward_cls, ctx._backward_name)(ctx, *given_grads)
        finally:
            ctx._saved = saved
        got = got if type(got) is tuple else (got,)
        pairs = list(_pairs(ctx, args, got, given))
    captures: dict[Any, Any] = {s._grad_fn: None for s in seeds if s is not None}
    if pairs:
        engine.backward(
            [g._grad_fn for g, _ in pairs],
            [v for _, v in pairs],
            keep=True,
            create_graph=bool(mode() & GRAD),
            captures=captures,
            into_grad=False,
        )
    found = []
    for s, out in zip(seeds, outs, strict=True):
        value = None if s is None else captures[s._grad_fn]
        found.append(zeros(out) if value is None and s is not None else value)
    return found


def _pairs(ctx: FunctionNode, args: Any, got: Any, given: Any) -> Any:
    """(gradient, tangent) for each tensor among the arguments that has both."""
    for place in ctx._places:
        way = place if type(place) is tuple else (place,)
        t: Any = args
        v: Any = given
        for key in way:
            t, v = t[key], v[key]
        g = got[place] if type(place) is int else _dig(ctx, got, place)
        if g is None or v is None:
            continue
        g = fit_tensor(g, t._array.shape, t._array.dtype, None, (g,))
        if g._grad_fn is not None:
            yield g, v
