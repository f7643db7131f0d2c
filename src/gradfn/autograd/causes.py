"""Why is a gradient wrong? The likely cause, told from two Jacobians.

A wrong backward is mostly wrong in one of a dozen ways, and each leaves a pattern: a
Jacobian that is a multiple of the true one, or the true one with two dims exchanged, or
that of another argument. `likely_cause` tries them from the surest to the vaguest.

Note [Matrices of Jacobians]
    A matrix has a row for each element of the output, a column for each of the input. Of
    complex tensors, all real parts come first, then all imaginary ones. Entries that are
    not known (at a kink) are NaN in the numerical matrix and are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Cause", "Jacobians", "likely_cause"]


class Cause(NamedTuple):
    """What is probably wrong."""

    name: str  # one of NAMES, for programs
    text: str  # a sentence, for people


@dataclass
class Jacobians:
    """The Jacobian of one output by one input, as backward gives it and as it is."""

    mine: Any  # analytical, [elements of the output, elements of the input]
    true: Any  # numerical, the same shape
    out_shape: tuple[int, ...]
    in_shape: tuple[int, ...]
    complex_out: bool = False
    complex_in: bool = False
    # What else may explain it: numerical Jacobians of this output by other inputs, those of
    # other outputs by this input, and the values of inputs and outputs, each by a name.
    by_inputs: Mapping[str, Any] = field(default_factory=dict)
    of_outputs: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    here: str = ""  # the name of this input among the values

    def agrees(self, a: Any, b: Any) -> bool:
        """Are two matrices the same, where the true one is known?"""
        if np.shape(a) != np.shape(b):
            return False
        known = np.isfinite(self.true)
        a, b = np.asarray(a)[known], np.asarray(b)[known]
        scale = max(np.abs(b).max(initial=0), np.abs(a).max(initial=0))
        return bool(np.allclose(a, b, rtol=2e-3, atol=1e-5 * scale + 1e-12))


def likely_cause(pair: Jacobians) -> Cause | None:
    """The cause that the pattern of the mistake suggests; None if none does.

    The matrices are expected to differ. Nothing is raised.
    """
    if not pair.mine.size:
        return None
    with np.errstate(all="ignore"):
        for name, test in TESTS.items():
            text = test(pair)
            if text:
                return Cause(name, text)
    return None


# -- a gradient that is not there, or ought not to be ----------------------------------


def _not_finite(p: Jacobians) -> str:
    bad = ~np.isfinite(p.mine) & np.isfinite(p.true)
    if not bad.any():
        return ""
    what = "NaN" if np.isnan(p.mine[bad]).any() else "infinite"
    return f"the gradient is {what} where the derivative is finite"


def _no_gradient(p: Jacobians) -> str:
    if p.mine.any():
        return ""
    return (
        "no gradient reaches this input (backward gives None or zeros, or a detach cuts it "
        "off), though the output depends on it"
    )


def _no_dependence(p: Jacobians) -> str:
    if np.nan_to_num(p.true).any():
        return ""
    return (
        "the output does not change with this input (its values are constant or move in "
        "steps), though backward gives it a gradient"
    )


def _ignores_gradient(p: Jacobians) -> str:
    """All rows alike: whatever the incoming gradient is, the same comes out."""
    if len(p.mine) < 2 or not p.agrees(p.mine, np.repeat(p.mine[:1], len(p.mine), 0)):
        return ""
    return (
        "the same gradient comes out whichever element of the output is differentiated: "
        "backward does not multiply by grad_output"
    )


# -- numbers ---------------------------------------------------------------------------


def _sign(p: Jacobians) -> str:
    return "the sign is wrong" if p.agrees(p.mine, -p.true) else ""


def _constant_factor(p: Jacobians) -> str:
    known = np.isfinite(p.true)
    mine, true = p.mine[known], p.true[known]
    at = np.abs(true).argmax()
    if not np.isfinite(mine[at]) or not mine[at]:
        return ""
    factor = mine[at] / true[at]
    if not p.agrees(p.mine, factor * p.true):
        return ""
    said = f"the gradient is {_number(factor)} times what it should be: a constant factor"
    n = _count(1 / factor, p)
    if n:
        return f"{said} (1/{n} is one over a number of elements: a mean for a sum?)"
    n = _count(factor, p)
    return f"{said} ({n} is a number of elements: a sum for a mean?)" if n else said


def _number(x: float) -> str:
    near = Fraction(float(x)).limit_denominator(12)
    return str(near) if abs(near - x) < 1e-4 * abs(x) else f"{x:.4g}"


def _count(x: float, p: Jacobians) -> int:
    """`x` as a number of elements that the shapes have, or 0."""
    shapes = (p.out_shape, p.in_shape)
    counts = {n for s in shapes for n in (*s, int(np.prod(s, dtype=int)))}
    near = [n for n in counts if n > 2 and abs(x - n) < 1e-3 * n]
    return near[0] if near else 0


def _conjugate(p: Jacobians) -> str:
    if not (p.complex_in or p.complex_out):
        return ""
    rows, columns = (
        np.repeat([1, -1], n // 2) if is_complex else np.ones(n)
        for n, is_complex in zip(p.mine.shape, (p.complex_out, p.complex_in), strict=True)
    )
    for r in (rows, np.ones(len(rows))):
        for c in (columns, np.ones(len(columns))):
            if p.agrees(p.mine, r[:, None] * p.true * c):
                return (
                    "a conjugate is missing or too many: the gradient of a holomorphic f is "
                    "grad_output * f'(z).conj()"
                )
    return ""


def _imaginary_part(p: Jacobians) -> str:
    n = p.mine.shape[1] // 2
    if not p.complex_in or p.mine[:, n:].any():
        return ""
    if not p.agrees(p.mine, np.concatenate([p.true[:, :n], 0 * p.true[:, n:]], 1)):
        return ""
    return "the imaginary part of the gradient is missing"


# -- places ----------------------------------------------------------------------------


def _swapped_argument(p: Jacobians) -> str:
    for name, other in p.by_inputs.items():
        if p.agrees(p.mine, other):
            return f"this is the gradient of {name}: arguments are swapped"
    return ""


def _swapped_output(p: Jacobians) -> str:
    for name, other in p.of_outputs.items():
        if p.agrees(p.mine, other):
            return f"this is the derivative of {name}: the outputs' gradients are swapped"
    return ""


def _permutation(p: Jacobians) -> tuple[int, ...] | None:
    """The order of the dims of output and input in which the true one equals this one."""
    shape = (*p.out_shape, *p.in_shape)
    if p.complex_in or p.complex_out or not 2 <= len(shape) <= 5:
        return None
    true = p.true.reshape(shape)
    for order in list(permutations(range(len(shape))))[1:]:
        turned = true.transpose(order)
        if turned.shape == shape and p.agrees(p.mine, turned.reshape(p.mine.shape)):
            return order
    return None


def _transpose(p: Jacobians) -> str:
    """Dims exchanged in the input, in the output, or between them (W for W.T)."""
    if _permutation(p) is None:
        return ""
    return "a transpose is missing or too many (or the factors of a product change place)"


def _wrong_dim(p: Jacobians) -> str:
    """Dims of the output alone exchanged, of which some are summed over."""
    order, outs = _permutation(p), len(p.out_shape)
    if order is None or not outs > len(p.in_shape) > 0:
        return ""
    only_outs = sorted(order[:outs]) == list(range(outs))
    return "the gradient is summed over the wrong dim" if only_outs else ""


def _reshaped(p: Jacobians) -> str:
    """The gradient of a matrix read in the other order: reshape in place of a transpose."""
    if len(p.in_shape) != 2 or p.complex_in or p.complex_out:
        return ""
    m, n = p.in_shape
    cubes = [p.mine.reshape(-1, m, n), p.true.reshape(-1, m, n)]
    wrong = np.stack([row.T.reshape(m, n) for row in cubes[1]]).reshape(p.mine.shape)
    if not p.agrees(p.mine, wrong):
        return ""
    return "the gradient is reshaped where it should be transposed"


def _broadcast_sum(p: Jacobians) -> str:
    """Of the elements that one of the input goes to, only some send a gradient back."""
    scale = np.abs(np.nan_to_num(p.true)).max()
    there = np.abs(np.nan_to_num(p.true)) > 1e-6 * scale
    absent = np.abs(p.mine) <= 1e-6 * scale
    if not p.agrees(p.mine, np.where(absent, 0, p.true)):
        return ""
    lacking = there & absent
    alone = there.sum(0) < 2
    if lacking[:, alone].any() or not lacking.any():
        return ""
    return (
        "parts of the gradient are missing: an element of this input goes to several of the "
        "output (broadcasting, or a use in two places), and not all are summed"
    )


# -- formulas --------------------------------------------------------------------------


def _formula_factor(p: Jacobians) -> str:
    """A factor that equals an input, an output, or a simple function of one."""
    if p.complex_in or p.complex_out:
        return ""
    for name, there in _factors(p):
        if p.agrees(p.mine * there, p.true):
            return f"a factor {name} is missing"
        if p.agrees(p.mine, p.true * there):
            return f"a factor {name} is too many"
    return ""


_SIMPLE: dict[str, Callable[[Any], Any]] = {
    "{}": lambda v: v,
    "{}**2": lambda v: v * v,
    "2*{}": lambda v: 2 * v,
    "-{}": lambda v: -v,
    "(1 - {})": lambda v: 1 - v,
    "(1 - {}**2)": lambda v: 1 - v * v,
    "-1/{}**2": lambda v: -1 / (v * v),
    "exp({})": np.exp,
    "sign({})": np.sign,
}


def _factors(p: Jacobians) -> Iterator[tuple[str, Any]]:
    """(name, matrix) of what might be a factor."""
    m, n = p.mine.shape
    for name, value in p.values.items():
        v = np.asarray(value)
        if v.dtype.kind != "f" or not v.size:
            continue
        for form, function in _SIMPLE.items():
            f = function(v).reshape(-1)
            if np.ptp(f) < 1e-6 * np.abs(f).max() and f.size > 1:
                continue  # a constant, and no evidence
            if f.size == n:
                yield form.format(name), np.broadcast_to(f, (m, n))
            if f.size == m:
                yield form.format(name), np.broadcast_to(f[:, None], (m, n))


def _branch(p: Jacobians) -> str:
    """Right for some elements of the input, wrong for others: for which?"""
    value = p.values.get(p.here)
    if value is None or p.complex_in or np.size(value) != p.mine.shape[1]:
        return ""
    scale = np.abs(np.nan_to_num(p.true)).max()
    off = np.abs(np.nan_to_num(p.mine - p.true)) > 1e-3 * np.abs(p.true) + 1e-5 * scale
    wrong = off.any(0)
    v = np.asarray(value).reshape(-1)
    for words, where in (
        ("negative", v < 0),
        ("positive", v > 0),
        ("zero", v == 0),
        ("greater than 1", v > 1),
        ("less than -1", v < -1),
        ("greater than 1 in absolute value", abs(v) > 1),
        ("less than 1 in absolute value", abs(v) < 1),
    ):
        few = min(wrong.sum(), (~wrong).sum()) < (1 if words == "zero" else 2)
        if np.array_equal(wrong, where) and not few:
            return f"it is wrong where the input is {words}, and right elsewhere"
    if 0 < wrong.sum() <= len(wrong) // 2:
        places = ", ".join(_place(i, p.in_shape) for i in np.flatnonzero(wrong)[:4])
        return f"only some elements of the input have a wrong gradient: {places}"
    return ""


def _place(i: Any, shape: tuple[int, ...]) -> str:
    return str([int(k) for k in np.unravel_index(i, shape)])


TESTS: dict[str, Callable[[Jacobians], str]] = {
    "not finite": _not_finite,
    "no gradient": _no_gradient,
    "no dependence": _no_dependence,
    "conjugate": _conjugate,
    "imaginary part": _imaginary_part,
    "sign": _sign,
    "constant factor": _constant_factor,
    "swapped argument": _swapped_argument,
    "swapped output": _swapped_output,
    "wrong dim": _wrong_dim,
    "transpose": _transpose,
    "reshaped": _reshaped,
    "grad_output ignored": _ignores_gradient,
    "broadcast sum": _broadcast_sum,
    "formula factor": _formula_factor,
    "branch": _branch,
}
NAMES = tuple(TESTS)  # of the causes, in the order in which they are tried
