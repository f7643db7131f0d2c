"""Padding, by a constant or by what is there."""

from __future__ import annotations

from typing import Any

from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """More places before and after in the last dims: constant, reflect, replicate, circular."""
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > input.dim():
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but "
            f"got padding length {len(pad)} and input of dimension {input.dim()}"
        )
    pairs = [(int(pad[i]), int(pad[i + 1])) for i in range(0, len(pad), 2)]
    for back, (before, after) in enumerate(pairs):
        dim = input.dim() - 1 - back
        if mode == "constant":
            input = _pad_constant(
                input, dim, before, after, 0 if value is None else value
            )
        elif before or after:
            input = input.index_select(
                dim, _pad_index(input.shape[dim], before, after, mode)
            )
    return input.clone() if all(p == (0, 0) for p in pairs) else input


def _pad_constant(x: Tensor, dim: int, before: int, after: int, value: Any) -> Any:
    size = x.shape[dim]
    start, end = max(-before, 0), size - max(-after, 0)
    if start > end:
        raise RuntimeError(
            f"narrow(): length must be non-negative: dim {dim} of size {size} is padded by "
            f"{before} and {after}"
        )
    parts = [x.narrow(dim, start, end - start)]
    for n, front in ((before, True), (after, False)):
        if n > 0:
            shape = [n if d == dim else m for d, m in enumerate(x.shape)]
            extra = x.new_full(shape, value)
            parts = [extra, *parts] if front else [*parts, extra]
    return PUBLIC["cat"](parts, dim) if len(parts) > 1 else parts[0]


def _pad_index(size: int, before: int, after: int, mode: str) -> Any:
    if mode == "circular":  # of what is left if a side is cut
        start, end = max(-before, 0), size - max(-after, 0)
        round_ = PUBLIC["arange"](-max(before, 0), end - start + max(after, 0))
        return round_ % max(end - start, 1) + start
    places = PUBLIC["arange"](-before, size + after)
    if mode == "replicate":
        return places.clamp(0, size - 1)
    if mode == "reflect":
        if before >= size or after >= size:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input "
                f"dimension, but got: padding ({before}, {after}) at dimension of size {size}"
            )
        period = max(2 * (size - 1), 1)
        places = places.abs() % period
        return PUBLIC["where"](places < size, places, period - places)
    raise NotImplementedError(f"Unrecognised padding mode {mode}")
