"""Examples of a Function's use: given, from its `examples()`, or found by search.

Note [Search]
    Where nobody gives examples, arguments are tried until forward takes them. A parameter
    is a tensor, a number or an index by its annotation, its default or its name; those of
    which nothing is known are tensors first, and numbers from the last one on when that
    fails. Shapes run from vectors to batches of matrices, and where there are several
    tensors, through shapes that products and layers have. Values are drawn with both
    signs, and between 0 and 1 where that gives NaN.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Literal

import numpy as np

from gradfn._pytree import tree_flatten
from gradfn.check.errors import cause_of
from gradfn.check.subject import SEED, Example, Subject, array

MOST = 5  # examples that a search looks for
TRIES = 400

# -- given -----------------------------------------------------------------------------


def collect(subject: Subject, given: Sequence[Any]) -> list[Example]:
    """The examples to check with: `given`, else the Function's own, else found ones.

    TypeError if one of them is not a tuple of arguments (or a tensor that is the only one).
    """
    own = given
    if not own and callable(getattr(subject.cls, "examples", None)):
        own = list(subject.cls.examples())
    if own:
        return [prepared(subject, e) for e in own]
    return list(islice(search(subject), MOST))


def prepared(subject: Subject, example: Any) -> Example:
    """A given example: if no tensor in it requires grad, all floating ones shall."""
    args = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    least = sum(
        p.default is p.empty and p.kind in _POSITIONAL for p in subject.parameters()
    )
    if len(args) < least:
        raise TypeError(
            f"{subject.cls.__name__}.forward takes {least} arguments, and an example has "
            f"{len(args)}: give each example as a tuple, check(F, (x, y), (x2, y2))"
        )
    leaves, _ = tree_flatten(args)
    floating = [i for i, x in enumerate(leaves) if subject.floating(x)]
    marked = [i for i in floating if leaves[i].requires_grad]
    bare = [x.detach() if subject.is_tensor(x) else x for x in leaves]
    return Example(args, tuple(marked or floating)).replaced(bare)


_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)

# -- search ----------------------------------------------------------------------------

TENSOR, NUMBER, INDEX, FIXED = "tensor", "number", "index", "fixed"

NUMBERS = (2, 0.5, 0, 1, True)
_NUMBER_NAMES = (
    r"(dim|axis|k|n|p|c|alpha|beta|gamma|eps|epsilon|lam|lambd|lambda_|scale|factor|constant|"
    r"const|slope|negative_slope|temperature|tau|power|exponent|lo|hi|low|high|min|max|"
    r"min_val|max_val|bits|levels|rate|ratio|prob|strength|coeff?|num_.*|n_.*|.*_size|threshold|keepdim|reverse|flag)$"
)
_INDEX_NAMES = r"(idx|index|indices|ids|labels?|targets?|classes)$"

_SHAPES: dict[int, list[tuple[tuple[int, ...], ...]]] = {
    1: [((4,),), ((2, 3),), ((3, 3),), ((2, 3, 4),), ((),)],
    2: [
        ((4,), (4,)),
        ((2, 3), (2, 3)),
        ((2, 3), (3, 4)),
        ((3, 3), (3, 3)),
        ((2, 3), (3,)),
        ((3, 3), (3,)),
        ((2, 3), (4, 3)),
        ((), ()),
        ((2, 2, 3), (2, 3, 2)),
        ((3,), (3, 2)),
    ],
    3: [
        ((4,), (4,), (4,)),
        ((2, 3), (4, 3), (4,)),
        ((2, 3), (3, 4), (4,)),
        ((2, 3), (3, 4), (2, 4)),
        ((2, 3), (2, 3), (2, 3)),
        ((2, 3), (3,), (3,)),
        ((), (), ()),
    ],
}


def search(subject: Subject) -> Iterator[Example]:
    """Arguments that forward takes, of different shapes; the same ones in each run."""
    tries = 0
    for kinds in plans(subject.parameters()):
        found = 0
        for example in candidates(subject, kinds):
            tries += 1
            if works(subject, example):
                found += 1
                yield example
            if tries > TRIES:
                return
        if found:
            return


def plans(parameters: list[inspect.Parameter]) -> Iterator[list[tuple[str, Any]]]:
    """What each parameter may be: (kind, values), the likeliest first."""
    known = [kind_of(p) for p in parameters if p.kind is not p.VAR_KEYWORD]
    known = [k for k, p in zip(known, parameters) if p.kind is not p.KEYWORD_ONLY]
    yield [k or (TENSOR, None) for k in known]
    open_places = [i for i, k in enumerate(known) if k is None]
    for count in range(1, len(open_places)):
        plan = [k or (TENSOR, None) for k in known]
        for i in open_places[-count:]:
            plan[i] = (NUMBER, NUMBERS)
        yield plan
    if open_places:  # a name that looks like a number's may be a tensor's all the same
        return
    guessed = [i for i, p in enumerate(parameters) if p.annotation is p.empty]
    if guessed:
        yield [
            (TENSOR, None)
            if i in guessed and k and k[0] != FIXED
            else k or (TENSOR, None)
            for i, k in enumerate(known)
        ]


def kind_of(p: inspect.Parameter) -> tuple[str, Any] | None:
    """The kind of a parameter and its values; None if nothing tells."""
    if p.default is not p.empty:
        return FIXED, (p.default,)
    text = p.annotation if isinstance(p.annotation, str) else ""
    kind = _named_type(text) if text else p.annotation
    if getattr(kind, "__name__", "") == "Tensor" or text.endswith("Tensor"):
        return (INDEX, None) if re.match(_INDEX_NAMES, p.name) else (TENSOR, None)
    options = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        return FIXED, options
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        plain = [_values(o) for o in options]
        return next(((NUMBER, v) for v in plain if v), (TENSOR, None))
    if _values(kind):
        return NUMBER, _values(kind)
    if re.match(_INDEX_NAMES, p.name):
        return INDEX, None
    return (NUMBER, NUMBERS) if re.match(_NUMBER_NAMES, p.name) else None


def _named_type(text: str) -> Any:
    return {"int": int, "float": float, "bool": bool, "str": str}.get(text)


def _values(kind: Any) -> tuple[Any, ...]:
    """Values of a plain type; none for another."""
    if kind is bool:
        return (True, False)
    if kind is int:
        return (1, 0, 2, -1)
    if kind is float:
        return (0.5, 2.0)
    return ("sum", "mean", "none") if kind is str else ()


def candidates(subject: Subject, plan: list[tuple[str, Any]]) -> Iterator[Example]:
    """Examples of a plan, in all shapes, with all values of its numbers."""
    n = sum(kind == TENSOR for kind, _ in plan)
    shapes = _SHAPES.get(n) or [((4,),) * n, ((2, 3),) * n, ((),) * n]
    choices = max((len(v) for k, v in plan if k in (NUMBER, FIXED)), default=1)
    for draw in ("normal", "unit"):
        for group in shapes:
            for choice in range(choices):
                yield example(subject, plan, group, choice, draw)


def example(
    subject: Subject, plan: list[tuple[str, Any]], shapes: Any, choice: int, draw: str
) -> Example:
    """One example: tensors of these shapes, and one of the values of each number."""
    rng = np.random.default_rng([SEED, choice, len(plan)])
    left = list(shapes)
    args: list[Any] = []
    for kind, options in plan:
        if kind == TENSOR:
            shape = left.pop(0)
            values = (
                rng.normal(size=shape) * 1.3
                if draw == "normal"
                else rng.uniform(0.1, 0.9, shape)
            )
            args.append(subject.tensor(np.asarray(values)))
        elif kind == INDEX:
            first = shapes[0] if shapes else (3,)
            args.append(subject.tensor(rng.integers(0, 2, first[:1] or (1,))))
        else:
            args.append(options[choice % len(options)])
    active = tuple(i for i, x in enumerate(args) if subject.floating(x))
    return Example(tuple(args), active, searched=True)


def works(subject: Subject, example: Example) -> bool:
    """Does forward take it, and give finite numbers that have a derivative?

    Notes in the subject if the Function writes into its inputs, and errors that tell what
    is wrong with it.
    """
    try:
        with np.errstate(all="ignore"):
            outs = [t for t in subject.call(example).outs if subject.floating(t)]
    except Exception as error:
        if "leaf" in str(error) and not subject.writes:
            subject.writes = True
            return works(subject, example)
        if cause_of(error) != "raises":
            subject.problem = error
        return False
    return bool(outs) and all(np.isfinite(array(t)).all() for t in outs)
