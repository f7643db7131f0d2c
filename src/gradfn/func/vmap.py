"""vmap: a function of single samples, run on all of them at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from gradfn._pytree import broadcast_prefix, tree_flatten, tree_unflatten
from gradfn.func import nn_rules, rules  # noqa: F401 - the ops learn of batches
from gradfn.graph.batched import batch_of, batched
from gradfn.graph.transforms import Batch, at_work, outside, work
from gradfn.tensor import Tensor


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps `func` over a dimension of its arguments.

    `func` is called once; tensors in its arguments have one dimension less than those
    given, and its results get one more. in_dims says which dimension of each argument is
    mapped over (None: of none), out_dims where it stands in the results; both may be nested
    as the arguments and results are. randomness: may random ops run ("error": no, "same":
    the same numbers for all samples, "different"). chunk_size: how many samples at once.

    Raises ValueError for in_dims or out_dims that do not fit, and where the mapped sizes
    differ; RuntimeError where `func` needs the values of a sample.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(
            f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})"
        )

    @wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(args)
        dims = flat_in_dims(func, in_dims, args, spec, leaves)
        kept, kept_spec = tree_flatten(kwargs)
        kept_dims = [0 if isinstance(x, Tensor) else None for x in kept]
        size = batch_size([*leaves, *kept], [*dims, *kept_dims])

        def run(start: int, stop: int) -> Any:
            batch = Batch(stop - start, randomness, work())
            whole = stop - start == size
            with at_work(batch.inside()):
                inner = [_begin(x, d, batch, start, whole) for x, d in zip(leaves, dims)]
                named = [
                    _begin(x, d, batch, start, whole) for x, d in zip(kept, kept_dims)
                ]
                got = func(
                    *tree_unflatten(inner, spec), **tree_unflatten(named, kept_spec)
                )
                outs, out_spec = tree_flatten(got)
                check_outputs(func, outs)
            return [_end(t, batch) for t in outs], out_spec

        return finished(func, run, size, chunk_size, out_dims)

    return mapped


def finished(
    func: Any, run: Any, size: int, chunk_size: int | None, out_dims: Any
) -> Any:
    """The results of all chunks, with the batch where out_dims says."""
    step = size if chunk_size is None else chunk_size
    chunks = [run(at, min(at + step, size)) for at in range(0, size, max(step, 1))]
    outs, spec = chunks[0] if chunks else run(0, 0)
    if len(chunks) > 1:
        from gradfn.ops.world import PUBLIC

        columns = zip(*(flat for flat, _ in chunks), strict=True)
        outs = [PUBLIC["cat"](list(column)) for column in columns]
    places = flat_out_dims(func, out_dims, spec, outs)
    moved = [_moved(t, place) for t, place in zip(outs, places, strict=True)]
    return tree_unflatten(moved, spec)


def _begin(x: Any, dim: int | None, batch: Batch, start: int, whole: bool) -> Any:
    """An argument as the function sees it."""
    if dim is None:
        return x
    with outside(batch):
        value = x.movedim(dim, 0) if dim else x
        if not whole:
            value = value[start : start + batch.size]
    return batched(value, batch)


def _end(t: Any, batch: Batch) -> Any:
    """A result for all samples, the batch in front."""
    if batch_of(t) is batch:
        return t._array.value
    return t.expand(batch.size, *t.shape)


def _moved(t: Any, place: int | None) -> Any:
    if place is None:
        return t[0]
    return t.movedim(0, place) if place else t


# -- checks ------------------------------------------------------------------------------


def _name(func: Any) -> str:
    return getattr(func, "__name__", None) or repr(func)


def flat_in_dims(func: Any, in_dims: Any, args: Any, spec: Any, leaves: Any) -> list[Any]:
    """The dimension of each leaf; ValueErrors where in_dims does not fit."""
    call = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        got = type(in_dims)
        if isinstance(in_dims, list) or in_dims is None or not isinstance(in_dims, dict):
            raise ValueError(
                f"{call}: expected `in_dims` to be int or a (potentially nested) tuple "
                f"matching the structure of inputs, got: {got}."
            )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, "
            "or you are trying to vmap over a function with no inputs. The latter is "
            "unsupported."
        )
    dims = broadcast_prefix(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of inputs. in_dims has "
            f"structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    found = []
    for x, dim in zip(leaves, dims, strict=True):
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but in_dim must be either an "
                "integer dimension or None."
            )
        if dim is not None and not isinstance(x, Tensor):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but the input is of type {type(x)}."
                " We cannot vmap over non-Tensor arguments, please use None as the "
                "respective in_dim"
            )
        if dim is not None and not -x.dim() <= dim < x.dim():
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {x.dim()} so expected in_dim to satisfy "
                f"-{x.dim()} <= in_dim < {x.dim()}."
            )
        found.append(None if dim is None else dim % x.dim())
    return found


def batch_size(leaves: list[Any], dims: list[Any]) -> int:
    """The size that all mapped dimensions have. ValueError if they differ."""
    sizes = [x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError(
            "vmap: at least one Tensor must be mapped over; got in_dims=None"
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got "
            f"sizes {sizes} for the mapped dimension"
        )
    return sizes[0]  # type: ignore[no-any-return]


def check_outputs(func: Any, outs: list[Any]) -> None:
    """ValueError if something that is no tensor was returned."""
    for x in outs:
        if not isinstance(x, Tensor):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got "
                f"type {type(x)}. Did you mean to set out_dims= to None for output?"
            )


def flat_out_dims(func: Any, out_dims: Any, spec: Any, outs: list[Any]) -> list[Any]:
    """Where the batch stands in each result; ValueErrors where out_dims does not fit."""
    dims = broadcast_prefix(out_dims, spec)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = broadcast_prefix(out_dims[0], spec)
    bad = dims is None or not all(d is None or isinstance(d, int) for d in dims)
    if dims is None or bad:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not "
            f"compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    found = []
    for t, dim in zip(outs, dims, strict=True):
        if dim is not None and not -t.dim() <= dim < t.dim():
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[{-t.dim()}, {t.dim() - 1}], but got {dim})"
            )
        found.append(None if dim is None else dim % t.dim())
    return found
