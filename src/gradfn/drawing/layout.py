"""From a graph to a drawing: by Graphviz's program `dot`, or without it by grandalf."""

from __future__ import annotations

import shutil

from gradfn.drawing.dot import dot_of
from gradfn.drawing.graph import Graph


def has_dot() -> bool:
    """Is Graphviz's program installed?"""
    return shutil.which("dot") is not None


def svg_of(graph: Graph, direction: str) -> str:
    """The <svg> element; vertices have the ids v0, v1 …, edges e0, e1 … of the graph."""
    if not has_dot():
        from gradfn.drawing.plain import plain_svg

        return plain_svg(graph, direction)
    text = rendered(graph, direction, "svg").decode("utf-8")
    return text[text.index("<svg") :]  # without the prologue, which HTML does not want


def rendered(graph: Graph, direction: str, form: str) -> bytes:
    """What `dot` makes of the graph: "svg", "png" or "pdf". RuntimeError without it."""
    digraph = dot_of(graph, direction)
    if not has_dot():
        raise RuntimeError(
            f"a .{form} needs Graphviz's program dot, which is not on the PATH: install "
            "Graphviz (graphviz.org/download), or write .svg or .html, which do without"
        )
    if form == "png":
        digraph.attr(dpi="192")
    return bytes(digraph.pipe(format=form))
