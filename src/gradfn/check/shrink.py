"""The smallest example that still shows a fault, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradfn.check.subject import Example, Subject, array

BUDGET = 60  # examples that are tried


def smallest(
    subject: Subject, example: Example, shows: Callable[[Example], bool]
) -> Example:
    """An example that `shows` the fault and of which nothing more can be left out."""
    left = BUDGET
    again = True
    while again and left > 0:
        again = False
        for other in simpler(subject, example):
            left -= 1
            if left < 0:
                break
            if shows(other):
                example, again = other, True
                break
    return example


def simpler(subject: Subject, example: Example) -> Iterator[Example]:
    """Examples with fewer elements, then with rounder numbers."""
    tensors = [x for x in example.leaves if subject.is_tensor(x)]
    for size in sorted({n for x in tensors for n in x.shape if n > 1}, reverse=True):
        for smaller in dict.fromkeys((1, size // 2, size - 1)):
            yield _mapped(subject, example, _cut(size, smaller))
    for i, x in enumerate(example.leaves):
        if subject.floating(x) and not x.is_complex():
            for change in (np.ones_like, np.round, lambda a: np.round(a, 1)):
                found = change(array(x))
                if not np.array_equal(found, array(x), equal_nan=True) and (
                    _digits(found) < _digits(array(x))
                ):
                    leaves = list(example.leaves)
                    leaves[i] = subject.tensor(found, x)
                    yield example.replaced(leaves)


def _digits(a: Any) -> int:
    """How much there is to write."""
    return sum(len(f"{v:.17g}") for v in a.reshape(-1))


def _cut(size: int, smaller: int) -> Callable[[Any], Any]:
    """Cuts every dim of one size, as they belong together."""
    return lambda a: a[
        tuple(slice(smaller) if n == size else slice(None) for n in a.shape)
    ]


def _mapped(subject: Subject, example: Example, change: Callable[[Any], Any]) -> Example:
    leaves = [
        subject.tensor(change(array(x)), x) if subject.is_tensor(x) else x
        for x in example.leaves
    ]
    return example.replaced(leaves)


def written(subject: Subject, example: Example) -> str:
    """The call, as one would type it; of large tensors, the shape alone."""
    args = ", ".join(_argument(subject, x) for x in example.args)
    return f"{subject.cls.__name__}.apply({args})"


def _argument(subject: Subject, x: Any) -> str:
    if subject.is_tensor(x):
        return tensor(x)
    if isinstance(x, (list, tuple)):
        inside = ", ".join(_argument(subject, v) for v in x)
        return f"[{inside}]" if isinstance(x, list) else f"({inside},)"
    return repr(x) if len(repr(x)) < 60 else f"<{type(x).__name__}>"


def tensor(t: Any) -> str:
    """A tensor in a line."""
    dtype = str(t.dtype).rpartition(".")[2]
    if t.numel() > 12:
        return f"<tensor {list(t.shape)} {dtype}>"
    body = np.array2string(
        array(t), separator=", ", threshold=100, max_line_width=10**6, precision=6
    ).replace("\n", "")
    plain = dtype in ("int64", "bool")
    return f"tensor({' '.join(body.split())}{'' if plain else f', dtype={dtype}'})"
