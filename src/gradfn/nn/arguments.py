"""Sizes as torch.nn.functional takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradfn.tensor import Tensor


def several(x: Any, n: int, name: str = "kernel_size") -> tuple[int, ...]:
    """n ints from one, or from n. RuntimeError for another number of them."""
    if not isinstance(x, (tuple, list)):
        return (int(x),) * n
    found = tuple(int(i) for i in x)
    if len(found) == 1:
        return found * n
    if len(found) != n:
        raise RuntimeError(
            f"{name} must either be a single int or a tuple of {n} ints, but got {found}"
        )
    return found


def batched(input: Tensor, n: int, op: str) -> tuple[Any, bool]:
    """The input with a batch in front, and whether it had none: n dims after the channels."""
    if input.dim() == n + 2:
        return input, False
    if input.dim() == n + 1:
        return input.unsqueeze(0), True
    raise RuntimeError(
        f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {op}, but got input "
        f"of size: {list(input.shape)}"
    )


def by_rank(
    name: str, make: Callable[[int], Any], ranks: tuple[int, ...] = (1, 2, 3)
) -> list[Any]:
    """The functions `make(n)` that work on the last n dims, each with its name.

    `name` and the functions' docstrings have {n} where the number of dims goes.
    """
    found = []
    for n in ranks:
        function = make(n)
        function.__name__ = function.__qualname__ = name.format(n=n)
        function.__doc__ = function.__doc__.format(n=n)
        found.append(function)
    return found
