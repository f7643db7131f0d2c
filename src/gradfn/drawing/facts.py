"""What there is to say of a vertex, in words: for labels, tooltips and the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10

from gradfn.drawing.graph import ANY, Graph, Link, Vertex
from gradfn.drawing.saved import Saved

TITLES = {
    "op": "operation",
    "function": "custom Function",
    "leaf": "leaf",
    "saved": "saved tensor",
    "result": "result",
    "more": "not drawn",
}


def size(shape: Sequence[int] | None, dtype: str | None) -> str:
    """4×8 float32."""
    if shape is None:
        return ""
    return " ".join(filter(None, ("×".join(map(str, shape)), dtype)))


def amount(n: int) -> str:
    """A number of bytes as people write it."""
    value = float(n)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}"


def short(x: float) -> str:
    """A norm with three digits."""
    return f"{x:.3g}"


def span(norms: Sequence[float]) -> str:
    """The norms, in the order in which the program went, from the first to the last."""
    if not norms:
        return ""
    first, last = short(norms[0]), short(norms[-1])
    if len(norms) == 1 or min(norms) == max(norms):
        return first
    ends = {norms[0], norms[-1]}
    text = f"{first} … {last}"
    if {min(norms), max(norms)} <= ends:
        return text
    return f"{text} (between {short(min(norms))} and {short(max(norms))})"


def title(v: Vertex) -> str:
    """The heading of a vertex."""
    times = f" ×{v.count}" if v.count > 1 and v.kind == "leaf" else ""
    return f"{v.label}{times}"


def alarm(v: Vertex) -> str:
    """What is wrong at a vertex, or nothing."""
    if v.trouble == "gradient":
        return "NaN or inf arises here in backward"
    return "NaN or inf arises here" if v.trouble == "result" else ""


def facts(v: Vertex) -> Iterator[tuple[str, str]]:
    """(heading, text) for all that is known of a vertex."""
    yield "kind", TITLES[v.kind]
    if v.kind in ("op", "function"):
        yield "grad_fn", v.name
    if v.count > 1:
        yield "stands for", f"{v.count} alike"
    if v.shape is not None:
        yield "shape", f"{list(v.shape)}"
        yield "dtype", v.dtype or ""
    for i, (shape, dtype) in sorted(v.outputs.items()):
        yield f"output {i}", size(shape, dtype)
    if v.place is not None:
        yield "made at", f"{v.place.file}:{v.place.line}, in {v.place.function}"
    if v.norms:
        yield "gradient norm", span(v.norms)
    if alarm(v):
        yield "trouble", alarm(v)
    yield from _saved(v)


def _saved(v: Vertex) -> Iterator[tuple[str, str]]:
    if not v.saved:
        return
    yield "saves", amount(v.bytes)
    names: dict[str, list[Saved]] = {}
    for s in v.saved:
        names.setdefault(s.name, []).append(s)
    for name, alike in names.items():
        times = f", {len(alike)} times" if len(alike) > 1 else ""
        one = f"{size(alike[0].shape, alike[0].dtype)}, {amount(alike[0].bytes)}"
        yield f"· {name}", one + times


def summary(graph: Graph) -> str:
    """A line on the whole graph."""
    ops = [v for v in graph.vertices.values() if v.kind in ("op", "function")]
    text = f"{graph.recorded} recorded operations"
    if len(ops) < graph.recorded:
        text += f", drawn as {len(ops)}"
    if graph.bytes:
        text += f"; {amount(graph.bytes)} saved for backward"
    return text


def scale(graph: Graph) -> float:
    """The gradient norm that counts as neither small nor large: that of the results."""
    ends = [x.target for x in graph.links if graph.vertices[x.source].kind == "result"]
    norms = [n for k in ends for n in graph.vertices[k].norms if n > 0]
    return max(norms, default=1.0)


def strength(norm: float, usual: float) -> float:
    """-1 for a gradient that has vanished, 0 for a usual one, 1 for one that explodes."""
    if norm <= 0:
        return -1.0
    return max(-1.0, min(1.0, (log10(norm) - log10(usual)) / 6))


def flow(of: Vertex | Link, usual: float) -> float | None:
    """The strength of what came there: of several gradients the most unusual one."""
    return max((strength(n, usual) for n in of.norms), key=abs, default=None)


def link_title(graph: Graph, x: Link) -> str:
    """What an edge says when one points at it."""
    source, target = graph.vertices[x.source], graph.vertices[x.target]
    text = f"{title(target)} → {title(source)}"
    if source.kind in ("op", "function") and x.argument != ANY:
        text += f", argument {x.argument}"
    if target.outputs and x.output != ANY:
        text += f", output {x.output}"
    if x.count > 1:
        text += f", {x.count} times"
    if x.carried:
        text += " (from the repetition before)"
    if x.norms:
        text += f"; gradient norm {span(x.norms)}"
    return text
