"""The recorded graph as plain data, for whoever wants to draw or count it.

`graph_of(roots)` walks over grad_fn and gives vertices and links that refer to no tensor
and no node: a Graph may outlive what it describes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gradfn._dtypes import torch_dtype
from gradfn.drawing.recorder import Amounts, Notes, reached
from gradfn.drawing.saved import Saved, bytes_of, saved_by
from gradfn.graph.node import Node, Output, edges_of, form_of
from gradfn.graph.place import Place
from gradfn.graph.view import CopySlices
from gradfn.ops.instrument import plain_name
from gradfn.tensor import Tensor

ANY = -1
Kind = Literal["op", "function", "leaf", "saved", "result", "more"]


@dataclass(slots=True)
class Vertex:
    """A recorded op (`function`: a custom one), a leaf, a saved tensor or a result.

    Once repeated blocks are folded it may stand for several, `count`, whose notes are
    kept in their order.
    """

    key: int
    kind: Kind
    name: str  # as grad_fn prints it, or the leaf's name
    label: str  # the op: mul, or the Function's name
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    place: Place | None = None
    saved: tuple[Saved, ...] = ()
    notes: list[Notes] = field(default_factory=list)
    count: int = 1
    outputs: dict[int, tuple[tuple[int, ...], str]] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """How much memory it keeps for the backward pass."""
        return bytes_of(self.saved)

    @property
    def norms(self) -> list[float]:
        """The norm of the gradient that came to each of those it stands for."""
        return [n.gradient.norm for n in self.notes if n.gradient is not None]

    @property
    def trouble(self) -> str:
        """Where NaN or inf came into being: "result", "gradient", or nothing."""
        if any(n.spoils for n in self.notes):
            return "gradient"
        return "result" if any(_bad(n.result) for n in self.notes) else ""


@dataclass(slots=True)
class Link:
    """From an op to what it was computed from; `output`: which result of that.

    Either is ANY where the repetitions of a folded block have one each.
    `carried` links go from one repetition of a folded block to the one before. `norms`
    are those of the gradients that came over it and over all other ways to its target.
    """

    source: int
    target: int
    argument: int = 0
    output: int = 0
    count: int = 1
    carried: bool = False
    norms: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Block:
    """Vertices that stand for `count` repetitions of themselves; `parent`: around it."""

    key: int
    count: int
    members: list[int]
    parent: int | None = None


@dataclass(slots=True)
class Graph:
    """Vertices in the order in which the program made them, and their links."""

    vertices: dict[int, Vertex]
    links: list[Link]
    blocks: list[Block] = field(default_factory=list)
    recorded: int = 0  # how many ops there were before any folding

    @property
    def bytes(self) -> int:
        """What the whole graph keeps for its backward pass."""
        return bytes_of(s for v in self.vertices.values() for s in v.saved)


def _bad(a: Amounts | None) -> bool:
    return a is not None and bool(a.nan or a.inf)


def graph_of(
    roots: Sequence[Any],
    names: Mapping[int, str] | None = None,
    results: Sequence[str] = (),
) -> Graph:
    """The graph behind `roots`, nodes or leaf tensors.

    `names`: {id of a tensor: its name}. `results`: names of the roots, each of which
    then gets a vertex of its own.
    """
    names = names or {}
    nodes, leaves, outputs = reached(roots)
    order = sorted(nodes, key=lambda node: -node._seq)
    used = [e for node in order for e in edges_of(node) if isinstance(e, Tensor)]
    leaves = list({id(leaf): leaf for leaf in (*used, *leaves)}.values())
    keys: dict[int, int] = {}
    vertices: dict[int, Vertex] = {}
    for thing in (*leaves, *order):
        key = keys[id(thing)] = len(keys)
        vertices[key] = (
            _leaf(key, thing, names) if isinstance(thing, Tensor) else _op(key, thing)
        )
    for out in outputs:
        made = (tuple(out._out_shape), torch_dtype(out._out_dtype).name)
        vertices[keys[id(out._next)]].outputs[out.index] = made
    links = [link for node in order for link in _links(node, keys)]
    for root, name in zip(roots, results):
        links.append(_result(root, name, keys, vertices))
    for link in links:
        link.norms = vertices[link.target].norms
    _mark_sources(vertices, links)
    return Graph(vertices, links, recorded=len(order))


def _op(key: int, node: Node) -> Vertex:
    several = node._out_shape is None
    notes = node._extra.notes if node._extra is not None else None
    if not isinstance(notes, Notes):
        notes = Notes()
    return Vertex(
        key,
        "function" if hasattr(type(node), "_forward_cls") else "op",
        node._name(),
        _label(node),
        None if several else tuple(node._out_shape),
        None if several else torch_dtype(node._out_dtype).name,
        notes.place,
        tuple(saved_by(node)) or notes.saved or (),
        [notes],
    )


def _label(node: Node) -> str:
    if isinstance(node, CopySlices):
        written = _label(node.fn) if isinstance(node.fn, Node) else ""
        return f"{written}_ into a view" if written else "write into a view"
    cls = type(node)
    if hasattr(cls, "_forward_cls"):
        return str(cls._forward_cls.__name__)
    return plain_name(cls.op) if hasattr(cls, "op") else node._name()


def _leaf(key: int, leaf: Tensor, names: Mapping[int, str]) -> Vertex:
    notes = leaf._extra.notes if leaf._extra is not None else None
    name = names.get(id(leaf), "")
    return Vertex(
        key,
        "leaf",
        name,
        name or "leaf",
        leaf._array.shape,
        torch_dtype(leaf._array.dtype).name,
        notes=[notes if isinstance(notes, Notes) else Notes()],
    )


def _links(node: Node, keys: Mapping[int, int]) -> Iterator[Link]:
    bits = (i for i in range(node._needs.bit_length()) if node._needs >> i & 1)
    for argument, target in zip(bits, edges_of(node), strict=True):
        output = 0
        if isinstance(target, Output):
            target, output = target._next, target.index
        yield Link(keys[id(node)], keys[id(target)], argument, output)


def _result(
    root: Any, name: str, keys: Mapping[int, int], vertices: dict[int, Vertex]
) -> Link:
    """A vertex for a root, and its link to what made it."""
    output = root.index if isinstance(root, Output) else 0
    at = root._next if isinstance(root, Output) else root
    form = form_of(root)
    key = len(vertices)
    shape = None if form[0] is None else tuple(form[0])
    dtype = None if form[1] is None else torch_dtype(form[1]).name
    vertices[key] = Vertex(key, "result", name, name or "result", shape, dtype)
    return Link(key, keys[id(at)], 0, output)


def _mark_sources(vertices: Mapping[int, Vertex], links: Sequence[Link]) -> None:
    """Leaves a bad result noted only where it came into being: not behind a bad one."""
    bad = {k for k, v in vertices.items() if any(_bad(n.result) for n in v.notes)}
    heirs = {x.source for x in links if x.source in bad and x.target in bad}
    for key in heirs:
        for notes in vertices[key].notes:
            notes.result = None


def with_saved(graph: Graph) -> Graph:
    """The same graph with a vertex for each saved tensor."""
    vertices = dict(graph.vertices)
    links = list(graph.links)
    for v in graph.vertices.values():
        for s in v.saved:
            key = len(vertices)
            vertices[key] = Vertex(key, "saved", s.name, s.name, s.shape, s.dtype)
            links.append(Link(v.key, key))
    return Graph(vertices, links, graph.blocks, graph.recorded)
