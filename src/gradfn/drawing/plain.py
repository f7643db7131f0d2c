"""The drawing where Graphviz is not installed: placed by grandalf, which is Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from gradfn.drawing.dot import COLOURS, GREY, INK, RED, colour
from gradfn.drawing.extras import load
from gradfn.drawing.facts import (
    alarm,
    facts,
    flow,
    link_title,
    scale,
    short,
    size,
    summary,
)
from gradfn.drawing.graph import Graph, Link, Vertex

GAP, MARGIN, LINE = 36, 16, 14
HEAD = 28  # for the line under the drawing

Point = tuple[float, float]


@dataclass
class Box:
    """A vertex on the paper: its middle and its size. grandalf moves `xy`."""

    lines: list[tuple[str, str, int]]  # text, colour, size
    xy: Point = (0.0, 0.0)

    @property
    def w(self) -> float:
        return max(len(text) * 0.62 * points for text, _, points in self.lines) + 18

    @property
    def h(self) -> float:
        return LINE * len(self.lines) + 12


@dataclass
class Route:
    """The way of an edge: grandalf sets the points."""

    points: list[Point]

    def setpath(self, points: list[Point]) -> None:
        """What grandalf calls."""
        self.points = list(points)


def plain_svg(graph: Graph, direction: str) -> str:
    """An <svg> element with the ids and classes that `dot` gives."""
    usual = scale(graph)
    folded = {k for block in graph.blocks for k in block.members}
    boxes = {
        v.key: Box(_lines(v, v.key in folded, usual)) for v in graph.vertices.values()
    }
    routes = _place(graph, boxes, direction)
    width = max(b.xy[0] + b.w / 2 for b in boxes.values()) + MARGIN
    height = max(b.xy[1] + b.h / 2 for b in boxes.values()) + MARGIN + HEAD
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}pt" '
        f'height="{height:.0f}pt" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="Helvetica,Arial,sans-serif">',
        _ARROW,
        f'<g id="graph0" class="graph"><rect width="{width:.0f}" height="{height:.0f}" '
        'fill="white"/>',
        *_edges(graph, boxes, routes, direction, usual),
        *(_vertex(v, boxes[v.key]) for v in graph.vertices.values()),
        f'<text x="{MARGIN}" y="{height - MARGIN:.0f}" font-size="10" fill="{GREY}">'
        f"{escape(summary(graph))}</text></g></svg>",
    ]
    return "\n".join(parts)


_ARROW = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
    'markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="context-stroke"/>'
    "</marker></defs>"
)


def _lines(v: Vertex, folded: bool, usual: float) -> list[tuple[str, str, int]]:
    times = f" ×{v.count}" if v.count > 1 and (folded or v.kind == "leaf") else ""
    lines = [(f"{v.label}{times}", INK, 12)]
    if v.shape is not None:
        lines.append((size(v.shape, v.dtype), GREY, 9))
    if v.place is not None:
        lines.append((str(v.place), GREY, 9))
    if v.norms:
        ends = dict.fromkeys(short(n) for n in (v.norms[0], v.norms[-1]))
        lines.append(("‖grad‖ " + " … ".join(ends), colour(flow(v, usual)), 9))
    if alarm(v):
        lines.append((alarm(v), RED, 10))
    return lines


def _place(
    graph: Graph, boxes: Mapping[int, Box], direction: str
) -> dict[int, list[Point]]:
    """Moves the boxes; gives each edge that grandalf has routed its way."""
    graphs, layouts = load("grandalf.graphs"), load("grandalf.layouts")
    spots = {key: graphs.Vertex(key) for key in boxes}
    for key, spot in spots.items():
        spot.view = boxes[key]
    edges: dict[int, Any] = {}
    for number, link in enumerate(graph.links):
        if not link.carried:
            ends = _ends(link, direction)
            edges[number] = graphs.Edge(spots[ends[0]], spots[ends[1]])
            edges[number].view = Route([])
    left = float(MARGIN)
    for part in graphs.Graph(list(spots.values()), list(edges.values())).C:
        layout = layouts.SugiyamaLayout(part)
        layout.xspace, layout.yspace = GAP, GAP
        layout.init_all(roots=[v for v in part.sV if not v.e_in()])
        layout.draw(3)
        left = _beside([spot.view for spot in part.sV], list(part.sE), left)
    return {number: edge.view.points for number, edge in edges.items()}


def _beside(boxes: list[Box], edges: list[Any], left: float) -> float:
    """Moves a connected part to the right of `left`; gives where the next one starts."""
    dx = left - min(b.xy[0] - b.w / 2 for b in boxes)
    dy = MARGIN - min(b.xy[1] - b.h / 2 for b in boxes)
    for b in boxes:
        b.xy = b.xy[0] + dx, b.xy[1] + dy
    for edge in edges:
        edge.view.points = [(x + dx, y + dy) for x, y in edge.view.points]
    return max(b.xy[0] + b.w / 2 for b in boxes) + GAP


def _ends(x: Link, direction: str) -> tuple[int, int]:
    return (x.target, x.source) if direction == "forward" else (x.source, x.target)


def _edges(
    graph: Graph,
    boxes: Mapping[int, Box],
    routes: Mapping[int, list[Point]],
    direction: str,
    usual: float,
) -> Iterator[str]:
    for number, x in enumerate(graph.links):
        start, end = (boxes[key] for key in _ends(x, direction))
        dashes = ' stroke-dasharray="5 3"' if x.carried else ""
        strength = flow(x, usual)
        path = _way(start, end, routes.get(number, [])) if not x.carried else None
        yield (
            f'<g id="e{number}" class="edge"><title>'
            f"{escape(link_title(graph, x))}</title>"
            f'<path d="{path or _back(start, end)}" fill="none" '
            f'stroke="{colour(strength)}" '
            f'stroke-width="{1.1 + 1.4 * abs(strength or 0):.2f}"'
            f'{dashes} marker-end="url(#head)"/></g>'
        )


def _way(start: Box, end: Box, points: list[Point]) -> str:
    """From the lower side of one box through the points to the upper one of the other."""
    first = (start.xy[0], start.xy[1] + start.h / 2)
    last = (end.xy[0], end.xy[1] - end.h / 2)
    stops = [first, *points[1:-1], last]
    text = "M{:.1f} {:.1f}".format(*first)
    for (x0, y0), (x1, y1) in pairwise(stops):
        half = (y0 + y1) / 2
        text += f"C{x0:.1f} {half:.1f} {x1:.1f} {half:.1f} {x1:.1f} {y1:.1f}"
    return text


def _back(start: Box, end: Box) -> str:
    """Round the right side, from one repetition to the one before."""
    (x0, y0), (x1, y1) = start.xy, end.xy
    x0, x1 = x0 + start.w / 2, x1 + end.w / 2
    far = max(x0, x1) + GAP
    return f"M{x0:.1f} {y0:.1f}C{far:.1f} {y0:.1f} {far:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"


def _vertex(v: Vertex, box: Box) -> str:
    fill, border = COLOURS[v.kind]
    if v.trouble:
        fill, border = "#fbd9d6", RED
    x, y = box.xy[0] - box.w / 2, box.xy[1] - box.h / 2
    told = "\n".join(f"{name}: {text}" for name, text in facts(v))
    bold = ' font-weight="bold"'
    rows = "".join(
        f'<text x="{box.xy[0]:.1f}" y="{y + 6 + LINE * (i + 0.8):.1f}" '
        f'text-anchor="middle" font-size="{points}" fill="{ink}"'
        f"{'' if i else bold}>{escape(text)}</text>"
        for i, (text, ink, points) in enumerate(box.lines)
    )
    wide = v.kind == "function" or v.trouble
    return (
        f'<g id="v{v.key}" class="node {v.kind}"><title>{escape(told)}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.w:.1f}" height="{box.h:.1f}" rx="6" '
        f'fill="{fill}" stroke="{border}" stroke-width="{2.2 if wide else 1.1}"/>'
        f"{rows}</g>"
    )
