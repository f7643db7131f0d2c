"""The page: the drawing with zoom, search and facts, in one file without a network."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files
from math import log10
from string import Template
from typing import Any

from gradfn.drawing.facts import alarm, facts, link_title, summary, title
from gradfn.drawing.graph import Graph, Vertex

CURVE = 200  # points of a curve of norms, at most


def page_of(graph: Graph, svg: str) -> str:
    """The page around an <svg> whose ids are those of `graph`."""
    data = {
        "vertices": {f"v{key}": _told(v) for key, v in graph.vertices.items()},
        "edges": [
            {
                "id": f"e{number}",
                "ends": [f"v{x.source}", f"v{x.target}"],
                "title": link_title(graph, x),
            }
            for number, x in enumerate(graph.links)
        ],
    }
    return Template(_part("page.html")).substitute(
        style=_part("page.css"),
        script=_part("page.js"),
        summary=escape(summary(graph)),
        svg=svg,
        data=json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
    )


def _told(v: Vertex) -> dict[str, Any]:
    told: dict[str, Any] = {
        "title": title(v),
        "kind": v.kind,
        "facts": list(facts(v)),
        "alarm": alarm(v),
    }
    if len(v.norms) > 2:
        told["curve"] = _curve(v.norms)
    return told


def _curve(norms: list[float]) -> list[float | None]:
    """Logarithms of the norms, thinned out; None where a norm is 0."""
    step = max(1, -(-len(norms) // CURVE))
    return [round(log10(n), 3) if n > 0 else None for n in norms[::step]]


@cache
def _part(name: str) -> str:
    return files("gradfn.drawing").joinpath(name).read_text(encoding="utf-8")
