"""Random numbers inside of vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradfn._pytree import tree_flatten, tree_unflatten
from gradfn.func.dispatch import loop
from gradfn.graph.batched import batch_of, batched
from gradfn.graph.transforms import Batch, outside, work
from gradfn.tensor import Tensor


def draw_in_vmap(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Calls what draws random numbers, for the innermost vmap.

    With randomness "same" all samples get the same numbers, with "different" each its
    own; with "error" RuntimeError is raised.
    """
    batch = work().batches[-1]
    if batch.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either "
            "use the 'same' or 'different' randomness flags on vmap or perform the "
            "randomness operation out of vmap"
        )
    writes = function.__name__.endswith("_")
    shaped = function.__name__.endswith("_like")  # asks for the shape of a tensor alone
    values = tree_flatten((args[1:] if writes or shaped else args, kwargs))[0]
    own = any(isinstance(x, Tensor) and batch_of(x) is batch for x in values)
    if batch.randomness == "same":
        if own:
            raise RuntimeError(
                "Vmap does not currently support same randomness with a batched tensor "
                "input: samples with other parameters cannot have the same numbers."
            )
        return _same(function, writes, args, kwargs, batch)
    if writes and batch_of(args[0]) is not batch:
        if own:
            raise RuntimeError(
                "vmap: inplace arithmetic(self, *extra_args) is not possible because there "
                "exists a Tensor `other` in extra_args that has more elements than `self`: "
                f"{function.__name__} is given other parameters for each sample, and an "
                "unbatched tensor to write to. Use the function that returns its result."
            )
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This "
            "will appear like same randomness. If this is necessary for your usage, please "
            "file an issue."
        )
    with outside(batch):
        got = loop(function, (args, kwargs), batch)
    if writes:
        return args[0]
    flat, spec = tree_flatten(got)
    return tree_unflatten([batched(t, batch) for t in flat], spec)


def _same(function: Any, writes: bool, args: Any, kwargs: Any, batch: Batch) -> Any:
    """One draw that all samples share."""
    target = args[0] if args and isinstance(args[0], Tensor) else None
    with outside(batch):
        if target is None or batch_of(target) is not batch:
            return function(*args, **kwargs)
        value: Tensor = target._array.value  # type: ignore[attr-defined]
        drawn = function(value.new_empty(target._array.shape), *args[1:], **kwargs)
    return target.copy_(drawn) if writes else drawn
