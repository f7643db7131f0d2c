"""Forward mode: dual tensors, which carry a tangent along (torch.autograd.forward_ad).

    with dual_level():
        dual = make_dual(x, v)
        y, jvp = unpack_dual(f(dual))

Levels may be nested, and then give higher derivatives: Note [Levels] in graph/tangent.py.
"""

from __future__ import annotations

from typing import NamedTuple

from gradfn._state import FORWARD, TRANSFORMS, mode
from gradfn.autograd.grad_mode import Guard
from gradfn.graph.tangent import Level, levels, set_tangent, tangent, without
from gradfn.graph.transforms import IDLE, WORK, start, work
from gradfn.tensor import Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """What unpack_dual returns: the values, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begins a level of forward mode, inside those at work; returns its number."""
    now = work()
    start(now._replace(levels=(*now.levels, Level())))
    return len(now.levels)


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the innermost level, whose tangents are gone from then on.

    RuntimeError if `level` is the number of another, or if there is none.
    """
    at_work = levels()
    if not at_work or (level is not None and level != len(at_work) - 1):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. "
            "This is not supported."
        )
    at_work[-1].end()
    start(work()._replace(levels=at_work[:-1]))


def _level(number: int | None) -> Level | None:
    at_work = levels()
    if number is None:
        return at_work[-1] if at_work else None
    return at_work[number] if 0 <= number < len(at_work) else None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """An alias of `tensor` that carries `tangent`, of the same shape, at a level.

    The level is the innermost one unless its number is given. RuntimeError if there is no
    such level, if the shapes differ, or if `tensor` has a tangent at that level already;
    ValueError if one of them is neither of floating point nor complex.
    """
    at = _level(level)
    if at is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure "
            "to enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {t.dtype}"
            )
    if _tangent_of(tensor, at) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at "
            f"the same level {levels().index(at)} is not supported."
        )
    out = without(tensor, at)
    set_tangent(out, at, tangent)
    return out


_tangent_of = tangent


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """`(primal, tangent)` of a tensor at a level, by default the innermost.

    The primal shares the memory and has the history; the tangent is None if there is none.
    """
    at = _level(level)
    if at is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(without(tensor, at), tangent(tensor, at))


class dual_level(Guard):
    """A level of forward mode for a block, or for each call of a decorated function."""

    def __enter__(self) -> int:
        self._before.append(enter_dual_level())
        return self._before[-1]

    def __exit__(self, *error: object) -> None:
        exit_dual_level(level=self._before.pop())


class _set_fwd_grad_enabled(Guard):
    """Turns forward mode on (where there are levels) or off, for a block."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = mode
        if mode and WORK.get() != IDLE:
            self._on = TRANSFORMS
        elif not mode:
            self._off = TRANSFORMS

    def clone(self) -> Guard:
        """Another guard that does the same."""
        return type(self)(self.mode)


def _is_fwd_grad_enabled() -> bool:
    """Is forward mode on here? Not inside of a Function's forward."""
    if mode() & FORWARD:
        return False
    return bool(mode() & TRANSFORMS) or WORK.get() == IDLE


def __getattr__(name: str) -> int:
    """PyTorch's `_current_level`: the number of the innermost level, -1 without any."""
    if name == "_current_level":
        return len(levels()) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
