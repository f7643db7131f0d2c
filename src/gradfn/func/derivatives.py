"""Derivatives of functions: grad, vjp, jvp and what is built of them.

Note [Fresh arguments]
    A derivative calls the function with aliases of the arguments that require grad. An
    alias of a tensor with history continues that history, so that an outer derivative
    (of gradfn.func or of autograd) goes through; one of a tensor without is a new leaf.
    If nothing but such leaves is behind a result, nobody outside can derive it: then it
    is returned without history, and the pass need not be recorded. On batched tensors it
    is recorded all the same if the layer beneath has a history: that is derived outside
    of vmap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from gradfn._pytree import tree_flatten, tree_map, tree_unflatten
from gradfn._state import GRAD, MODE, mode, switch
from gradfn.autograd.backward import grad as autograd_grad
from gradfn.autograd.forward_ad import dual_level, make_dual, unpack_dual
from gradfn.graph.batched import beneath
from gradfn.graph.node import Node, edges_of
from gradfn.graph.transforms import at_work, work
from gradfn.ops.world import PUBLIC
from gradfn.tensor import LEAF, Tensor, share


def _name(func: Any) -> str:
    return getattr(func, "__name__", None) or repr(func)


@contextmanager
def derivative() -> Iterator[None]:
    """One more derivative is at work."""
    now = work()
    with at_work(now._replace(depth=now.depth + 1)):
        yield


def fresh(tree: Any) -> tuple[Any, list[Tensor]]:
    """The arguments with aliases for the tensors, and those aliases that are new leaves."""
    leaves: list[Tensor] = []

    def alias(x: Any) -> Any:
        if not isinstance(x, Tensor):
            raise ValueError(
                f"Thing passed to transform API must be Tensor, got {type(x)}: derivatives "
                "are taken by tensors; leave other arguments out of argnums"
            )
        if x._array.dtype.kind not in "fc":
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients, got one of "
                f"{x.dtype} to derive by"
            )
        if x.requires_grad and MODE.get() & GRAD:
            return x.view_as(x)
        out = detached(x)
        out._grad_fn = LEAF
        leaves.append(out)
        return out

    return tree_map(alias, tree), leaves


def detached(x: Tensor) -> Tensor:
    """The same values, with their tangents but without history."""
    from gradfn.graph.tangent import levels, set_tangent, tangent

    out = share(x, x._array)
    for level in levels():
        value = tangent(x, level)
        if value is not None:
            set_tangent(out, level, value)
    return out


def is_closed(results: Any, leaves: list[Tensor]) -> bool:
    """Is nothing behind the results but these leaves?"""
    known = {id(t) for t in leaves}
    stack = [t._grad_fn for t in results if isinstance(t._grad_fn, Node)]
    stack += [t for t in results if t._grad_fn is LEAF]
    seen: set[int] = set()
    while stack:
        at = stack.pop()
        if isinstance(at, Tensor):
            if id(at) not in known:
                return False
        elif id(at) not in seen:
            seen.add(id(at))
            stack += edges_of(at)
    return True


def _tensors(tree: Any) -> list[Tensor]:
    return [t for t in tree_flatten(tree)[0] if isinstance(t, Tensor)]


def released(tree: Any, closed: bool) -> Any:
    """Results as they are returned: without history if nobody outside can derive them."""
    if not closed:
        return tree
    return tree_map(lambda t: detached(t) if isinstance(t, Tensor) else t, tree)


def split_aux(name: str, got: Any, has_aux: bool) -> tuple[Any, Any]:
    """(output, aux) of what a function returned. RuntimeError if it is no pair."""
    if not has_aux:
        return got, None
    if not (isinstance(got, tuple) and len(got) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is "
            "True"
        )
    for x in tree_flatten(got[1])[0]:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)} in aux")
    return got


def check_results(name: str, outs: list[Any]) -> None:
    """RuntimeError unless a function returned tensors, and one at least."""
    if not outs or (len(outs) == 1 and outs[0] is None):
        raise RuntimeError(
            f"{name}: Expected f to be a function that has non-empty output (got output = "
            f"{outs})"
        )
    for t in outs:
        if not isinstance(t, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(t)}"
            )


# -- grad ------------------------------------------------------------------------------


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of `func`, which returns a number.

    The gradient is taken by the argument `argnums` (a nested container of tensors, too),
    or by several, and has its structure. With has_aux `func` returns `(output, aux)`, and
    the result is `(gradient, aux)`. RuntimeError if the output is not a 0-d tensor.
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        got, value = both(*args, **kwargs)
        return (got, value[1]) if has_aux else got

    return wrapper


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives `(gradient, output)`, or `(gradient, (output, aux))`."""

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        recorded = bool(mode() & GRAD)
        chosen = pick(args, argnums)
        with derivative(), switch(on=GRAD):
            with _grad_mode(recorded):
                inner, leaves = fresh(chosen)
            got = func(*put(args, argnums, inner), **kwargs)
            output, aux = split_aux("grad_and_value(f)(*args)", got, has_aux)
            check_scalar(output)
            wanted = _tensors(inner)
            closed = not recorded or is_closed(_tensors((output, aux)), leaves)
            record = recorded and not (closed and is_closed(beneath([output]), leaves))
            grads = _grads([output], wanted, None, record)
        grads = released(grads, closed)
        flat, spec = tree_flatten(inner)
        by_place = iter(grads)
        result = tree_unflatten(
            [next(by_place) if isinstance(x, Tensor) else x for x in flat], spec
        )
        output, aux = released(output, closed), released(aux, closed)
        return result, (output, aux) if has_aux else output

    return wrapper


@contextmanager
def _grad_mode(on: bool) -> Iterator[None]:
    with switch(on=GRAD) if on else switch(off=GRAD):
        yield


def _grads(
    outputs: list[Tensor], wanted: list[Tensor], seeds: Any, record: bool
) -> list[Tensor]:
    """Gradients, zeros for what the outputs do not depend on."""
    pairs = [
        (t, None if seeds is None else seeds[i])
        for i, t in enumerate(outputs)
        if t.requires_grad
    ]
    differentiable = [t for t in wanted if t.requires_grad]
    if not pairs or not differentiable:
        return [PUBLIC["zeros_like"](t) for t in wanted]
    found = autograd_grad(
        [t for t, _ in pairs],
        differentiable,
        [s for _, s in pairs],
        retain_graph=True,
        create_graph=record,
        allow_unused=True,
    )
    by_id = {id(t): g for t, g in zip(differentiable, found, strict=True)}
    got = [by_id.get(id(t)) for t in wanted]
    return [
        PUBLIC["zeros_like"](t.detach()) if g is None else g
        for t, g in zip(wanted, got, strict=True)
    ]


def check_scalar(output: Any) -> None:
    """RuntimeError unless a function's output can have a gradient."""
    if not isinstance(output, Tensor):
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
            f"{type(output)}"
        )
    if output.dim():
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got "
            f"tensor with {output.dim()} dims. Maybe you wanted to use the vjp or jacrev "
            "APIs instead?"
        )


def pick(args: Any, argnums: Any) -> Any:
    """The argument that is meant, or a tuple of those. RuntimeErrors."""
    if isinstance(argnums, int):
        _check_place(args, argnums)
        return args[argnums]
    if isinstance(argnums, tuple):
        if not argnums:
            raise RuntimeError("argnums must be non-empty")
        places = [_place(args, i) for i in argnums]
        if len(set(places)) != len(places):
            raise RuntimeError(
                f"argnums elements must be unique, got argnums={argnums!r}"
            )
        return tuple(args[i] for i in places)
    raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")


def _check_place(args: Any, argnum: Any) -> None:
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -len(args) <= argnum < len(args):
        raise RuntimeError(f"Got argnum={argnum}, but only {len(args)} positional inputs")


def _place(args: Any, argnum: Any) -> int:
    _check_place(args, argnum)
    return argnum % len(args)  # type: ignore[no-any-return]


def put(args: Any, argnums: Any, values: Any) -> tuple[Any, ...]:
    """The arguments with others in the place of those that `pick` took."""
    new = list(args)
    if isinstance(argnums, int):
        new[argnums] = values
    else:
        for i, value in zip(argnums, values, strict=True):
            new[_place(args, i)] = value
    return tuple(new)


# -- vjp and jvp ---------------------------------------------------------------------------


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(output, vjp_fn)`, or with has_aux `(output, vjp_fn, aux)`.

    `vjp_fn(cotangents)`, of the output's structure, gives a tuple with the gradient of
    each primal.
    """
    recorded = bool(mode() & GRAD)
    with derivative(), switch(on=GRAD):
        with _grad_mode(recorded):
            inner, leaves = fresh(primals)
        got = func(*inner)
        output, aux = split_aux("vjp(f, *primals)", got, has_aux)
        outs, spec = tree_flatten(output)
        check_results("vjp(f, *primals)", outs)
        check_floating(outs)
        closed = not recorded or is_closed(_tensors((output, aux)), leaves)
    flat, in_spec = tree_flatten(inner)

    def vjp_fn(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        """The gradients of the primals."""
        seeds, seed_spec = tree_flatten(cotangents)
        if seed_spec != spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure "
                f"of outputs to the function. cotangents: {seed_spec}, primal output: {spec}"
            )
        check_cotangents(outs, seeds)
        record = bool(mode() & GRAD) if create_graph is None else create_graph
        if closed and not any(isinstance(s, Tensor) and s.requires_grad for s in seeds):
            record = record and not is_closed(beneath([*outs, *seeds]), leaves)
        grads = iter(_grads(outs, [t for t in flat if _is_float(t)], seeds, record))
        return tree_unflatten(
            [next(grads) if _is_float(t) else None for t in flat], in_spec
        )

    shown = released(output, closed)
    return (shown, vjp_fn, released(aux, closed)) if has_aux else (shown, vjp_fn)


def check_floating(outs: list[Tensor]) -> None:
    """RuntimeError if an output is of a kind that has no derivative."""
    for t in outs:
        if not _is_float(t):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, "
                f"got Tensor with dtype {t.dtype}"
            )


def _is_float(t: Any) -> bool:
    return isinstance(t, Tensor) and t._array.dtype.kind in "fc"


def check_cotangents(outs: list[Tensor], seeds: list[Any]) -> None:
    """RuntimeError if one has not its output's shape."""
    for i, (t, s) in enumerate(zip(outs, seeds, strict=True)):
        if isinstance(s, Tensor) and s._array.shape != t._array.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {s.shape} and "
                f"output[{i}] has a shape of {t.shape}."
            )


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """`(output, jvp_out)`, or with has_aux `(output, jvp_out, aux)`.

    `primals` and `tangents` are tuples of the same structure and shapes. Where an output
    does not depend on them its tangent is zeros, or RuntimeError if `strict`.
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be "
            f"valid to call f(*primals). Got {type(primals)}"
        )
    flat, spec = tree_flatten(primals)
    ways, way_spec = tree_flatten(tangents)
    if spec != way_spec:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same "
            f"python structure. For example, if primals is a tuple of 3 tensors, tangents "
            f"also must be. Got primals with structure {spec} and tangents with structure "
            f"{way_spec}"
        )
    check_inputs(flat, ways)
    with derivative(), dual_level():
        duals = [make_dual(x, v) for x, v in zip(flat, ways, strict=True)]
        got = func(*tree_unflatten(duals, spec))
        output, aux = split_aux("jvp(f, primals, tangents)", got, has_aux)
        outs, out_spec = tree_flatten(output)
        check_results("jvp(f, primals, tangents)", outs)
        pairs = [unpack_dual(t) for t in outs]
        aux = tree_map(lambda t: unpack_dual(t)[0] if isinstance(t, Tensor) else t, aux)
    pushed = [_tangent(p, v, strict) for p, v in pairs]
    result = (
        tree_unflatten([p for p, _ in pairs], out_spec),
        tree_unflatten(pushed, out_spec),
    )
    return (*result, aux) if has_aux else result


def _tangent(primal: Tensor, tangent: Tensor | None, strict: bool) -> Tensor:
    if tangent is not None:
        return tangent
    if strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
            "inputs. This is not allowed with strict=True."
        )
    return PUBLIC["zeros_like"](primal.detach())  # type: ignore[no-any-return]


def check_inputs(flat: list[Any], ways: list[Any]) -> None:
    """RuntimeError unless primals and tangents are tensors, and there is one."""
    for name, found in (("primals", flat), ("tangents", ways)):
        if not found:
            raise RuntimeError(
                f"jvp(f, primals, tangents): Expected {name} to contain at least one Tensor."
            )
        for x in found:
            if not isinstance(x, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected {name} to only contain Tensors, "
                    f"got {type(x)}"
                )


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """`(output, jvp_fn)`: the function at `primals`, and its linear part there.

    `jvp_fn(*tangents)` is the derivative in a direction; it is exact and may be called
    often. RuntimeError if the tangents have another structure or other shapes.
    """
    output = func(*primals)
    flat, spec = tree_flatten(primals)

    def jvp_fn(*tangents: Any) -> Any:
        """The derivative in a direction."""
        ways, way_spec = tree_flatten(tangents)
        if way_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {way_spec} to have the same argspec as the primals "
                f"{spec}"
            )
        for i, (x, v) in enumerate(zip(flat, ways, strict=True)):
            for what in ("shape", "dtype"):
                given, due = getattr(v, what), getattr(x, what)
                if given != due:
                    raise RuntimeError(
                        f"tangent:{i} with {what} {given} in flattened pytree doesn't match "
                        f"the {what} {due} of the corresponding primal."
                    )
        return jvp(func, primals, tangents)[1]

    return output, jvp_fn
