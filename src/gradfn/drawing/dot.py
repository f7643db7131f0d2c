"""The graph in Graphviz's language, drawn to be printed."""

from __future__ import annotations

from html import escape
from typing import Any

from gradfn.drawing.extras import load
from gradfn.drawing.facts import (
    alarm,
    amount,
    facts,
    flow,
    link_title,
    scale,
    short,
    size,
    summary,
    title,
)
from gradfn.drawing.graph import Block, Graph, Link, Vertex

FONT = "Helvetica"
INK, GREY, RED = "#1f2933", "#66707c", "#b3261e"
# kind: (fill, border)
COLOURS = {
    "op": ("#ffffff", "#9aa5b1"),
    "function": ("#ffe3a8", "#c77800"),
    "leaf": ("#d6e6fa", "#4a7fb5"),
    "saved": ("#f3f0e6", "#a89f80"),
    "result": ("#d9efdc", "#3f8a4d"),
    "more": ("#f0f0f0", "#9aa5b1"),
}
VANISHED, USUAL, EXPLODED = (33, 102, 172), (138, 146, 156), (178, 24, 43)


def dot_of(graph: Graph, direction: str = "forward") -> Any:
    """A graphviz.Digraph; `direction`: do arrows follow the values or the gradients?"""
    digraph = load("graphviz").Digraph(
        "gradfn",
        graph_attr={
            "rankdir": "TB",
            "bgcolor": "white",
            "fontname": FONT,
            "fontsize": "10",
            "fontcolor": GREY,
            "nodesep": "0.3",
            "ranksep": "0.42",
            "pad": "0.2",
            "label": f"<{_legend(graph)}>",
            "labelloc": "b",
        },
        node_attr={"fontname": FONT, "fontsize": "12", "fontcolor": INK},
        edge_attr={"fontname": FONT, "fontsize": "9", "arrowsize": "0.7"},
    )
    usual = scale(graph)
    inside = {key for block in graph.blocks for key in block.members}
    for v in graph.vertices.values():
        if v.key not in inside:
            _add_vertex(digraph, v, usual)
    for block in graph.blocks:
        if block.parent is None:
            _add_block(digraph, graph, block, usual)
    for number, link in enumerate(graph.links):
        _add_link(digraph, graph, link, number, direction, usual)
    return digraph


def colour(strength: float | None) -> str:
    """From blue, vanished, over grey to red, exploded."""
    if strength is None:
        return _hex(USUAL)
    end = EXPLODED if strength > 0 else VANISHED
    share = abs(strength)
    mixed = [round(a + (b - a) * share) for a, b in zip(USUAL, end)]
    return _hex((mixed[0], mixed[1], mixed[2]))


def _hex(rgb: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)


def _add_block(digraph: Any, graph: Graph, block: Block, usual: float) -> None:
    within = [b for b in graph.blocks if b.parent == block.key]
    deeper = _members_below(graph, block)
    with digraph.subgraph(name=f"cluster_{block.key}") as part:
        part.attr(
            label=f"<<b>repeated ×{block.count}</b>>",
            id=f"b{block.key}",
            style="rounded,filled",
            color="#c3cad2",
            fillcolor="#f6f8fa",
            fontcolor=GREY,
            fontsize="11",
            labelloc="b",
            labeljust="r",
            margin="12",
        )
        for key in block.members:
            if key not in deeper:
                _add_vertex(part, graph.vertices[key], usual)
        for inner in within:
            _add_block(part, graph, inner, usual)


def _members_below(graph: Graph, block: Block) -> set[int]:
    inner = [b for b in graph.blocks if b.parent == block.key]
    return {key for b in inner for key in b.members}.union(
        *(_members_below(graph, b) for b in inner)
    )


def _add_vertex(digraph: Any, v: Vertex, usual: float) -> None:
    fill, border = COLOURS[v.kind]
    custom, wrong = v.kind == "function", bool(v.trouble)
    style = "rounded,filled" + (",dashed" if v.kind in ("saved", "more") else "")
    digraph.node(
        f"v{v.key}",
        label=f"<{_label(v, usual)}>",
        id=f"v{v.key}",
        **{"class": v.kind},
        shape="box",
        style=style,
        fillcolor="#fbd9d6" if wrong else fill,
        color=RED if wrong else border,
        penwidth="2.2" if custom or wrong else "1.1",
        margin="0.08,0.06",
        height="0.3",
        tooltip="\n".join(f"{name}: {text}" for name, text in facts(v)),
    )


def _label(v: Vertex, usual: float) -> str:
    lines = [f"<b>{escape(title(v))}</b>"]
    what = size(v.shape, v.dtype) or _outputs(v)
    if what:
        lines.append(_small(what, GREY))
    where = [str(v.place)] if v.place is not None else []
    if v.bytes:
        where.append(f"saves {amount(v.bytes)}")
    if where:
        lines.append(_small("  ·  ".join(where), GREY))
    if v.norms:
        ends = dict.fromkeys(short(n) for n in (v.norms[0], v.norms[-1]))
        text = "‖grad‖ " + " … ".join(ends)
        lines.append(_small(text, colour(flow(v, usual))))
    if alarm(v):
        lines.append(f'<font point-size="10" color="{RED}"><b>{alarm(v)}</b></font>')
    rows = "".join(f"<tr><td>{line}</td></tr>" for line in lines)
    return f'<table border="0" cellspacing="0" cellpadding="1">{rows}</table>'


def _outputs(v: Vertex) -> str:
    return ", ".join(size(*v.outputs[i]) for i in sorted(v.outputs)[:3]) + (
        f", … {len(v.outputs)} outputs" if len(v.outputs) > 3 else ""
    )


def _small(text: str, ink: str) -> str:
    return f'<font point-size="9" color="{ink}">{escape(text)}</font>'


def _add_link(
    digraph: Any, graph: Graph, x: Link, number: int, direction: str, usual: float
) -> None:
    strength = flow(x, usual)
    ends = (f"v{x.target}", f"v{x.source}")
    extra: dict[str, str] = {}
    if direction == "backward":
        ends = ends[::-1]
    if x.carried:
        extra = {"style": "dashed", "constraint": "false"}
    if graph.vertices[x.target].kind == "saved":
        extra = {"style": "dotted", "arrowhead": "none"}
    outputs = graph.vertices[x.target].outputs
    if len(outputs) > 1 and x.output in outputs:
        extra["label"] = f"  {x.output}"
    digraph.edge(
        *ends,
        id=f"e{number}",
        color=colour(strength),
        fontcolor=GREY,
        penwidth=f"{1.1 + 1.4 * abs(strength or 0):.2f}",
        tooltip=link_title(graph, x),
        **extra,
    )


def _legend(graph: Graph) -> str:
    text = escape(summary(graph))
    if any(v.norms for v in graph.vertices.values()):
        scale = "".join(
            f'<font color="{colour(s)}">&#160;{word}</font>'  # plain blanks get lost
            for s, word in ((-1, "vanishing"), (0, "– usual –"), (1, "exploding"))
        )
        text += f"<br/>colour: norm of the gradient,{scale}"
    return f'<br/><font point-size="10">{text}</font>'
