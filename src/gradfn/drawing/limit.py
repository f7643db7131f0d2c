"""A graph too large to be drawn is cut off behind what is nearest to its results."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from gradfn.drawing.graph import Graph, Link, Vertex


def limited(graph: Graph, limit: int) -> Graph:
    """At most about `limit` vertices; one more stands for all that is left out."""
    if len(graph.vertices) <= limit:
        return graph
    kept = _nearest(graph, limit)
    missing = len(graph.vertices) - len(kept)
    more = max(graph.vertices) + 1
    vertices = {k: v for k, v in graph.vertices.items() if k in kept}
    vertices[more] = Vertex(more, "more", "", f"{missing} more", count=missing)
    links = [x for x in graph.links if x.source in kept and x.target in kept]
    cut = {x.source for x in graph.links if x.source in kept and x.target not in kept}
    links += [Link(source, more) for source in sorted(cut)]
    blocks = [
        replace(b, members=[k for k in b.members if k in kept]) for b in graph.blocks
    ]
    return Graph(vertices, links, blocks, graph.recorded)


def _nearest(graph: Graph, limit: int) -> set[int]:
    """The vertices that are fewest links away from a result."""
    inputs: dict[int, list[int]] = {}
    for x in graph.links:
        inputs.setdefault(x.source, []).append(x.target)
    waiting = deque(k for k, v in graph.vertices.items() if v.kind == "result")
    if not waiting:
        waiting.append(max(graph.vertices))
    kept: set[int] = set()
    while waiting and len(kept) < limit:
        key = waiting.popleft()
        if key not in kept:
            kept.add(key)
            waiting += inputs.get(key, ())
    return kept
