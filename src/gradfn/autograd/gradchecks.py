"""What gradcheck checks, one function each. Each raises GradcheckError if it fails."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from gradfn.autograd.backward import grad
from gradfn.autograd.causes import Cause, Jacobians, likely_cause
from gradfn.autograd.function import Function
from gradfn.autograd.jacobians import (
    Subject,
    analytical,
    as_tuple,
    is_complex,
    pulled,
    reals,
    units,
)
from gradfn.tensor import Tensor, wrap


class GradcheckError(RuntimeError):
    """What gradcheck and gradgradcheck raise when gradients are wrong."""


# -- Jacobians -------------------------------------------------------------------------


def compare_backward(of: Subject, atol: float, rtol: float) -> None:
    """Backward passes give the Jacobians that differences give."""
    outputs = of.outputs()
    exact = analytical(outputs, of.wanted)
    for column, place in enumerate(of.active):
        for i, true in enumerate(of.numerical(place)):
            mine = exact[i][column]
            part = differing_part(mine, true, is_complex(outputs[i]), 0, atol, rtol)
            if part is not None:
                cause = cause_of(of, outputs, i, place, mine)
                raise mismatch(f"{part}Jacobian", (i, place), true, mine, cause)


def compare_forward(of: Subject, atol: float, rtol: float) -> None:
    """So does forward mode."""
    for place in of.active:
        complex_input = is_complex(of.given[place])
        pairs = zip(of.forward(place), of.numerical(place), strict=True)
        for i, (mine, true) in enumerate(pairs):
            part = differing_part(mine, true, complex_input, 1, atol, rtol)
            if part is not None:
                what = f"{part}Jacobian computed with forward mode"
                raise mismatch(what, (i, place), true, mine)


def differing_part(
    mine: Any, true: Any, of_complex: bool, axis: int, atol: float, rtol: float
) -> str | None:
    """Where two matrices differ, as the message begins; None if they do not.

    Along `axis` are the complex numbers that are seeded; their real parts come first.
    """
    if not of_complex:
        return None if np.allclose(mine, true, rtol, atol) else ""
    halves = zip(np.array_split(mine, 2, axis), np.array_split(true, 2, axis))
    agree = [np.allclose(a, b, rtol, atol) for a, b in halves]
    if all(agree):
        return None
    part, what = ("real", "imaginary")[not agree[1]], ("outputs", "inputs")[axis]
    return f"While considering the {part} part of complex {what} only, "


def cause_of(
    of: Subject, outputs: list[Tensor], out: int, place: int, mine: Any
) -> Cause | None:
    """What is probably wrong with the gradient of an output by an input."""
    true = {i: of.numerical(i) for i in of.active}
    y, x = outputs[out]._array, of.given[place]._array
    return likely_cause(
        Jacobians(
            mine,
            true[place][out],
            y.shape,
            x.shape,
            y.dtype.kind == "c",
            x.dtype.kind == "c",
            {f"input {i}": by[out] for i, by in true.items() if i != place},
            {f"output {i}": j for i, j in enumerate(true[place]) if i != out},
            {
                **{f"input {i}": of.given[i]._array for i in of.active},
                f"output {out}": y,
            },
            f"input {place}",
        )
    )


def mismatch(
    what: str, where: tuple[int, int], true: Any, mine: Any, cause: Cause | None = None
) -> GradcheckError:
    """The error that shows both matrices, one row an input element as PyTorch does.

    A sentence on the likely cause comes last, where one is known.
    """
    out, place = where
    apart = np.abs(mine - true)
    worst = np.unravel_index(np.nan_to_num(apart, nan=np.inf).argmax(), mine.shape)
    why = f"\nLikely cause: {cause.text}." if cause else ""
    return GradcheckError(
        f"{what} mismatch for output {out} with respect to input {place},\n"
        f"numerical:{wrap(true.T.copy())}\nanalytical:{wrap(mine.T.copy())}\n"
        f"The largest difference is that of element {worst[0]} of the output by element "
        f"{worst[1]} of the input: {true[worst]} numerically, {mine[worst]} "
        f"analytically.{why}"
    )


# -- fast mode -------------------------------------------------------------------------


def direction(like: Tensor, rng: np.random.Generator) -> Any:
    """A random unit vector of positive numbers, so that no faults cancel out."""
    values = rng.uniform(size=like._array.shape)
    size = np.linalg.norm(values.reshape(-1)) or 1.0
    return (values / size).astype(like._array.dtype)


def compare_fast(of: Subject, atol: float, rtol: float, backward: bool) -> None:
    """Jacobians times one random vector from both sides agree, for each pair.

    An entry may be off by `atol`, hence the product by that times all pairs of factors.
    """
    rng = np.random.default_rng(0)
    for column, place in enumerate(of.active):
        u = direction(of.given[place], rng)
        true = of.along(place, u)
        pushed = None if backward else of.pushed(place, u)
        outputs = of.outputs()
        for i, out in enumerate(outputs):
            v = direction(out, rng)
            if pushed is None:
                mine = (pulled([out], of.wanted, [v])[column] * u).sum()
            else:
                mine = (v * pushed[i]).sum()
            expected = (reals(v) * true[i]).sum()
            allowed = atol * max(u.sum() * v.sum(), 1.0)
            if not np.allclose(mine, expected, rtol, allowed):
                raise fast_mismatch(of, (i, place), expected, mine, backward)


def fast_mismatch(
    of: Subject, where: tuple[int, int], true: Any, mine: Any, backward: bool
) -> GradcheckError:
    """The error of fast mode, with the Jacobians themselves and the likely cause."""
    i, place = where
    how = "" if backward else " computed with forward mode"
    slow_true = of.numerical(place)[i]
    if backward:
        outputs = of.outputs()
        slow_mine = analytical(outputs, of.wanted)[i][of.active.index(place)]
        cause = cause_of(of, outputs, i, place, slow_mine)
    else:
        slow_mine, cause = of.forward(place)[i], None
    apart = np.abs(slow_mine - slow_true).max(initial=0)
    why = f"\nLikely cause: {cause.text}." if cause else ""
    return GradcheckError(
        f"Jacobian{how} mismatch for output {i} with respect to input {place},\n"
        f"numerical:{wrap(np.asarray(true))}\nanalytical:{wrap(np.asarray(mine))}\n"
        "These are products with random vectors, which is what fast mode compares. The "
        f"Jacobians themselves:\n\nNumerical:\n{wrap(slow_true.T.copy())}\n"
        f"Analytical:\n{wrap(slow_mine.T.copy())}\n\nThe max per-element difference (slow "
        f"mode) is: {apart}.{why}"
    )


# -- what else backward must do --------------------------------------------------------


def check_flat(of: Subject) -> None:
    """No output requires grad: then none may depend on the inputs."""
    for place in of.active:
        for step in units(of.given[place]):
            ahead, back = of.moved(place, step, _floating)
            if any(
                not np.array_equal(a, b, equal_nan=True)
                for a, b in zip(ahead, back, strict=True)
            ):
                raise GradcheckError(
                    "Numerical gradient for function expected to be zero: no output "
                    f"requires grad, but one changes with input {place}"
                )


def _floating(outputs: Any) -> list[Any]:
    return [
        t._array.copy()
        for t in as_tuple(outputs)
        if isinstance(t, Tensor) and t._array.dtype.kind in "fc"
    ]


def check_determinism(of: Subject, tolerance: float) -> None:
    """Another backward pass gives the same."""
    rng = np.random.default_rng(0)
    outputs = of.outputs()
    seeds = [direction(t, rng) for t in outputs]
    for out, seed in zip(outputs, seeds, strict=True):
        first, second = (pulled([out], of.wanted, [seed]) for _ in range(2))
        for x, y in zip(first, second, strict=True):
            if x.size and np.nanmax(np.abs(x - y)) > tolerance:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    "gradient matches numerical gradient. The tolerance for nondeterminism "
                    f"was {tolerance}."
                )


def check_dtypes(of: Subject) -> None:
    """Gradients have the dtypes of their inputs."""
    for g, t in _gradients(of, np.ones_like):
        if g.dtype != t.dtype:
            raise GradcheckError(
                f"Gradient has dtype mismatch: it is of {g.dtype}, its input of {t.dtype}"
            )


def check_proportional(of: Subject) -> None:
    """A gradient of zero gives gradients of zero, of the inputs' dtypes and shapes."""
    for g, t in _gradients(of, np.zeros_like):
        if g._array.any():
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != t.dtype:
            raise GradcheckError(
                f"grad is incorrect type: it is {g.dtype}, its input {t.dtype}"
            )
        if g.shape != t.shape:
            raise GradcheckError(
                f"grad is incorrect size: it is {list(g.shape)}, its input {list(t.shape)}"
            )


def _gradients(of: Subject, seed: Any) -> list[tuple[Tensor, Tensor]]:
    outputs = of.outputs()
    seeds = [wrap(seed(t._array)) for t in outputs]
    got = grad(outputs, of.wanted, seeds, allow_unused=True)
    return [(g, t) for g, t in zip(got, of.wanted, strict=True) if g is not None]


class _Undefined(Function):
    """Hands its argument on; what made it gets no gradient in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> None:
        return None


def check_undefined(of: Subject) -> None:
    """Backward can do with outputs that get no gradient: any of them, or all."""
    everyone = set(range(len(of.outputs())))
    for without in [everyone, *({i} for i in everyone if len(everyone) > 1)]:
        outputs = of.outputs()
        outputs = [
            _Undefined.apply(t) if i in without else t for i, t in enumerate(outputs)
        ]
        zeros = [wrap(np.zeros_like(t._array)) for t in outputs]
        try:
            got = grad(outputs, of.wanted, zeros, allow_unused=True)
        except Exception as error:
            _warn_of_undefined()
            raise GradcheckError(f"{_UNDEFINED[0]} {_UNDEFINED[2]}: {error}") from error
        if any(g is not None and g._array.any() for g in got):
            _warn_of_undefined()
            raise GradcheckError(f"{_UNDEFINED[1]} {_UNDEFINED[2]}")


def _warn_of_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is "
        "enabled by default; check_undefined_grad=False leaves it out.",
        UserWarning,
        stacklevel=4,
    )


_UNDEFINED = (
    "Expected backward function to handle undefined output grads.",
    "Expected all input grads to be undefined or zero when all output grads are undefined "
    "or zero.",
    'Please look at "Notes about undefined output gradients" in '
    '"tools/autograd/derivatives.yaml"',
)


# -- what else forward mode must do ------------------------------------------------------


def check_undefined_forward(of: Subject) -> None:
    """An input without tangent is as one whose tangent is zero."""
    forward_ad: Any = importlib.import_module("gradfn.autograd.forward_ad")
    rng = np.random.default_rng(0)
    ways = {i: direction(of.given[i], rng) for i in of.active}
    for place in of.active:
        found = []
        for way in (np.zeros_like(of.given[place]._array), None):
            with forward_ad.dual_level():
                args = list(of.given)
                for i in of.active:
                    t = args[i] = of.given[i].detach()
                    tangent = way if i == place else ways[i]
                    if tangent is not None:
                        args[i] = forward_ad.make_dual(t, wrap(tangent))
                outs = [t for t in as_tuple(of.func(*args)) if isinstance(t, Tensor)]
                found.append([forward_ad.unpack_dual(t).tangent for t in outs])
        for i, (a, b) in enumerate(zip(*found, strict=True)):
            if a is not None and b is not None and not np.allclose(a._array, b._array):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {i} when input "
                    f"{place} has an undefined tangent value: got {b}, but with a tangent "
                    f"of zeros {a}."
                )


# -- batches -------------------------------------------------------------------------------


def check_batched_backward(of: Subject) -> None:
    """A batch of gradients gives what each of them does."""
    rng = np.random.default_rng(0)
    for i, out in enumerate(of.outputs()):
        if out._array.size:
            seeds = [direction(out, rng) for _ in range(2)]
            loop = [pulled([out], of.wanted, [seed]) for seed in seeds]

            def batch(out: Tensor = out, seeds: Any = seeds) -> list[Any]:
                got = grad(
                    out,
                    of.wanted,
                    wrap(np.stack(seeds)),
                    retain_graph=True,
                    allow_unused=True,
                    is_grads_batched=True,
                )
                return [None if g is None else g._array for g in got]

            _same_batch(batch, loop, lambda column, i=i: (i, of.active[column]), False)


def check_batched_forward(of: Subject) -> None:
    """A batch of tangents gives what each of them does."""
    func: Any = importlib.import_module("gradfn.func")
    rng = np.random.default_rng(0)
    for place in of.active:
        if not of.given[place]._array.size:
            continue
        ways = [direction(of.given[place], rng) for _ in range(2)]
        stacked = wrap(np.stack(ways))

        def batch(place: int = place, stacked: Any = stacked) -> list[Any]:
            return [t._array for t in func.vmap(lambda v: _pushed(of, place, v))(stacked)]

        loop = [
            [t._array for t in _pushed(of, place, wrap(way))]  # as func.jvp would
            for way in ways
        ]
        _same_batch(batch, loop, lambda row, place=place: (row, place), True)


def _pushed(of: Subject, place: int, way: Tensor) -> tuple[Tensor, ...]:
    """The tangents of the outputs, where only one input has one."""
    forward_ad: Any = importlib.import_module("gradfn.autograd.forward_ad")
    args = [t.detach() if isinstance(t, Tensor) else t for t in of.given]
    with forward_ad.dual_level():
        args[place] = forward_ad.make_dual(args[place], way)
        outs = [t for t in as_tuple(of.func(*args)) if isinstance(t, Tensor)]
        pairs = [forward_ad.unpack_dual(t) for t in outs]
    return tuple(p.primal.detach() * 0 if p.tangent is None else p.tangent for p in pairs)


def _same_batch(batch: Any, loop: list[list[Any]], where: Any, forward: bool) -> None:
    try:
        got = batch()
    except RuntimeError as error:
        raise GradcheckError(
            f"{_batch_failed(forward)}\n\nGot:\n\nRuntimeError: {error}"
        ) from error
    for place, (all_at_once, *each) in enumerate(zip(got, *loop, strict=True)):
        expected = np.stack(each)
        have = np.zeros_like(expected) if all_at_once is None else all_at_once
        if not np.allclose(have, expected, equal_nan=True):
            out, into = where(place)
            raise GradcheckError(
                f"For output {out} and input {into}:\n\n{_batch_failed(forward)}\n\n"
                f"Got:\n{wrap(have)}\n\nExpected:\n{wrap(expected)}"
            )


def _batch_failed(forward: bool) -> str:
    what = "forward mode" if forward else "a backward pass"
    option = "check_batched_forward_grad" if forward else "check_batched_grad"
    return (
        "gradcheck or gradgradcheck failed while testing batched gradient computation: "
        f"{what} under vmap. An op (or a Function) on its way has no rule for batches or a "
        f"wrong one; {option}=False leaves this check out."
    )
