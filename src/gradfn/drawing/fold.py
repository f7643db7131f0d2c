"""Blocks that repeat, as in a loop over time or a stack of layers, are drawn once.

The ops in the order in which they were recorded form a word whose letters are what an op
looks like by itself: its name, shape and dtype. A block that is repeated is a run in that
word with a period. The run that saves most is folded, then what stands before, after and
inside it. Inputs do not count, for those of the first repetition come from elsewhere. Each
vertex of the folded graph stands for vertices of the whole one and each link for links,
so nothing is shown that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradfn.drawing.graph import ANY, Block, Graph, Link, Vertex

REPEATS = 3  # fewer are drawn as they are
SAVES = 6  # and so are blocks that would save fewer vertices than this
LONGEST = 4096  # period that is looked for


@dataclass(frozen=True, slots=True)
class Run:
    """`count` blocks of `period` letters each, from `start` on."""

    start: int
    period: int
    count: int

    @property
    def stop(self) -> int:
        """Where what follows begins."""
        return self.start + self.period * self.count


def fold(graph: Graph) -> Graph:
    """The graph with its repeated blocks folded."""
    ops = [v.key for v in graph.vertices.values() if v.kind in ("op", "function")]
    inputs: dict[int, list[Link]] = {}
    for link in graph.links:
        inputs.setdefault(link.source, []).append(link)
    at = {key: i for i, key in enumerate(ops)}
    behind = [[at[x.target] for x in inputs.get(k, ()) if x.target in at] for k in ops]
    runs = list(_runs(_word([graph.vertices[k] for k in ops]), behind))
    if not runs:
        return graph
    stands = {k: ops[i] for k, i in zip(ops, _representatives(len(ops), runs))}
    ways = _ways(ops, runs)
    _merge_leaves(graph, stands)
    return _quotient(graph, stands, ways, _blocks(ops, runs))


# -- finding them ----------------------------------------------------------------------


def _word(ops: Sequence[Vertex]) -> Any:
    """A number for each op, equal where the ops look alike."""
    known: dict[Any, int] = {}
    looks = [(v.kind, v.name, v.shape, v.dtype) for v in ops]
    return np.array([known.setdefault(x, len(known)) for x in looks], np.int64)


def _runs(word: Any, behind: Sequence[Sequence[int]]) -> Iterator[Run]:
    """The runs to fold, each before those inside it."""
    waiting = [(0, len(word))]
    while waiting:
        lo, hi = waiting.pop()
        found = _longest(word[lo:hi])
        if found is None:
            continue
        run = _in_phase(replace(found[0], start=lo + found[0].start), found[1], behind)
        yield run
        waiting += [(lo, run.start), (run.start, run.start + run.period), (run.stop, hi)]


def _longest(word: Any) -> tuple[Run, int] | None:
    """The run that saves most, and by how much it may still be shifted."""
    best, most, slack = None, SAVES - 1, 0
    n = len(word)
    for period in range(1, min(n // REPEATS, LONGEST) + 1):
        if n - period <= most:
            break
        same = np.zeros(n - period + 2, np.int8)
        same[1:-1] = word[period:] == word[:-period]
        edges = np.flatnonzero(np.diff(same))
        starts, lengths = edges[::2], edges[1::2] - edges[::2] + period
        if not len(starts):
            continue
        longest = int(lengths.argmax())
        count = int(lengths[longest]) // period
        if count >= REPEATS and (count - 1) * period > most:
            most = (count - 1) * period
            best = Run(int(starts[longest]), period, count)
            slack = int(lengths[longest]) % period
    return None if best is None else (best, slack)


def _in_phase(run: Run, slack: int, behind: Sequence[Sequence[int]]) -> Run:
    """The run shifted to where the fewest links lead from block to block."""

    def between(shift: int) -> int:
        start = run.start + shift + run.period  # look at the second block
        return sum(
            i < start for at in range(start, start + run.period) for i in behind[at]
        )

    # Of equals the last: what goes in comes first, as in the body of a loop.
    shift = min(range(slack + 1), key=lambda shift: (between(shift), -shift))
    return replace(run, start=run.start + shift)


# -- folding them ----------------------------------------------------------------------


def _representatives(n: int, runs: Sequence[Run]) -> list[int]:
    """For each op the one that is drawn in its place: that of the first block."""
    stands = list(range(n))
    for run in reversed(runs):  # inner ones first
        for i in range(run.start + run.period, run.stop):
            stands[i] = stands[run.start + (i - run.start) % run.period]
    return stands


Way = tuple[tuple[int, int], ...]  # (number of the run, which of its blocks), outer first


def _ways(ops: Sequence[int], runs: Sequence[Run]) -> dict[int, Way]:
    """In which block of which runs each op stands."""
    ways: list[Way] = [()] * len(ops)
    for number in reversed(range(len(runs))):
        run = runs[number]
        inner = ways[run.start : run.start + run.period]
        for i in range(run.start, run.stop):
            block, place = divmod(i - run.start, run.period)
            ways[i] = ((number, block), *inner[place])
    return dict(zip(ops, ways))


def _blocks(ops: Sequence[int], runs: Sequence[Run]) -> list[Block]:
    blocks: list[Block] = []
    for number, run in enumerate(runs):
        around = [
            i
            for i, outer in enumerate(runs[:number])
            if outer.start <= run.start and run.stop <= outer.start + outer.period
        ]
        members = ops[run.start : run.start + run.period]
        parent = around[-1] if around else None
        blocks.append(Block(number, run.count, list(members), parent))
    return blocks


def _merge_leaves(graph: Graph, stands: dict[int, int]) -> None:
    """Leaves that folded ops use alike, one in each block, become one."""
    users: dict[int, set[Any]] = {}
    for link in graph.links:
        if graph.vertices[link.target].kind == "leaf":
            role = (stands.get(link.source, link.source), link.argument)
            users.setdefault(link.target, set()).add(role)
    first: dict[Any, int] = {}
    for key, roles in users.items():
        v = graph.vertices[key]
        alike = (frozenset(roles), v.shape, v.dtype)
        stands[key] = first.setdefault(alike, key)


def _quotient(
    graph: Graph, stands: Mapping[int, int], ways: Mapping[int, Way], blocks: list[Block]
) -> Graph:
    vertices: dict[int, Vertex] = {}
    for v in graph.vertices.values():
        drawn = stands.get(v.key, v.key)
        if drawn in vertices:
            _join(vertices[drawn], v)
        else:
            vertices[drawn] = replace(v, key=drawn, notes=list(v.notes))
    merged: dict[Any, Link] = {}
    for x in graph.links:
        carried = _other_blocks(ways.get(x.source, ()), ways.get(x.target, ()))
        source, target = stands.get(x.source, x.source), stands.get(x.target, x.target)
        key = source, target, *_slots(x, vertices[source], vertices[target]), carried
        link = merged.setdefault(key, Link(*key[:4], 0, carried))
        link.count += 1
        link.norms += x.norms
    links = list(merged.values())
    kept = [replace(b, members=_drawn(b, stands, vertices, links)) for b in blocks]
    return Graph(vertices, links, kept, graph.recorded)


def _slots(x: Link, source: Vertex, target: Vertex) -> tuple[int, int]:
    """(argument, output), where a repetition does not have one for each of its steps."""
    return (
        ANY if target.count > source.count else x.argument,
        ANY if target.count < source.count else x.output,
    )


def _join(into: Vertex, v: Vertex) -> None:
    into.count += 1
    into.notes += v.notes
    into.saved += v.saved
    into.outputs = {**v.outputs, **into.outputs}
    if into.place != v.place:
        into.place = None
    if into.kind == "leaf" and v.name:
        into.label = f"{into.name} … {v.name}" if into.name else v.name


def _other_blocks(a: Way, b: Way) -> bool:
    """Do two ways lead to different blocks of one run?"""
    for (run, block), (other, its) in zip(a, b):
        if run != other:
            return False
        if block != its:
            return True
    return False


def _drawn(
    block: Block,
    stands: Mapping[int, int],
    vertices: Mapping[int, Vertex],
    links: Sequence[Link],
) -> list[int]:
    """The members that are drawn, with the leaves of which each block has its own."""
    members = {k for k in block.members if stands[k] == k}
    own = {x.target for x in links if x.source in members}
    others = {x.target for x in links if x.source not in members}
    leaves = [
        k
        for k in own - others
        if vertices[k].kind == "leaf" and vertices[k].count % block.count == 0
    ]
    return sorted(members) + sorted(leaves)
