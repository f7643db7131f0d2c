"""Rows of a table: embedding, and embedding_bag, which adds up bags of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import INT64, int32
from gradfn.autograd.grad_mode import no_grad
from gradfn.ops.adding import add_at
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor, wrap

Array = Any


def _embedding(table: Array, indices: Array, share: Array = None) -> Array:
    if table.ndim != 2:
        raise RuntimeError(
            f"embedding: 'weight' must be 2-D, but got {table.ndim} dimensions"
        )
    _check_kind(indices, "embedding")
    if indices.size and not (indices.min() >= 0 and indices.max() < len(table)):
        raise IndexError(
            f"index out of range in self: indices of an embedding have to be from 0 to "
            f"{len(table) - 1}, but got {indices.min()} to {indices.max()}"
        )
    return table.take(indices, 0)


def _check_kind(indices: Array, name: str) -> None:
    if indices.dtype not in (INT64, int32.numpy):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar "
            f"types: Long, Int; but got {indices.dtype} (while checking arguments for {name})"
        )


def _embedding_back(g: Array, indices: Array, count: int) -> Array:
    out = np.zeros((count, g.shape[-1]), g.dtype)
    add_at(out, (indices,), g)
    return out


_hidden = {"function": False, "method": False}
_row = op(
    "_embedding(self, indices, share=None)",
    _embedding,
    **_hidden,
    takes="indices share",
    linear=True,
    node="Embedding",
    self=lambda g, xp, self_shape, indices, share: xp._embedding_back(
        g if share is None else g * xp.unsqueeze(share, -1), indices, self_shape[0]
    ),
).function
op(
    "_embedding_back(self, indices, count)",
    _embedding_back,
    **_hidden,
    takes="indices",
    linear=True,
    self=lambda g, xp, indices: xp._embedding(g, indices),
)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """The rows of `weight`, (number, size), at int indices of any shape, in a new last dim.

    The row at `padding_idx` gets no gradient; with `scale_grad_by_freq` each gets its
    gradient divided by how often it is named. Rows longer than `max_norm` are shortened to
    it first, in place. Gradients are dense whatever `sparse` says.

    IndexError for indices outside the table, AssertionError for such a padding_idx.
    """
    count = weight.shape[0]
    if padding_idx is not None and not -count <= padding_idx < count:
        raise AssertionError(
            f"Padding_idx must be within num_embeddings: got {padding_idx} for {count}"
        )
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    share: Any = None
    if padding_idx is not None:
        share = (input != padding_idx % count).to(weight.dtype)
    if scale_grad_by_freq:
        one = 1 / _frequencies(input, count).to(weight.dtype)
        share = one if share is None else share * one
    return _row(weight, input, share)


def _frequencies(input: Tensor, count: int) -> Any:
    return input.reshape(-1).bincount(minlength=count)[input]


def _shorten(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        rows = input.reshape(-1).unique()
        sizes = weight[rows].norm(norm_type, 1, True)
        factor = PUBLIC["where"](sizes > max_norm, max_norm / (sizes + 1e-7), 1.0)
        weight[rows] = weight[rows] * factor


# -- bags --------------------------------------------------------------------------------


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """The sum, mean or max of the rows of `weight` in each bag of indices: (bags, size).

    `input` is (bags, indices), or one vector in which bags start at `offsets` (which end
    with the vector's length if `include_last_offset`). Indices that are `padding_idx` do not
    count; an empty bag gives zeros. `per_sample_weights`, shaped as `input`, are factors
    of the rows of a sum. The rest is `embedding`'s.

    ValueError, RuntimeError or NotImplementedError for what does not fit together.
    """
    _check_bags(input, weight, offsets, mode, scale_grad_by_freq, sparse)
    factors = per_sample_weights
    if factors is not None:
        _check_factors(factors, input, weight, mode)
    count = weight.shape[0]
    if padding_idx is not None and not -count <= padding_idx < count:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-count} through "
            f"{count - 1}, but got {padding_idx}"
        )
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    counts = None if padding_idx is None else input != padding_idx % count
    starts = ends = None
    if input.dim() == 1:
        starts, ends = _bounds(offsets, input.shape[0], include_last_offset)
    if mode == "max":
        return _largest(input, weight, counts, starts, ends)
    rows = embedding(input, weight, scale_grad_by_freq=scale_grad_by_freq)
    if counts is not None:
        kept = counts.to(weight.dtype)
        factors = kept if factors is None else factors * kept
    if factors is not None:
        rows = rows * factors.unsqueeze(-1)
    if mode == "sum":
        return _added(rows, starts, ends)
    ones = PUBLIC["ones"](*input.shape, dtype=weight.dtype) if counts is None else kept
    sizes = _added(ones.unsqueeze(-1), starts, ends)
    return _added(rows, starts, ends) / sizes.clamp(min=1)


def _check_bags(
    input: Tensor, weight: Tensor, offsets: Any, mode: str, by_freq: bool, sparse: bool
) -> None:
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if input.dim() == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a "
            f"mini-batch of fixed length sequences. However, found offsets of type "
            f"{type(offsets)}"
        )
    if input.dim() == 1 and (offsets is None or offsets.dim() != 1):
        got = "None" if offsets is None else f"one of dimension {offsets.dim()}"
        raise ValueError(f"offsets has to be a 1D Tensor but got {got}")
    if input.dim() not in (1, 2):
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max, but got {mode!r}")
    if mode == "max" and by_freq:
        raise ValueError(
            "max mode does not support scaling the gradient by the frequency"
        )
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    _check_kind(input._array, "embedding_bag")
    if not weight.is_floating_point():
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar "
            f"types: Half, BFloat16, Float, Double; but got {weight.dtype} (while checking "
            "arguments for embedding_bag)"
        )


def _check_factors(factors: Tensor, input: Tensor, weight: Tensor, mode: str) -> None:
    if factors.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({factors.shape}) is not None, then it "
            f"must have the same shape as the input ({input.shape})"
        )
    if mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only "
            f"supported for mode='sum' (got mode='{mode}')."
        )
    if factors.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for "
            f"argument #1 'per_sample_weights'; but got {weight.dtype} and {factors.dtype} "
            "(while checking arguments for embedding_bag)"
        )


def _bounds(offsets: Tensor, size: int, last: bool) -> tuple[Array, Array]:
    """Where bags start and end."""
    at = offsets.numpy(force=True)
    if at.size and at[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to "
            f"start from position 0. However, got {at[0]}"
        )
    if at.size and at[-1] > size:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {size} but got offsets[-1] "
            f"of {at[-1]}"
        )
    return (at[:-1], at[1:]) if last else (at, np.append(at[1:], size))


def _added(rows: Tensor, starts: Any, ends: Any) -> Any:
    """The sum of rows in each bag."""
    if starts is None:
        return rows.sum(1)
    bags = np.repeat(np.arange(len(starts)), ends - starts)
    out = rows.new_zeros(len(starts), rows.shape[-1])
    return out.index_add(0, wrap(bags), rows[: len(bags)])


def _largest(input: Tensor, weight: Tensor, counts: Any, starts: Any, ends: Any) -> Any:
    """The largest elements in each bag: bags are filled up to one length and masked."""
    if starts is not None:
        width = int((ends - starts).max(initial=0))
        at = starts[:, None] + np.arange(width)
        inside = wrap(at < ends[:, None])
        places = wrap(np.minimum(at, max(input.shape[0] - 1, 0)))
        counts = inside if counts is None else inside & counts[places]
        input = input[places]
    if not input.shape[1]:
        return weight.new_zeros(input.shape[0], weight.shape[1])
    rows = _row(weight, input)
    if counts is None:
        return rows.max(1)[0]
    rows = rows.masked_fill(~counts.unsqueeze(-1), -np.inf)
    return rows.max(1)[0].masked_fill(~counts.any(1, keepdim=True), 0.0)
