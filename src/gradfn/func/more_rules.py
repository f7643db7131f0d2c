"""Batch rules of rarer rows: sums of products, places in flat tensors, statistics."""

from __future__ import annotations

import math
from typing import Any

from gradfn.func.dispatch import Call, rule
from gradfn.func.rules import parts, reduction, with_dim
from gradfn.graph.batched import all_values, batch_of
from gradfn.ops.index import checked
from gradfn.ops.world import PUBLIC, RECORDED

rule("_safe_softmax")(with_dim)
rule("_unsafe_split")(parts)
rule("_var_mean _std_mean logsumexp")(reduction)

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@rule("_scan")
def scan(c: Call) -> Any:
    """Running sums of products, along a dim further back."""
    if not c.rank():
        return NotImplemented
    return c.call(self=c.full("self"), factor=c.full("factor"), dim=c.dim(c["dim"]))


@rule("_contract")
def contract(c: Call) -> Any:
    """One letter more, for the batch, in each batched term and in the result."""
    terms, out = c["equation"].split("->")
    letter = next((x for x in LETTERS if x not in c["equation"]), None)
    if letter is None:
        return NotImplemented
    names, tensors = [], []
    for term, t in zip(terms.split(","), c["tensors"], strict=True):
        is_batched = batch_of(t) is c.batch
        names.append(letter + term if is_batched else term)
        tensors.append(t._array.value if is_batched else t)
    return c.call(tensors=tensors, equation=f"{','.join(names)}->{letter}{out}")


def alike(c: Call, p: str, q: str) -> tuple[Any, Any]:
    """Two tensors with the batch in front, whose samples have one rank."""
    rank = max(c.rank(p), c.rank(q))
    found = []
    for name in (p, q):
        x = c.full(name)
        missing = rank - c.rank(name)
        found.append(x.reshape((c.size, *(1,) * missing, *x.shape[1:])))
    return found[0], found[1]


@rule("_cdist")
def cdist(c: Call) -> Any:
    """Distances of matrices' rows, for any dims in front."""
    x, y = alike(c, "self", "x2")
    return c.call(self=x, x2=y)


@rule("dist")
def dist(c: Call) -> Any:
    """The norm of a difference."""
    x, y = alike(c, "self", "other")
    return RECORDED.linalg_vector_norm((x - y).reshape(c.size, -1), c["p"], (1,), False)


@rule("_median_all _nanmedian_all")
def median(c: Call) -> Any:
    """Over all elements of a sample: over a flat dim."""
    if not c["self"].numel():
        return NotImplemented
    row = getattr(RECORDED, c.row.name.replace("_all", "_dim"))
    return row(c["self"].reshape(c.size, -1), 1, False)[0]


@rule("as_strided")
def as_strided(c: Call) -> Any:
    """The same steps through each sample's memory, which lies apart by the batch's."""
    own = c["self"]
    steps = (own.stride(0), *c["stride"])
    return own.as_strided((c.size, *c["size"]), steps, c["storage_offset"])


# -- flat places ---------------------------------------------------------------------------


def shifted(c: Call, n: int, dim: int) -> Any:
    """The index with `n` more for each next sample, so that it counts through all."""
    index: Any = c.full("index")
    checked(all_values(c["index"]), n, dim)
    step = PUBLIC["arange"](c.size).reshape((c.size, *(1,) * (index.dim() - 1))) * n
    return index % max(n, 1) + step


@rule("take")
def take(c: Call) -> Any:
    """Elements by their places in each flat sample."""
    own = c.full("self")
    return own.reshape(-1).take(shifted(c, math.prod(own.shape[1:]), 0))


@rule("_take_back")
def take_back(c: Call) -> Any:
    """Back from places in each flat sample."""
    n = math.prod(c["shape"])
    index = shifted(c, n, 0).reshape(-1)
    out = c.call(self=c.full("self").reshape(-1), index=index, shape=(c.size * n,))
    return out.reshape((c.size, *c["shape"]))


@rule("put")
def put(c: Call) -> Any:
    """Elements written to places in each flat sample."""
    own = c.full("self")
    index = shifted(c, math.prod(own.shape[1:]), 0).reshape(-1)
    source = c.full("source").reshape(-1)
    return c.call(self=own.reshape(-1), index=index, source=source).reshape(own.shape)


@rule("_select_scatter _slice_scatter")
def overwrite(c: Call) -> Any:
    """A part named by a basic index, behind the batch."""
    (steps,) = c["args"]
    own, src = c.full("self"), c.full("src")
    return c.call(self=own, src=src, args=((slice(None), *steps),))


@rule("_diagonal_scatter")
def overwrite_diagonal(c: Call) -> Any:
    """Dims further back."""
    offset, *dims = c["args"]
    own, src = c.full("self"), c.full("src")
    return c.call(self=own, src=src, args=(offset, *(c.dim(d) for d in dims)))


# -- rows by index --------------------------------------------------------------------


@rule("index_select index_add index_copy _index_fill _select_back")
def by_index(c: Call) -> Any:
    """One index for all samples is an index along a dim further back."""
    if "index" in c.batched:
        return _select_each(c) if c.row.name == "index_select" else rows_by_index(c)
    shape = {"shape": (c.size, *c["shape"])} if "shape" in c.args else {}
    rank = len(c["shape"]) if shape else c.rank()
    if not rank:
        return NotImplemented
    names = [p for p in c.row.takes if p in c.ranks and p != "index"]
    return c.call(**{p: c.full(p) for p in names}, dim=c.dim(c["dim"], rank), **shape)


def _select_each(c: Call) -> Any:
    """Each sample with its own index: gather."""
    if not c.rank() or c.rank("index") != 1:
        return NotImplemented
    own, dim = c.full("self"), c.dim(c["dim"])
    index = c["index"]
    wanted = [1] * own.dim()
    wanted[0], wanted[dim] = index.shape
    index = index.reshape(wanted)
    shape = list(own.shape)
    shape[dim] = index.shape[dim]
    return own.gather(dim, index.expand(shape))


def rows_by_index(c: Call) -> Any:
    """index_add and its like where each sample has its own index: rows of one table."""
    if not c.rank() or c.rank("index") != 1:
        return NotImplemented
    if "shape" in c.args:
        return rows_back(c)
    dim, own = c.dim(c["dim"]), c.full("self")
    moved = own.movedim(dim, 1)
    n = moved.shape[1]
    changed: dict[str, Any] = {
        "self": moved.reshape((c.size * n, *moved.shape[2:])),
        "index": shifted(c, n, c["dim"]).reshape(-1),
    }
    if "source" in c.args:
        source = c.full("source").movedim(dim, 1)
        changed["source"] = source.reshape((-1, *moved.shape[2:]))
    elif "value" in c.batched:
        return NotImplemented
    return c.call(**changed, dim=0).reshape(moved.shape).movedim(1, dim)


def rows_back(c: Call) -> Any:
    """Back from rows that each sample has selected with its own index."""
    dim, shape = c.dim(c["dim"], len(c["shape"])), (c.size, *c["shape"])
    n = shape[dim]
    moved = c.full("self").movedim(dim, 1)
    rest = tuple(moved.shape[2:])
    rows = moved.reshape((-1, *rest))
    index = shifted(c, n, c["dim"]).reshape(-1)
    out = c.call(self=rows, index=index, shape=(c.size * n, *rest), dim=0)
    return out.reshape((c.size, n, *rest)).movedim(1, dim)
