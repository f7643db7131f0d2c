"""gradfn.draw: the picture of a graph, shown by a notebook and written to files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from gradfn._pytree import tree_flatten
from gradfn.drawing.dot import dot_of
from gradfn.drawing.facts import summary
from gradfn.drawing.fold import fold as folded
from gradfn.drawing.graph import Graph, graph_of, with_saved
from gradfn.drawing.layout import rendered, svg_of
from gradfn.drawing.limit import limited
from gradfn.drawing.mermaid import mermaid_of
from gradfn.drawing.names import named, variables
from gradfn.drawing.trial import trial
from gradfn.graph.node import Node, target_of
from gradfn.tensor import Tensor

__all__ = ["Picture", "draw"]

Direction = Literal["forward", "backward"]


class Picture:
    """A drawn graph: a notebook shows it, `save` writes it, `graph` holds its data."""

    def __init__(self, graph: Graph, direction: Direction = "forward") -> None:
        self.graph = graph
        self.direction = direction
        self._svg: str | None = None

    def dot(self) -> str:
        """Graphviz's text."""
        return str(dot_of(self.graph, self.direction).source)

    def mermaid(self) -> str:
        """Mermaid's text, which GitHub and many editors draw."""
        return mermaid_of(self.graph, self.direction)

    def svg(self) -> str:
        """The drawing, laid out by `dot` where that is installed, else by grandalf."""
        if self._svg is None:
            self._svg = svg_of(self.graph, self.direction)
        return self._svg

    def html(self) -> str:
        """A page that needs no network: zoom, search, and the facts of what is clicked."""
        from gradfn.drawing.page import page_of

        return page_of(self.graph, self.svg())

    def save(self, path: str | Path) -> Path:
        """Writes the file; its ending says what: .svg .png .pdf .dot .html or .mmd.

        Raises ValueError for another ending, and RuntimeError for .png and .pdf where
        Graphviz's program `dot` is not installed. Returns the path.
        """
        path = Path(path)
        write = WRITERS.get(path.suffix.lower())
        if write is None:
            raise ValueError(
                f"cannot write {path.name!r}: the ending must be one of "
                f"{' '.join(sorted(WRITERS))}"
            )
        content = write(self)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
        return path

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto; max-height:80vh">{self.svg()}</div>'

    def __repr__(self) -> str:
        return f"<Picture: {summary(self.graph)}>"


# How to write a file, by its ending.
WRITERS: dict[str, Callable[[Picture], str | bytes]] = {
    ".dot": Picture.dot,
    ".gv": Picture.dot,
    ".html": Picture.html,
    ".md": lambda picture: f"```mermaid\n{picture.mermaid()}```\n",
    ".mmd": Picture.mermaid,
    ".pdf": lambda picture: rendered(picture.graph, picture.direction, "pdf"),
    ".png": lambda picture: rendered(picture.graph, picture.direction, "png"),
    ".svg": Picture.svg,
}


def draw(
    result: Any,
    params: Any = None,
    *,
    saved: bool = False,
    direction: Direction = "forward",
    fold: bool = True,
    gradients: bool = False,
    limit: int = 600,
) -> Picture:
    """The graph behind `result`, a tensor, a node or a container of these, as a picture.

    `params` names leaves: a Module, a dict {name: tensor}, or pairs of both; leaves that
    it does not name carry the name of the caller's variable that holds them. `saved`
    draws the tensors that are kept for backward. `direction` "forward" has arrows follow
    the values, "backward" the gradients. `fold=False` draws repeated blocks in full.
    `gradients=True` runs a backward pass, which changes no .grad, so as to show how large
    the gradients are; the passes inside `with gradfn.drawing.record():` are shown anyway.
    Where more than `limit` vertices remain, those farthest from the result are left out.

    TypeError if there is no tensor or node in `result`, ValueError if nothing was
    recorded or `direction` is another word.
    """
    if direction not in ("forward", "backward"):
        raise ValueError(f'direction must be "forward" or "backward", got {direction!r}')
    found = dict(_roots(result))
    frame = sys._getframe(1)
    names = {**variables(frame.f_globals, frame.f_locals), **named(params)}
    if gradients:
        trial(list(found.values()))
    results = [names.get(key, "result") for key in found]
    graph = graph_of(list(found.values()), names, results)
    return picture_of(graph, saved=saved, direction=direction, fold=fold, limit=limit)


def picture_of(
    graph: Graph,
    *,
    saved: bool = False,
    direction: Direction = "forward",
    fold: bool = True,
    limit: int = 600,
) -> Picture:
    """The picture of a graph that was taken before."""
    if fold:
        graph = folded(graph)
    graph = limited(graph, limit)
    return Picture(with_saved(graph) if saved else graph, direction)


def _roots(result: Any) -> Iterable[tuple[int, Any]]:
    things = [x for x in tree_flatten(result)[0] if isinstance(x, (Tensor, Node))]
    if not things:
        raise TypeError(
            "draw() needs a tensor, a grad_fn or a container of these, got "
            f"{type(result).__name__}"
        )
    targets = [(id(x), x if isinstance(x, Node) else target_of(x)) for x in things]
    recorded = [(key, target) for key, target in targets if target is not None]
    if not recorded:
        raise ValueError(
            "draw() found no graph: none of the tensors requires grad. Set "
            "requires_grad on the inputs, and compute outside of no_grad()."
        )
    return recorded
