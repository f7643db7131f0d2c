"""Batch rules: how each op runs on all samples at once (Note [Batch rules])."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import result_dtype, torch_dtype
from gradfn.func.dispatch import Call, rule
from gradfn.ops.pointwise import POINTWISE
from gradfn.ops.world import PUBLIC, RECORDED

# -- elementwise -----------------------------------------------------------------------


@rule(" ".join(POINTWISE))
def elementwise(c: Call) -> Any:
    """Samples are given one rank, so that they broadcast as single ones would."""
    names = [p for p in c.row.takes if p in c.ranks]
    rank = max(c.ranks[p] for p in names)
    alike = {p: c.ranked(p, rank) for p in names}
    pair = names[-2:]  # of _where, what is chosen from
    if rank and len(pair) == 2 and (c.row.numbers or c.row.name == "_where"):
        meet(c, alike, *pair)
    return c.call(**alike)


def meet(c: Call, pair: dict[str, Any], p: str, q: str) -> None:
    """Puts two operands into the dtype that samples of these ranks would meet in."""
    x, y = pair[p], pair[q]
    a, b = x._array.dtype, y._array.dtype
    if a != b and (not c.ranks[p]) != (not c.ranks[q]):
        dtype = torch_dtype(result_dtype(a, not c.ranks[p], b, not c.ranks[q]))
        pair.update({p: x.to(dtype), q: y.to(dtype)})


@rule("_copy")
def copy(c: Call) -> Any:
    """The source is broadcast to the target's shape."""
    return c.call(self=c.full("self"), src=c.ranked("src", c.rank("self")))


@rule("_fill_tensor _filled_with_tensor _masked_fill_tensor")
def fill(c: Call) -> Any:
    """One value for each sample: chosen by a mask where there is one."""
    if "value" not in c.batched:
        return elementwise(c)
    rank = max(c.rank("self"), c.ranks.get("mask", 0))
    value = c.ranked("value", rank).to(c["self"].dtype)
    mask = c.ranked("mask", rank) if "mask" in c.ranks else PUBLIC["tensor"](True)
    own = c.ranked("self", rank)
    return RECORDED._where(
        mask, value, own.expand(c.size, *own.shape[-rank:] * bool(rank))
    )


# -- along dimensions ----------------------------------------------------------------------


def with_dim(c: Call) -> Any:
    """The dim of a sample is one further back among all samples."""
    if not c.rank():  # dim 0 of a number
        got = c.call(**{c.first: c[c.first].unsqueeze(1)}, dim=c.dim(c["dim"]))
        return _each(got, lambda t: t.reshape(c.size))
    return c.call(dim=c.dim(c["dim"]))


def _each(results: Any, change: Any) -> Any:
    if isinstance(results, tuple):
        return [change(t) for t in results]
    return change(results)


rule(
    "softmax log_softmax logsumexp cumsum cumprod logcumsumexp cummax cummin sort "
    "topk kthvalue _median_dim _nanmedian_dim mode _max_dim _min_dim _shift "
    "_unshift _move_last _move_from_last"
)(with_dim)


@rule("unbind _split _split_with_sizes")
def parts(c: Call) -> Any:
    """Several views along a dim."""
    return c.call(dim=c.dim(c["dim"]))


@rule(
    "sum mean nansum amax amin _var _std linalg_vector_norm all any count_nonzero "
    "_max_all _min_all"
)
def reduction(c: Call) -> Any:
    """Over some dims, or over all of a sample."""
    dim, rank, keep = c["dim"], c.rank(), bool(c.args.get("keepdim"))
    if not rank:
        got = c.call(self=c["self"].unsqueeze(1), dim=(1,) if many_dims(c) else 1)
        return _each(got, lambda t: t.reshape(c.size))
    if dim == () and c.row.name in ("all", "any"):
        return c.call()  # over no dim
    if dim is None or dim == ():
        if many_dims(c):
            return c.call(dim=tuple(range(1, rank + 1)))
        got = c.call(self=c["self"].reshape(c.size, -1), dim=1)
        shape = (c.size, *(1,) * rank) if keep else (c.size,)
        return _each(got, lambda t: t.reshape(shape))
    if isinstance(dim, (tuple, list)):
        return c.call(dim=tuple(c.dim(d) for d in dim))
    return c.call(dim=c.dim(dim))


def many_dims(c: Call) -> bool:
    """Does the row take several dims?"""
    return c.row.name not in ("prod", "argmax", "argmin", "aminmax")


@rule("prod argmax argmin aminmax")
def over_one_dim(c: Call) -> Any:
    """Over one dim, or over all elements of a sample."""
    return reduction(c)


@rule("_spread")
def spread(c: Call) -> Any:
    """What a sum is derived by: repeated along the dims that are gone."""
    dim, shape = c["dim"], c["shape"]
    rank = len(shape)
    if dim is None:  # only broadcast
        return c.call(self=c.ranked("self", rank), shape=(c.size, *shape))
    if dim == ():
        dims = tuple(range(1, rank + 1))
    else:
        given = dim if isinstance(dim, (tuple, list)) else (dim,)
        dims = tuple(c.dim(d, rank) for d in given)
    if not rank:
        return c["self"].clone()
    return c.call(shape=(c.size, *shape), dim=dims)


@rule("_put_along _take_along _add_along _gather_back")
def along(c: Call) -> Any:
    """Back from where an index was taken along a dim."""
    changed: dict[str, Any] = {p: c.full(p) for p in ("self", "index")}
    if "shape" in c.args:
        if not c["shape"]:
            return NotImplemented
        changed["shape"] = (c.size, *c["shape"])
        changed["dim"] = c.dim(c["dim"], len(c["shape"]))
    elif not c.rank():
        return NotImplemented
    else:
        changed["dim"] = c.dim(c["dim"])
    return c.call(**changed)


@rule("gather scatter_add _scatter_value _scatter_src scatter_reduce _scatter_counts")
def scatter(c: Call) -> Any:
    """Gather and scatter: every tensor has the batch in front."""
    if not c.rank() or not c.rank("index"):
        return NotImplemented
    names = [p for p in c.row.takes if p in c.ranks]
    return c.call(**{p: c.full(p) for p in names}, dim=c.dim(c["dim"]))


# -- shapes ------------------------------------------------------------------------------


@rule("_view _reshape_alias _unsafe_view")
def view(c: Call) -> Any:
    """Another shape for each sample."""
    return c.call(shape=(c.size, *c["shape"]))


@rule("_expand")
def expand(c: Call) -> Any:
    """New dims go behind the batch."""
    size = tuple(c["size"])
    return c.call(self=c.ranked("self", len(size)), size=(c.size, *size))


@rule("_repeat")
def repeat(c: Call) -> Any:
    """New dims go behind the batch."""
    repeats = tuple(c["repeats"])
    return c.call(self=c.ranked("self", len(repeats)), repeats=(1, *repeats))


@rule("_permute")
def permute(c: Call) -> Any:
    """The batch stays in front."""
    return c.call(dims=(0, *(c.dim(d) for d in c["dims"])))


@rule("transpose")
def transpose(c: Call) -> Any:
    """Two dims further back."""
    if not c.rank():
        return c["self"].view_as(c["self"])
    return c.call(dim0=c.dim(c["dim0"]), dim1=c.dim(c["dim1"]))


@rule("t")
def t(c: Call) -> Any:
    """The two dims of each sample."""
    if c.rank() > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {c.rank()}D"
        )
    return c["self"].transpose(1, 2) if c.rank() == 2 else c["self"].view_as(c["self"])


@rule("unsqueeze")
def unsqueeze(c: Call) -> Any:
    """A new dim, counted among those of the result."""
    return c.call(dim=c.dim(c["dim"], c.rank() + 1))


@rule("_squeeze _squeeze_dims")
def squeeze(c: Call) -> Any:
    """Dims of size 1, but never the batch."""
    dim, shape = c["dim"], c["self"].shape[1:]
    if dim is None:
        dims = tuple(i + 1 for i, n in enumerate(shape) if n == 1)
    else:
        given = dim if isinstance(dim, (tuple, list)) else (dim,)
        dims = tuple(c.dim(d) for d in given)  # or an error
        dims = dims if c.rank() else ()
    return c["self"].squeeze(dims) if dims else c["self"].view_as(c["self"])


@rule("_slice _select _newaxis _alias")
def basic_index(c: Call) -> Any:
    """The same index behind the batch."""
    return c.call(index=(slice(None), *_steps(c["index"])))


@rule("_place")
def place(c: Call) -> Any:
    """Back from a basic index."""
    return c.call(shape=(c.size, *c["shape"]), index=(slice(None), *_steps(c["index"])))


def _steps(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


@rule("flip")
def flip(c: Call) -> Any:
    """Dims further back."""
    dims = c["dims"] if isinstance(c["dims"], (tuple, list)) else (c["dims"],)
    return c.call(dims=tuple(c.dim(d) for d in dims)) if c.rank() else c["self"].clone()


@rule("_roll")
def roll(c: Call) -> Any:
    """Dims further back; without any, each sample is rolled as one line."""
    dims = c["dims"]
    if dims is None or dims == ():
        flat = c["self"].reshape(c.size, -1)
        return c.call(self=flat, dims=1).reshape(c["self"].shape)
    if isinstance(dims, (tuple, list)):
        return c.call(dims=tuple(c.dim(d) for d in dims))
    return c.call(dims=c.dim(dims))


@rule("_rot90")
def rot90(c: Call) -> Any:
    """Dims further back."""
    return c.call(dims=[c.dim(d) for d in c["dims"]])


@rule("diagonal")
def diagonal(c: Call) -> Any:
    """Dims further back."""
    return c.call(dim1=c.dim(c["dim1"]), dim2=c.dim(c["dim2"]))


@rule("_diagonal_put")
def diagonal_put(c: Call) -> Any:
    """Back from a diagonal."""
    rank = len(c["shape"])
    return c.call(
        shape=(c.size, *c["shape"]),
        dim1=c.dim(c["dim1"], rank),
        dim2=c.dim(c["dim2"], rank),
    )


@rule("diag_embed")
def diag_embed(c: Call) -> Any:
    """Dims further back, counted among those of the result."""
    rank = c.rank() + 1
    return c.call(dim1=c.dim(c["dim1"], rank), dim2=c.dim(c["dim2"], rank))


@rule("unfold")
def unfold(c: Call) -> Any:
    """A dim further back."""
    if not c.rank():
        return NotImplemented
    return c.call(dimension=c.dim(c["dimension"]))


@rule("_windows_back")
def windows_back(c: Call) -> Any:
    """Back from windows."""
    return c.call(
        shape=(c.size, *c["shape"]), dimension=c.dim(c["dimension"], len(c["shape"]))
    )


@rule("_zeros_of")
def zeros_of(c: Call) -> Any:
    """Zeros for each sample."""
    return c.call(shape=(c.size, *c["shape"]))


@rule("_cat")
def cat(c: Call) -> Any:
    """Joined along a dim further back."""
    tensors, ranks = every(c)
    if len(set(ranks)) > 1:
        return NotImplemented
    return c.call(tensors=tensors, dim=c.dim(c["dim"], ranks[0]))


@rule("stack")
def stack(c: Call) -> Any:
    """Joined along a new dim behind the batch."""
    tensors, ranks = every(c)
    return c.call(tensors=tensors, dim=c.dim(c["dim"], ranks[0] + 1))


def every(c: Call) -> tuple[list[Any], list[int]]:
    """The tensors of a sequence, all with the batch in front; their ranks."""
    values, ranks = [], []
    for x in c[c.row.many]:
        array = x._array
        ranks.append(len(array.shape))
        if getattr(array, "batch", None) is c.batch:
            values.append(array.value)
        else:
            values.append(x.expand(c.size, *x.shape))
    return values, ranks


@rule("masked_select")
def masked_select(c: Call) -> Any:
    """One mask for all samples; with masks of their own they had different shapes."""
    if "mask" in c.batched:
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask). We "
            "cannot support this because for each batch this would return a differently "
            "shaped Tensor. Use torch.where or masked_fill."
        )
    if c.rank("mask") != c.rank("self"):
        return NotImplemented
    mask = c["mask"]._array
    shape = np.broadcast_shapes(mask.shape, c["self"].shape[1:])
    own = c["self"].expand(c.size, *shape).reshape(c.size, -1)
    at = np.flatnonzero(np.broadcast_to(mask, shape))
    return own.index_select(1, PUBLIC["tensor"](at))


# -- index arrays --------------------------------------------------------------------------


@rule("_index _index_last")
def index(c: Call) -> Any:
    """One index for all samples, behind the batch."""
    got = c.call(index=behind(c["index"]))
    return got.movedim(apart(c["index"]), 0)


@rule("_index_back _index_last_back")
def index_back(c: Call) -> Any:
    """Back from an index."""
    own = c["self"].movedim(0, apart(c["index"]))
    return c.call(self=own, shape=(c.size, *c["shape"]), index=behind(c["index"]))


@rule("_index_clear")
def index_clear(c: Call) -> Any:
    """Zeros at an index."""
    return c.call(index=behind(c["index"]))


@rule("_index_put")
def index_put(c: Call) -> Any:
    """Values written at one index for all samples."""
    own, values = c.full("self"), c["values"]
    if "values" in c.batched:
        arrays = [x for x in _steps(c["index"]) if not isinstance(x, slice)]
        rank = c.rank("self") - len(arrays) + np.broadcast(*arrays).ndim
        values = c.ranked("values", rank).movedim(0, apart(c["index"]))
    return c.call(self=own, values=values, index=behind(c["index"]))


def behind(index: Any) -> tuple[Any, ...]:
    """An index of a sample as one of all samples."""
    return (slice(None), *_steps(index))


def apart(index: Any) -> int:
    """How many dims come to stand before the batch: those of index arrays that stand
    apart, which NumPy puts first."""
    steps = _steps(index)
    arrays = [i for i, x in enumerate(steps) if not isinstance(x, slice)]
    if not arrays or arrays[-1] - arrays[0] + 1 == len(arrays):
        return 0
    return np.broadcast(*(steps[i] for i in arrays)).ndim


# -- matrices ------------------------------------------------------------------------------


@rule("tril triu view_as_real view_as_complex _fft _rfft _irfft constant_pad_nd")
@rule(
    "linalg_inv_ex linalg_det linalg_slogdet linalg_cholesky_ex linalg_eigh linalg_eig "
    "linalg_svd linalg_qr linalg_lu linalg_lu_factor_ex linalg_matrix_exp geqrf _pinv "
    "_cofactors _permutation linalg_solve_ex _solve_triangular _least_squares"
)
def leading(c: Call) -> Any:
    """Ops on the last dims, which take any number of others in front."""
    if c.row.name == "view_as_complex" and not c.rank():
        raise RuntimeError("Input tensor must have one or more dimensions")
    names = [p for p in c.row.takes if p in c.ranks]
    return c.call(**{p: c.full(p) for p in names})


@rule("mm bmm mv dot _matmul")
def matmul(c: Call) -> Any:
    """matmul, with one rank for all samples."""
    a, b = c.row.takes
    x, y, rank_x, rank_y = c[a], c[b], c.rank(a), c.rank(b)
    check_ranks(c)
    if a not in c.batched and rank_x <= 2 and rank_y == 1:
        return RECORDED._matmul(y, x.mT if rank_x == 2 else x)
    if b not in c.batched and rank_y <= 2:
        if rank_x == 1 or rank_y == 1 or rank_x == 2:
            return _rows_times(x, y)
        return RECORDED._matmul(x, y)
    rank = max(rank_x, rank_y, 2)
    x = x.unsqueeze(-2) if rank_x == 1 else x
    y = y.unsqueeze(-1) if rank_y == 1 else y
    got = RECORDED._matmul(_padded(c, a, x, rank), _padded(c, b, y, rank))
    if rank_x == 1:
        got = got.squeeze(-2)
    return got.squeeze(-1) if rank_y == 1 else got


PRODUCTS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "vdot": (1, 1)}


def check_ranks(c: Call) -> None:
    """RuntimeError if samples have not the ranks that a product is for."""
    given = tuple(c.rank(p) for p in c.row.takes)
    due = PRODUCTS.get(c.row.name, given)
    if given != due:
        raise RuntimeError(
            f"Shape mismatch: Got incorrect dims for {c.row.name}(a, b). a has dim "
            f"{given[0]} and b has dim {given[1]} but expected them to have dim {due[0]} and "
            f"dim {due[1]}"
        )


def _rows_times(x: Any, y: Any) -> Any:
    """All samples' rows times one matrix (or vector), as a single product."""
    if x.dim() <= 2:
        return RECORDED._matmul(x, y)
    rows = x.reshape(-1, x.shape[-1])
    return RECORDED._matmul(rows, y).reshape(*x.shape[:-1], *y.shape[1:])


def _padded(c: Call, name: str, x: Any, rank: int) -> Any:
    """With dims of size 1 between the batch and a matrix, up to a rank."""
    if name not in c.batched:
        return x
    missing = rank + 1 - x.dim()
    return x.reshape(c.size, *(1,) * missing, *x.shape[1:]) if missing > 0 else x


@rule("outer")
def outer(c: Call) -> Any:
    """A column times a row."""
    return c["self"].unsqueeze(-1) * c["vec2"].unsqueeze(-2)


@rule("vdot")
def vdot(c: Call) -> Any:
    """The product of vectors, the first one conjugated."""
    check_ranks(c)
    return (c["self"].conj() * c["other"]).sum(-1)


@rule("linalg_cross")
def cross(c: Call) -> Any:
    """Vectors along a dim, counted from behind."""
    rank = max(c.rank("self"), c.rank("other"))
    dim = c.dim(c["dim"], rank) - 1 - rank
    return c.call(self=c.ranked("self", rank), other=c.ranked("other", rank), dim=dim)
