"""Random numbers inside of vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradfn._pytree import tree_flatten, tree_unflatten
from gradfn.func.dispatch import loop
from gradfn.graph.batched import batch_of, batched
from gradfn.graph.transforms import outside, work
from gradfn.ops.random import default_generator
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
    leaves = tree_flatten((args, kwargs))[0]
    own = any(isinstance(x, Tensor) and batch_of(x) is batch for x in leaves)
    writes = function.__name__.endswith("_")
    if batch.randomness == "same" and not own:
        with outside(batch):
            return function(*args, **kwargs)
    if writes and batch_of(args[0]) is not batch:
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This "
            "will appear like same randomness. If this is necessary for your usage, please "
            "file an issue."
        )
    draw = _repeating(function) if batch.randomness == "same" else function
    with outside(batch):
        got = loop(draw, (args, kwargs), batch)
    if writes:
        return args[0]
    flat, spec = tree_flatten(got)
    return tree_unflatten([batched(t, batch) for t in flat], spec)


def _repeating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Draws the same numbers in every call."""
    state = default_generator.get_state()

    def draw(*args: Any, **kwargs: Any) -> Any:
        default_generator.set_state(state)
        return function(*args, **kwargs)

    return draw
