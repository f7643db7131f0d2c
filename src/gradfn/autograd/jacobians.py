"""The Jacobians of a function as gradcheck compares them: by differences, and as derived.

Note [Complex numbers in gradcheck]
    Inputs and outputs are taken as twice as many real numbers, the real parts first. A
    gradient that comes back for the seed v is that of Re(conj(v) y), so the seeds 1 and
    1j give the rows of an output's real and imaginary parts, and the real and imaginary
    parts of the gradient are the columns of an input's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gradfn.autograd.backward import grad
from gradfn.tensor import Tensor, wrap


def as_tuple(x: Any) -> tuple[Any, ...]:
    """What a function returned or is given, as a tuple."""
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def is_active(t: Any) -> bool:
    """Is it a tensor that requires grad?"""
    return isinstance(t, Tensor) and t.requires_grad


def is_complex(t: Tensor) -> bool:
    """Has it complex numbers?"""
    return bool(t._array.dtype.kind == "c")


def reals(array: Any) -> Any:
    """An array as a vector of real numbers; of complex ones, all real parts first."""
    flat = np.asarray(array).reshape(-1)
    return np.concatenate([flat.real, flat.imag]) if flat.dtype.kind == "c" else flat


def units(t: Tensor) -> Iterator[Any]:
    """The unit vectors of a tensor's real numbers, each as an array of its shape."""
    array = t._array
    for unit in (1, 1j) if is_complex(t) else (1,):
        for at in np.ndindex(array.shape):
            e = np.zeros(array.shape, array.dtype)
            e[at] = unit
            yield e


def columns(vectors: list[list[Any]], sizes: list[int]) -> list[Any]:
    """Matrices of the columns that are given one list (a vector for each) at a time."""
    if not vectors:
        return [np.zeros((n, 0)) for n in sizes]
    return [np.stack(part, 1) for part in zip(*vectors, strict=True)]


@dataclass
class Subject:
    """A function at the inputs where it is checked."""

    func: Callable[..., Any]
    given: list[Any]
    eps: float

    @cached_property
    def active(self) -> list[int]:
        """The places of the inputs that require grad."""
        return [i for i, t in enumerate(self.given) if is_active(t)]

    @cached_property
    def places(self) -> list[int]:
        """The places of the outputs that require grad."""
        found = as_tuple(self.func(*self.given))
        return [i for i, t in enumerate(found) if is_active(t)]

    @property
    def wanted(self) -> list[Tensor]:
        """The inputs that require grad."""
        return [self.given[i] for i in self.active]

    def outputs(self) -> list[Tensor]:
        """The outputs that require grad, from a new call."""
        found = as_tuple(self.func(*self.given))
        return [found[i] for i in self.places]

    @cached_property
    def has_complex(self) -> bool:
        """Is an input or output complex?"""
        return any(map(is_complex, (*self.wanted, *self.outputs())))

    def moved(self, place: int, step: Any, read: Any) -> tuple[list[Any], list[Any]]:
        """What `read` makes of the outputs with an input moved by ± eps times `step`."""
        array = writable(self.given[place])
        before = array.copy()
        try:
            array[...] = before + self.eps * step
            ahead = read(self.func(*self.given))
            array[...] = before - self.eps * step
            back = read(self.func(*self.given))
        finally:
            array[...] = before
        return ahead, back

    def along(self, place: int, step: Any) -> list[Any]:
        """By how much the outputs change in a direction of an input, by differences.

        AssertionError if their shapes or dtypes change with the input's values.
        """
        ahead, back = self.moved(place, step, self._copies)
        for a, b in zip(ahead, back, strict=True):
            for what in ("shape", "dtype"):
                if getattr(a, what) != getattr(b, what):
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {what} when "
                        f"inputs are perturbed by ±{self.eps}, but got {getattr(a, what)} "
                        f"and {getattr(b, what)}."
                    )
        return [(reals(a) - reals(b)) / (2 * self.eps) for a, b in zip(ahead, back)]

    def _copies(self, outputs: Any) -> list[Any]:
        found = as_tuple(outputs)
        return [found[i]._array.copy() for i in self.places]

    def sizes(self) -> list[int]:
        """How many real numbers each output has."""
        return [reals(t._array).size for t in self.outputs()]

    def numerical(self, place: int) -> list[Any]:
        """For each output its derivatives by an input, by differences."""
        steps = units(self.given[place])
        return columns([self.along(place, e) for e in steps], self.sizes())

    def forward(self, place: int) -> list[Any]:
        """For each output its derivatives by an input, by forward mode."""
        steps = units(self.given[place])
        pushed = [self.pushed(place, e) for e in steps]
        return columns([[reals(v) for v in some] for some in pushed], self.sizes())

    def pushed(self, place: int, way: Any) -> list[Any]:
        """The outputs' tangents for one of an input, the others' being zero.

        As in PyTorch the function is given tensors that do not require grad.
        """
        forward_ad: Any = importlib.import_module("gradfn.autograd.forward_ad")
        with forward_ad.dual_level():
            args = list(self.given)
            for i in self.active:
                tangent = way if i == place else np.zeros_like(self.given[i]._array)
                args[i] = forward_ad.make_dual(self.given[i].detach(), wrap(tangent))
            found = as_tuple(self.func(*args))
            pairs = [forward_ad.unpack_dual(found[i]) for i in self.places]
        return [
            np.zeros_like(p.primal._array) if p.tangent is None else p.tangent._array
            for p in pairs
        ]


def writable(t: Tensor) -> Any:
    """The tensor's array, which is its own."""
    if not t._array.flags.writeable:
        t._array = t._array.copy()
    return t._array


def analytical(outputs: list[Tensor], wanted: list[Tensor]) -> list[list[Any]]:
    """By backward passes: for each output, a matrix for each input."""
    matrices = []
    for out in outputs:
        rows = [pulled([out], wanted, [seed]) for seed in units(out)]
        flat = [[reals(g) for g in row] for row in rows]
        sizes = [reals(t._array).size for t in wanted]
        matrices.append([m.T for m in columns(flat, sizes)])
    return matrices


def pulled(outputs: list[Tensor], wanted: list[Tensor], seeds: list[Any]) -> list[Any]:
    """The gradients of inputs for seeds; zeros where there is none."""
    got = grad(
        outputs, wanted, list(map(wrap, seeds)), retain_graph=True, allow_unused=True
    )
    return [
        np.zeros_like(t._array) if g is None else g._array for g, t in zip(got, wanted)
    ]
