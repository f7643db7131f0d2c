"""The graph in Mermaid's language."""

from __future__ import annotations

from gradfn.drawing.dot import COLOURS, colour
from gradfn.drawing.facts import alarm, flow, scale, size, title
from gradfn.drawing.graph import Block, Graph, Vertex

# How Mermaid brackets a vertex of each kind.
SHAPES = {
    "op": ("[", "]"),
    "function": ("[[", "]]"),
    "leaf": ("([", "])"),
    "saved": ("[/", "/]"),
    "result": ("((", "))"),
    "more": (">", "]"),
}


def mermaid_of(graph: Graph, direction: str = "forward") -> str:
    """A flowchart; folded blocks are its subgraphs."""
    lines = ["flowchart TB"]
    inside = {key for block in graph.blocks for key in block.members}
    lines += [_vertex(v) for v in graph.vertices.values() if v.key not in inside]
    for block in graph.blocks:
        if block.parent is None:
            lines += _block(graph, block)
    for x in graph.links:
        ends = (x.target, x.source) if direction == "forward" else (x.source, x.target)
        arrow = "-.->" if x.carried else "-->"
        lines.append(f"    v{ends[0]} {arrow} v{ends[1]}")
    usual = scale(graph)
    for number, x in enumerate(graph.links):
        strength = flow(x, usual)
        if strength is not None:
            lines.append(f"    linkStyle {number} stroke:{colour(strength)}")
    for kind, (fill, border) in COLOURS.items():
        lines.append(f"    classDef {kind} fill:{fill},stroke:{border},color:#1f2933")
    return "\n".join(lines) + "\n"


def _block(graph: Graph, block: Block) -> list[str]:
    inner = [b for b in graph.blocks if b.parent == block.key]
    deeper = {key for b in inner for key in b.members}  # those of inner blocks
    lines = [f'    subgraph b{block.key} ["repeated ×{block.count}"]']
    lines += [_vertex(graph.vertices[k]) for k in block.members if k not in deeper]
    for b in inner:
        lines += _block(graph, b)
    return [*lines, "    end"]


def _vertex(v: Vertex) -> str:
    opening, closing = SHAPES[v.kind]
    lines = [f"<b>{_text(title(v))}</b>", size(v.shape, v.dtype), alarm(v)]
    text = "<br/>".join(line for line in lines if line)
    return f'    v{v.key}{opening}"{text}"{closing}:::{v.kind}'


def _text(text: str) -> str:
    """Mermaid has entities for what would end a label."""
    for sign, entity in (("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(sign, entity)
    return text
