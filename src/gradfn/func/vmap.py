"""vmap: a function of single samples, run on all of them at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from gradfn._pytree import broadcast_prefix, tree_flatten, tree_unflatten
from gradfn.func import more_rules, nn_rules, rules  # noqa: F401 - the ops learn of batches
from gradfn.graph.batched import BatchedArray, batch_of, batched
from gradfn.graph.transforms import Batch, at_work, outside, work
from gradfn.ops.rare import dim_error
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
        check_out_dims(func, out_dims)
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
                places = flat_out_dims(func, out_dims, out_spec)
                check_outputs(func, outs, places, batch)
            return [_end(t, d, batch) for t, d in zip(outs, places)], places, out_spec

        if chunk_size is None or chunk_size >= size:
            outs, places, out_spec = run(0, size)
        else:
            outs, places, out_spec = in_chunks(run, size, chunk_size, randomness)
        moved = [_moved(t, d) for t, d in zip(outs, places, strict=True)]
        return tree_unflatten(moved, out_spec)

    return mapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor of all samples behind one, to look at while a program is debugged.

    With recurse that of the outermost vmap. What is computed with it is not part of the
    function that is vmapped.
    """
    while isinstance(tensor._array, BatchedArray):
        tensor = tensor._array.value
        if not recurse:
            break
    return tensor


def in_chunks(run: Any, size: int, step: int, randomness: str) -> Any:
    """The results for all samples, some at a time; each draws the same if they shall."""
    from gradfn.ops.random import default_generator
    from gradfn.ops.world import PUBLIC

    state = default_generator.get_state()
    chunks = []
    for at in range(0, size, step):
        if randomness == "same":
            default_generator.set_state(state)
        chunks.append(run(at, min(at + step, size)))
    _, places, spec = chunks[0]
    columns = zip(*(outs for outs, _, _ in chunks), strict=True)
    joined = [
        column[0] if place is None else PUBLIC["cat"](list(column))
        for column, place in zip(columns, places, strict=True)
    ]
    return joined, places, spec


def _begin(x: Any, dim: int | None, batch: Batch, start: int, whole: bool) -> Any:
    """An argument as the function sees it."""
    if dim is None:
        return x
    with outside(batch):
        value = x.movedim(dim, 0) if dim else x
        if not whole:
            value = value[start : start + batch.size]
    return batched(value, batch)


def _end(t: Any, place: int | None, batch: Batch) -> Any:
    """A result for all samples, the batch in front; as it is if it is to have none."""
    if place is None:
        return t
    if batch_of(t) is batch:
        return t._array.value
    return t.expand(batch.size, *t.shape)


def _moved(t: Any, place: int | None) -> Any:
    """A result with the batch where it is to stand. IndexError if there is no such dim."""
    if not place:
        return t
    rank = t.dim()
    if not -rank <= place < rank:
        raise dim_error(place, rank)
    return t.movedim(0, place)


# -- checks ------------------------------------------------------------------------------


def _name(func: Any) -> str:
    if isinstance(func, partial):
        return f"functools.partial({_name(func.func)}, ...)"
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
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has "
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
            "vmap: Expected at least one Tensor to vmap over, got in_dims that name none"
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got "
            f"sizes {sizes} for the mapped dimension"
        )
    return sizes[0]  # type: ignore[no-any-return]


def check_out_dims(func: Any, out_dims: Any) -> None:
    """ValueError if there is something in out_dims that is no dimension."""
    for d in tree_flatten(out_dims)[0]:
        if d is not None and not isinstance(d, int):
            raise ValueError(
                f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, "
                "None or a python collection of ints representing where in the outputs the "
                "vmapped dimension should appear."
            )


def flat_out_dims(func: Any, out_dims: Any, spec: Any) -> list[Any]:
    """Where the batch stands in each result. ValueError if out_dims does not fit."""
    dims = broadcast_prefix(out_dims, spec)
    if spec.kind is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = broadcast_prefix(out_dims[0], spec)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not "
            f"compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return dims


def check_outputs(func: Any, outs: list[Any], places: list[Any], batch: Batch) -> None:
    """ValueError if a result has no batch and shall have one, or the other way round."""
    name = _name(func)
    for x, place in zip(outs, places, strict=True):
        if place is None:
            if isinstance(x, Tensor) and batch_of(x) is batch:
                raise ValueError(
                    f"vmap({name}, ...): `{name}` can not return a BatchedTensor when "
                    "out_dim is None"
                )
        elif not isinstance(x, Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. "
                "Did you mean to set out_dims= to None for output?"
            )
