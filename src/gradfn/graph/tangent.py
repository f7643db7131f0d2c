"""Tangents: the derivatives that forward mode carries along with a tensor.

Note [Levels]
    A Level is one pass of forward mode; several may be at work, one inside the other. A
    tensor has at most one tangent for each, in `extra.tangents`. The tangent of a result
    is computed with only the outer levels at work (`below`): so the inner pass sees the
    outer one's tangents and is itself derived by it, but not the other way round, and
    nested passes give true higher derivatives. When a level ends, its tangents are gone
    from all tensors.

Note [Tangents of views]
    The tangent of a view is that view of the base's tangent. A view that has none takes
    it from its base; a write into a view writes into its tangent in place, making one
    of zeros for the base if need be. So views and bases agree, whoever is written.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from gradfn.graph.batched import batches_of
from gradfn.graph.transforms import Work, at_work, work
from gradfn.graph.view import replay
from gradfn.tensor import LEAF, Tensor, extra_of, share


class Tangents(dict[Any, Tensor]):
    """The tangents of a tensor, by their Levels."""

    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__


class Level:
    """One pass of forward mode."""

    def __init__(self) -> None:
        self.holders: WeakSet[Tangents] = WeakSet()  # in which there is one of it

    def end(self) -> None:
        """Takes its tangents from all tensors."""
        for tangents in self.holders:
            tangents.pop(self, None)
        self.holders.clear()


def levels() -> tuple[Level, ...]:
    """The levels at work, outer ones first."""
    return work().levels


def levels_of(t: Tensor) -> tuple[Level, ...]:
    """Those at work on the layer of `t`: Note [Layers] in transforms.py."""
    batch = getattr(t._array, "batch", None)
    return levels() if batch is None else levels()[len(batch.outer.levels) :]


def below(level: Level) -> at_work:
    """Has only the levels outside of `level` at work."""
    levels, batches, depth = work()
    return at_work(Work(levels[: levels.index(level)], batches, depth))


def tangent(t: Tensor, level: Level) -> Tensor | None:
    """The tangent of `t` at a level, if it has one."""
    extra = t._extra
    if extra is not None and extra.tangents and level in extra.tangents:
        found: Tensor = extra.tangents[level]
        return found
    if t._view is None:
        return None
    base = tangent(t._view.base, level)
    if base is None:
        return None
    with below(level):
        replayed: Tensor = replay(base, t._view.chain)
    _keep(t, level, replayed)
    return replayed


def set_tangent(t: Tensor, level: Level, value: Tensor) -> None:
    """Gives `t` a tangent. RuntimeError if it has another shape."""
    if tangent(value, level) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level "
            f"{levels().index(level)} is not supported."
        )
    if value._array.shape != t._array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the "
            f"original Tensor, this is not supported. Tensor is of size {list(t.shape)} "
            f"while the given forward gradient is of size {list(value.shape)}."
        )
    with below(level):
        _keep(t, level, _laid_out(value, t))


def write_tangent(t: Tensor, level: Level, value: Tensor) -> None:
    """Makes `value` the tangent of `t`, which was written: in place, so views see it."""
    have = tangent(t, level)
    if have is None and t._view is None:
        set_tangent(t, level, value)
        return
    with below(level):
        if have is None:
            base = t._view.base
            zeros = base.detach().clone().zero_()
            _keep(base, level, zeros)
            have = replay(zeros, t._view.chain)
            _keep(t, level, have)
    if not batches_of(value) <= batches_of(have):
        have = widened(t, level, value)
    with below(level):
        have.copy_(value)


def widened(t: Tensor, level: Level, like: Tensor) -> Tensor:
    """The tangent of `t`, that of its base made batched as `like` is, so that samples
    may have their own. The tangents of other views are found anew."""
    base = t if t._view is None else t._view.base
    old = tangent(base, level)
    with below(level):
        if old is None:  # t has one, and its base does not know of it
            old = base.detach().clone().zero_()
        wide = like.new_zeros(old._array.shape, dtype=old.dtype) + old
    root = old if old._view is None else old._view.base
    for tangents in list(level.holders):
        value = tangents.get(level)
        if value is not None and value._view is not None and value._view.base is root:
            del tangents[level]
    _keep(base, level, wide)
    got = tangent(t, level)
    assert got is not None
    return got


def without(t: Tensor, level: Level | None = None) -> Tensor:
    """The same values and history, without the tangent of a level (or any)."""
    out = share(t, t._array)
    out._grad_fn = t.view_as(t)._grad_fn if t._grad_fn is LEAF else t._grad_fn
    for other in levels():
        if other is not level and level is not None:
            value = tangent(t, other)
            if value is not None:
                _keep(out, other, value)
    return out


def _keep(t: Tensor, level: Level, value: Tensor) -> None:
    extra = extra_of(t)
    if extra.tangents is None:
        extra.tangents = Tangents()
    extra.tangents[level] = value
    level.holders.add(extra.tangents)


def _laid_out(value: Tensor, like: Tensor) -> Tensor:
    """The tangent with the strides of its tensor, so that the same views can be made."""
    a, b = value._array, like._array
    same = all(
        s == r or n == 1
        for s, r, n in zip(_strides(a), _strides(b), b.shape, strict=True)
    )
    if same and a.dtype == b.dtype:
        return value
    order = sorted(range(len(b.shape)), key=lambda d: -abs(b.strides[d]))
    back = sorted(range(len(order)), key=order.__getitem__)
    ordered = value.to(like.dtype).permute(order).contiguous()
    return ordered.permute(back)  # type: ignore[no-any-return]


def _strides(array: Any) -> Any:
    """Strides, counted in elements."""
    return [s // (array.itemsize or 1) for s in array.strides]


def is_dual(t: Tensor) -> bool:
    """Has it a tangent at a level that is at work?"""
    return any(tangent(t, level) is not None for level in levels())


def keep_tangents(t: Tensor, like: Tensor) -> None:
    """Gives a copy made of `like` before a write copies of its tangents too."""
    for level in levels():
        value = tangent(like, level)
        if value is not None:
            with below(level):
                _keep(t, level, value.clone())
