"""What the drawing wants to know of a program while it runs.

`with record() as recorder:` has each node remember the line of the program that made it
and what came of it, and, once a backward pass has gone over it, the size of its gradient
and what it had saved. Without it nothing of this is kept, and nothing is paid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradfn.drawing.saved import Saved, saved_by, values_of
from gradfn.graph.node import Node, Output, Parts, edges_of, node_extra
from gradfn.graph.observe import Observer, observed
from gradfn.graph.place import Place, place_now
from gradfn.tensor import Tensor, extra_of


@dataclass(frozen=True, slots=True)
class Amounts:
    """How large the finite values of an array are, and how many are not finite."""

    norm: float
    nan: int
    inf: int


@dataclass(slots=True)
class Notes:
    """What is written down at a node or a leaf."""

    place: Place | None = None
    result: Amounts | None = None
    gradient: Amounts | None = None  # all that came, added up
    spoils: bool = False  # it made NaN or inf in backward of a finite gradient
    saved: tuple[Saved, ...] | None = None  # what it let go of after running


@dataclass
class Recorder(Observer):
    """Writes notes at nodes and leaves; knows where the last backward pass began."""

    roots: tuple[Any, ...] = ()
    passes: int = 0
    _depth: int = field(default=0, repr=False)

    def made(self, node: Node, out: Any) -> None:
        """Notes the line and the result."""
        outs = out if isinstance(out, list) else [out]
        arrays = [values_of(x) for x in outs]
        node_extra(node).notes = Notes(place_now(), amounts(arrays))

    def began(self, roots: Sequence[Any]) -> None:
        """Notes the roots and what is saved; a pass inside another is part of that."""
        if not self._depth:
            self.roots, self.passes = tuple(roots), self.passes + 1
            for node in reached(roots)[0]:  # all at once, while all of it is there
                notes_of(node_extra(node)).saved = tuple(saved_by(node))
        self._depth += 1

    def ended(self, roots: Sequence[Any]) -> None:
        """One pass less is running."""
        self._depth -= 1

    def ran(self, node: Any, g: Any, needs: int, apply: Callable[..., Any]) -> Any:
        """Notes what came, and whether the node made NaN of numbers."""
        notes = notes_of(node_extra(node))
        came = notes.gradient = amounts(_arrays(g))
        got = apply(node, g, needs)
        made = amounts(_arrays(got))
        notes.spoils = came is not None and not _spoilt(came) and _spoilt(made)
        return got

    def arrived(self, leaf: Any, grad: Any, keep: Callable[[], None]) -> None:
        """Notes the leaf's gradient of this pass."""
        notes_of(extra_of(leaf)).gradient = amounts(_arrays(grad))
        keep()


@contextmanager
def record() -> Iterator[Recorder]:
    """Has nodes remember lines, sizes and gradients for `gradfn.draw`, in this block."""
    recorder = Recorder()
    with observed(recorder):
        yield recorder


def notes_of(extra: Any) -> Notes:
    """The notes in a NodeExtra or a tensor's Extra, made now if there are none."""
    if not isinstance(extra.notes, Notes):
        extra.notes = Notes()
    return extra.notes


def amounts(arrays: Sequence[Any]) -> Amounts | None:
    """The 2-norm of all arrays together, over their finite values."""
    kinds = [a for a in arrays if isinstance(a, np.ndarray) and a.dtype.kind in "fc"]
    if not kinds:
        return None
    square, nan, inf = 0.0, 0, 0
    with np.errstate(all="ignore"):
        for a in kinds:
            wide = a.astype(np.result_type(a, np.float64), copy=False)
            part = float(np.vdot(wide, wide).real)
            if not np.isfinite(part):
                finite = np.isfinite(wide)
                nan += int(np.isnan(wide).sum())
                inf += int(np.isinf(wide).sum())
                part = float(np.linalg.norm(wide[finite])) ** 2
            square += part
    return Amounts(square**0.5, nan, inf)


def _spoilt(a: Amounts | None) -> bool:
    return a is not None and bool(a.nan or a.inf)


def _arrays(g: Any) -> list[Any]:
    """The arrays in what travels backward."""
    if type(g) is Parts:
        g = g.grads
    items = g if isinstance(g, (list, tuple)) else [g]
    return [values_of(x) for x in items if type(x) is not Parts]


def reached(roots: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """All nodes, leaves, and outputs of nodes with several, behind `roots`."""
    seen: set[int] = set()
    nodes: list[Any] = []
    leaves: list[Any] = []
    outputs: list[Any] = []
    stack = list(reversed(roots))
    while stack:
        at = stack.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, Tensor):
            leaves.append(at)
            continue
        (outputs if isinstance(at, Output) else nodes).append(at)
        stack += reversed(edges_of(at))
    return nodes, leaves, outputs
