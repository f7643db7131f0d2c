"""Are gradients the derivatives of the values? First order, linearity, second order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradfn.autograd.causes import Jacobians, likely_cause
from gradfn.check import numeric
from gradfn.check.audit import Finding, audit, fail, ok, skip, warn
from gradfn.check.errors import cause_of, raised, words
from gradfn.check.subject import Call, Example, Subject, array, same

# -- the function of one input ---------------------------------------------------------


def values(subject: Subject, example: Example, place: int) -> numeric.Values:
    """The live outputs as real vectors, as a function of one leaf's array."""
    leaves = list(example.leaves)
    live = [t.requires_grad for t in subject.call(example).outs]

    def f(point: Any) -> list[Any]:
        leaves[place] = subject.tensor(point, example.leaves[place])
        outs = subject.call(example.replaced(leaves), active=()).outs
        return [numeric.reals(array(t)) for t, on in zip(outs, live, strict=True) if on]

    return f


def units(t: Any) -> list[Any]:
    """A unit vector for each real number of an output; random ones if there are many."""
    shape, is_complex = tuple(t.shape), t.is_complex()
    if t.numel() <= numeric.MOST:
        places = list(np.ndindex(shape))
        seeds = []
        for unit in (1, 1j) if is_complex else (1,):
            for place in places:
                seed = np.zeros(shape, complex if is_complex else float)
                seed[place] = unit
                seeds.append(seed)
        return seeds
    rng = np.random.default_rng(8)
    return [rng.normal(size=shape) * (1 + 0.5j if is_complex else 1) for _ in range(8)]


def onto(seeds: Sequence[Any], matrix: Any) -> Any:
    """The rows of a Jacobian that belong to the seeds: its products with them."""
    if not seeds:
        return matrix
    return np.stack([numeric.reals(s) for s in seeds]) @ matrix


def backward_rows(subject: Subject, call: Call, out: int) -> list[Any]:
    """For each active input the products of the seeds of an output with its Jacobian."""
    y = call.live[out]
    rows = []
    for seed in units(y):
        got = subject.grad([y], call.active, [subject.tensor(seed, y)])
        rows.append(
            [
                _entries(np.zeros(tuple(t.shape)) if g is None else array(g), t)
                for g, t in zip(got, call.active, strict=True)
            ]
        )
    if not rows:  # an empty output; backward must do with it all the same
        subject.grad([y], call.active, subject.seeds([y]))
        return [np.zeros((0, len(_entries(array(t), t)))) for t in call.active]
    return [np.stack(part) for part in zip(*rows, strict=True)]


def _entries(gradient: Any, t: Any) -> Any:
    """The gradient in those directions in which differences are taken."""
    found = []
    for place, unit in numeric.directions(array(t)):
        found.append(gradient[place].real if unit == 1 else gradient[place].imag)
    return np.array(found, dtype=np.float64)


# -- first order -----------------------------------------------------------------------


@audit("first order", after=("gradients",))
def first_order(subject: Subject, example: Example) -> Finding:
    """Do gradients agree with numerical derivatives?"""
    compared = 0
    for pair in pairs(subject, example):
        if isinstance(pair, Finding):
            return pair
        compared += int(np.isfinite(pair.true).sum())
    return ok() if compared else skip("no derivative is known there (kinks, constants)")


def pairs(subject: Subject, example: Example) -> Iterator[Jacobians | Finding]:
    """The Jacobians of each output by each input; a Finding where they differ."""
    call = subject.call(example)
    mine = [backward_rows(subject, call, k) for k in range(len(call.live))]
    points = [array(t) for t in call.active]
    fs = [values(subject, example, place) for place in example.active]
    steps = [numeric.steps_for(f, p) for f, p in zip(fs, points, strict=True)]
    true = [
        [
            onto(units(y), matrix)
            for y, matrix in zip(call.live, numeric.jacobian(f, p, s), strict=True)
        ]
        for f, p, s in zip(fs, points, steps, strict=True)
    ]
    names = leaf_names(subject, example)
    for k, y in enumerate(call.live):
        for i, x in enumerate(call.active):
            pair = Jacobians(
                mine[k][i],
                true[i][k],
                tuple(y.shape) if y.numel() <= numeric.MOST else mine[k][i].shape[:1],
                tuple(x.shape) if x.numel() <= numeric.MOST else mine[k][i].shape[1:],
                y.is_complex(),
                x.is_complex(),
                {names[j]: true[j][k] for j in range(len(points)) if j != i},
                {f"output {m}": true[i][m] for m in range(len(call.live)) if m != k},
                {
                    **dict(zip(names, points, strict=True)),
                    ("the output" if len(call.live) == 1 else f"output {k}"): array(y),
                },
                names[i],
            )
            if numeric.differ(pair.mine, pair.true, steps[i]):
                yield _explained(pair, names[i], k if len(call.live) > 1 else None)
            yield pair


def leaf_names(subject: Subject, example: Example) -> list[str]:
    """The names of the active tensors: parameters of forward, or numbers."""
    parameters = [p.name for p in subject.parameters()]
    places: list[str] = []
    for i, arg in enumerate(example.args):
        name = parameters[i] if i < len(parameters) else f"argument {i}"
        inside = Example((arg,), ()).leaves
        several = len(inside) > 1 or inside[:1] != [arg]
        places += [f"{name}[{k}]" if several else name for k in range(len(inside))]
    return [places[i] for i in example.active]


def _explained(pair: Jacobians, name: str, out: int | None) -> Finding:
    found = likely_cause(pair)
    of = "" if out is None else f" of output {out}"
    apart = np.nan_to_num(np.abs(pair.mine - pair.true), nan=-1.0, posinf=np.inf)
    apart[~np.isfinite(pair.mine) & np.isfinite(pair.true)] = np.inf
    at = np.unravel_index(apart.argmax(), apart.shape)
    facts = (
        f"d{of}/d{name}: backward gives {pair.mine[at]:.6g}, "
        f"the true value is {pair.true[at]:.6g}"
    )
    if found is None:
        return fail("wrong formula", facts)
    return fail(found.name, f"{found.text} ({facts})")


# -- linearity -------------------------------------------------------------------------


@audit("linearity", after=("gradients",))
def linearity(subject: Subject, example: Example) -> Finding:
    """Is backward linear in grad_output?"""
    call = subject.call(example)
    if not call.live:
        return skip("no output is differentiable")
    one, two = (subject.seeds(call.live, n) for n in (1, 2))
    both = [a * 3 - b * 0.5 for a, b in zip(one, two, strict=True)]
    first, second, third = (subject.gradients(call, s) for s in (one, two, both))
    loose = any(numeric.COARSE is s for s in _steps(subject, example))
    for a, b, c in zip(first, second, third, strict=True):
        if not same(c, 3 * a - 0.5 * b, 1e-3 if loose else 1e-6, 1e-3 if loose else 1e-7):
            if same(a, b) or same(a, c):
                return fail(
                    "grad_output ignored", "the same gradient comes for any grad_output"
                )
            return fail(
                "not linear",
                "backward(3*g - h/2) is not 3*backward(g) - backward(h)/2: a gradient "
                "multiplies grad_output by what does not depend on it",
            )
    return ok()


def _steps(subject: Subject, example: Example) -> Iterator[numeric.Steps]:
    for place in example.active:
        f = values(subject, example, place)
        yield numeric.steps_for(f, array(example.leaves[place]))


# -- second order ----------------------------------------------------------------------


_REFUSED = "marked with @once_differentiable"


@audit("second order", after=("gradients", "linearity"))
def second_order(subject: Subject, example: Example) -> Finding:
    """Are second derivatives right, or refused?"""
    call = subject.call(example)
    seeds = [s.requires_grad_() for s in subject.seeds(call.live)]
    try:
        first = subject.grad(call.live, call.active, seeds, create_graph=True)
        if any(refuses(g) for g in first):
            return ok("refused by once_differentiable")
        second = second_rows(subject, call, first, seeds)
    except Exception as error:
        return refused(subject, example, error)
    inputs = [*call.active, *seeds]
    function = gradient_values(subject, example, seeds)
    for i, x in enumerate(inputs):
        f = _of_one(function, [array(t) for t in inputs], i)
        steps = numeric.steps_for(f, array(x))
        for k, true in enumerate(numeric.jacobian(f, array(x), steps)):
            mine = second[k][i]
            if mine.size and numeric.differ(
                mine, onto(units(call.active[k]), true), steps
            ):
                return unrecorded(subject, example, mine, i >= len(call.active))
    return ok()


def refuses(g: Any) -> bool:
    """Does the history of a gradient begin with the node that once_differentiable puts
    there? PyTorch's raises in backward(), but autograd.grad goes round it."""
    node = None if g is None else g.grad_fn
    return node is not None and node.name().endswith("Error")


def refused(subject: Subject, example: Example, error: Exception) -> Finding:
    """The Finding where a second derivative is refused."""
    if _REFUSED in str(error):
        return ok("refused by once_differentiable")
    if cause_of(error) == "saved intermediate" and keeps_intermediates(subject, example):
        return raised(error, "the second derivative")
    return warn(
        "second order refused",
        f"backward cannot be differentiated ({words(error)}); decorate it with "
        "once_differentiable to say so",
    )


def second_rows(
    subject: Subject, call: Call, first: Sequence[Any], seeds: Sequence[Any]
) -> list[list[Any]]:
    """For each gradient, the rows of its Jacobian by each input and each seed."""
    inputs = [*call.active, *seeds]
    found = []
    for g, x in zip(first, call.active, strict=True):
        whole = units(x)
        rows = [
            subject.grad([g], inputs, [subject.tensor(s, g)])
            if g is not None and g.requires_grad
            else [None] * len(inputs)
            for s in whole
        ]
        found.append(
            [
                np.stack([_entries(_or_zeros(row[i], t), t) for row in rows])
                if rows
                else np.zeros((0, 0))
                for i, t in enumerate(inputs)
            ]
        )
    return found


def _or_zeros(g: Any, t: Any) -> Any:
    return np.zeros(tuple(t.shape)) if g is None else array(g)


def gradient_values(
    subject: Subject, example: Example, seeds: Sequence[Any]
) -> Callable[[list[Any]], list[Any]]:
    """First gradients as real vectors, as a function of the arrays of inputs and seeds."""
    n = len(example.active)

    def gradients(points: list[Any]) -> list[Any]:
        leaves = list(example.leaves)
        for place, point in zip(example.active, points[:n], strict=True):
            leaves[place] = subject.tensor(point, example.leaves[place])
        call = subject.call(example.replaced(leaves))
        own = [subject.tensor(p, s) for p, s in zip(points[n:], seeds, strict=True)]
        return [numeric.reals(g) for g in subject.gradients(call, own)]

    return gradients


def _of_one(f: Any, points: list[Any], i: int) -> numeric.Values:
    def one(point: Any) -> list[Any]:
        moved = [*points[:i], point, *points[i + 1 :]]
        return f(moved)  # type: ignore[no-any-return]

    return one


def unrecorded(subject: Subject, example: Example, mine: Any, by_seed: bool) -> Finding:
    """Why a second derivative is silently wrong."""
    name = "grad_output" if by_seed else "the input"
    if keeps_intermediates(subject, example):
        return fail(
            "saved intermediate",
            f"the second derivative by {name} is silently wrong: backward uses a value that "
            "was computed inside forward; compute it again in backward, return it as an "
            "output, or use once_differentiable",
        )
    if not mine.any():
        return fail(
            "not recorded",
            f"the second derivative by {name} is silently zero: backward computes with "
            "NumPy, .data, detach() or no_grad(); use recorded operations, or "
            "once_differentiable",
        )
    return fail("second order", f"the second derivative by {name} is silently wrong")


def keeps_intermediates(subject: Subject, example: Example) -> bool:
    """Does ctx keep a value that is neither input nor output and changes with the input?"""
    here, there = (
        intermediates(subject, e) for e in (example, subject.jittered(example))
    )
    return len(here) != len(there) or not all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(here, there, strict=True)
    )


def intermediates(subject: Subject, example: Example) -> list[Any]:
    """The values of the floating tensors on ctx that are neither inputs nor outputs."""
    call = subject.call(example)
    node = next((t.grad_fn for t in call.live if t.grad_fn is not None), None)
    known = {_memory(t) for t in (*subject.tensors(call.args), *call.outs)}
    kept = [t for t in kept_by(subject, node) if subject.floating(t)]
    return [array(t).copy() for t in kept if _memory(t) not in known]


def _memory(t: Any) -> tuple[Any, ...]:
    return t.data_ptr(), tuple(t.shape)


def kept_by(subject: Subject, node: Any) -> list[Any]:
    """The tensors that a Function's node keeps: saved ones and attributes."""
    try:
        saved = list(node.saved_tensors)
    except Exception:  # an op's node, or one whose outputs were returned by other ops
        saved = []
    attributes = [v for k, v in getattr(node, "__dict__", {}).items() if k[:1] != "_"]
    return [t for t in (*saved, *subject.tensors(attributes)) if subject.is_tensor(t)]
