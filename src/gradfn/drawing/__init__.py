"""Pictures of the recorded graph: `gradfn.draw`, `gradfn show`.

`record()` is the block in which nodes remember the line that made them and, after a
backward pass, the size of their gradient.
"""

from __future__ import annotations

from gradfn.drawing.graph import Block, Graph, Link, Vertex, graph_of
from gradfn.drawing.picture import Picture, draw
from gradfn.drawing.recorder import Recorder, record

__all__ = [
    "Block",
    "Graph",
    "Link",
    "Picture",
    "Recorder",
    "Vertex",
    "draw",
    "graph_of",
    "record",
]
