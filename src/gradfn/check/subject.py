"""The Function that is checked, with all that audits do to it.

Audits run on gradfn and on PyTorch alike: `torch` is whichever of the two the Function
belongs to, and only what both have is used. Values are compared as NumPy arrays.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gradfn._pytree import tree_flatten, tree_unflatten

SEED = 0


class Example(NamedTuple):
    """Arguments of one call of `apply`, and which tensors in them are differentiated."""

    args: tuple[Any, ...]  # tensors may stand in containers; none has a history
    active: tuple[int, ...]  # places among the leaves, as tree_flatten counts them
    searched: bool = False  # was it made by search, not given by the user?

    @property
    def leaves(self) -> list[Any]:
        """The leaves of the arguments in order."""
        return tree_flatten(self.args)[0]

    def replaced(self, leaves: Sequence[Any]) -> Example:
        """The example with other leaves."""
        args = tree_unflatten(leaves, tree_flatten(self.args)[1])
        return self._replace(args=args)


@dataclass
class Call:
    """One application: what went in, what came out."""

    leaves: list[Any]  # as they were given to `apply`, or what these were made of
    args: tuple[Any, ...]
    outs: list[Any]  # the tensors among the outputs
    live: list[Any]  # those of them that require grad
    active: list[Any]  # the tensors by which is differentiated


class Subject:
    """A Function, the library it belongs to, and the examples of its use."""

    def __init__(self, torch: Any, cls: Any) -> None:
        self.torch = torch
        self.cls = cls
        self.examples: list[Example] = []
        self.writes = False  # does it write into its inputs, and say so?
        self.problem: Exception | None = None  # what the search for examples met

    # -- what the Function has ---------------------------------------------------------

    @property
    def library(self) -> str:
        """ "gradfn" or "torch"."""
        return str(self.torch.__name__).partition(".")[0]

    @property
    def base(self) -> Any:
        """The class Function of its library."""
        return self.torch.autograd.Function

    def overrides(self, name: str) -> bool:
        """Does it have a method of that name, beyond those of Function?"""
        classes = self.cls.__mro__[: self.cls.__mro__.index(self.base)]
        return any(name in vars(c) for c in classes)

    @property
    def split(self) -> bool:
        """Is its forward without ctx, and setup_context apart?"""
        return self.overrides("setup_context")

    @property
    def backward_name(self) -> str:
        """The name of the method that is called in the backward pass."""
        return "vjp" if self.overrides("vjp") else "backward"

    def parameters(self) -> list[inspect.Parameter]:
        """The parameters of forward, ctx apart."""
        found = list(inspect.signature(self.cls.forward).parameters.values())
        return found if self.split else found[1:]

    # -- running it --------------------------------------------------------------------

    def is_tensor(self, x: Any) -> bool:
        """Is it a tensor of this library?"""
        return isinstance(x, self.torch.Tensor)

    def floating(self, x: Any) -> bool:
        """Is it a tensor that can have a gradient?"""
        return self.is_tensor(x) and (x.is_floating_point() or x.is_complex())

    def tensors(self, x: Any) -> list[Any]:
        """The tensors in a container, or the one."""
        return [t for t in tree_flatten(x)[0] if self.is_tensor(t)]

    def tensor(self, values: Any, like: Any = None) -> Any:
        """An array as a tensor with memory of its own, with the dtype of `like`."""
        made = self.torch.from_numpy(np.array(values))
        return made if like is None else made.to(like.dtype)

    def call(
        self,
        example: Example,
        *,
        cls: Any = None,
        active: Sequence[int] | None = None,
        laid: Callable[[int, Any], Any] = lambda i, t: t,
    ) -> Call:
        """Applies it to fresh copies, which `laid` may lay out anew.

        A Function that writes into its inputs is given results of ops, for leaves must
        not be written. Raises what the Function raises.
        """
        wanted = example.active if active is None else active
        leaves, given = [], []
        for i, x in enumerate(example.leaves):
            if self.is_tensor(x):
                x = x.detach().clone()
                x = x.requires_grad_() if i in wanted else x
            leaves.append(x)
            at = laid(i, x) if self.is_tensor(x) else x
            given.append(at.clone() if self.writes and at is x and i in wanted else at)
        args = example.replaced(given).args
        with seeded(self.torch):
            out = (cls or self.cls).apply(*args)
        outs = self.tensors(out)
        live = [t for t in outs if t.requires_grad]
        return Call(leaves, args, outs, live, [leaves[i] for i in wanted])

    def gradients(self, call: Call, seeds: Sequence[Any], **how: Any) -> list[Any]:
        """Arrays of the gradients of a call's live outputs; zeros where there is none."""
        got = self.grad(call.live, call.active, seeds, **how)
        return [
            np.zeros(tuple(t.shape), array(t).dtype) if g is None else array(g)
            for g, t in zip(got, call.active, strict=True)
        ]

    def grad(self, outs: Any, inputs: Any, seeds: Any, **how: Any) -> list[Any]:
        """autograd.grad which keeps the graph and allows unused inputs; seeded."""
        if not outs or not inputs:
            return [None] * len(inputs)
        options = {"retain_graph": True, "allow_unused": True, **how}
        with seeded(self.torch):
            return list(self.torch.autograd.grad(outs, inputs, seeds, **options))

    def seeds(self, outs: Sequence[Any], number: int = 0) -> list[Any]:
        """A random cotangent for each output, the same in each call."""
        rng = np.random.default_rng([SEED, number])
        return [self.tensor(draw(rng, t), t) for t in outs]

    def jittered(self, example: Example, number: int = 1) -> Example:
        """The example with other values near by."""
        rng = np.random.default_rng([SEED, number, 77])
        leaves = [
            self.tensor(array(x) * rng.uniform(0.9, 1.1, tuple(x.shape)), x)
            if self.floating(x)
            else x
            for x in example.leaves
        ]
        return example.replaced(leaves)

    def double(self, example: Example) -> Example:
        """The example in double precision."""
        torch = self.torch
        leaves = [
            x
            if not self.floating(x)
            else x.to(torch.complex128 if x.is_complex() else torch.float64)
            for x in example.leaves
        ]
        return example.replaced(leaves)


def draw(rng: Any, t: Any) -> Any:
    """Normal values of the shape and kind of a tensor."""
    shape = tuple(t.shape)
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if t.is_complex() else real


def array(t: Any) -> Any:
    """The values of a tensor of either library; single precision where NumPy lacks it."""
    t = t.detach()
    if t.is_complex():
        t = t.resolve_conj()
    try:
        return np.asarray(t.numpy())
    except TypeError:
        return np.asarray(t.float().numpy())


@contextmanager
def seeded(torch: Any) -> Iterator[None]:
    """Runs with all generators of random numbers set anew, so that calls repeat."""
    # PyTorch's manual_seed keeps a traceback for each kind of device that is not there.
    getattr(torch, "default_generator", torch).manual_seed(SEED)
    np.random.seed(SEED)
    random.seed(SEED)
    yield


@contextmanager
def random_state(torch: Any) -> Iterator[None]:
    """Gives the generators of random numbers back as they were."""
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])


def same(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
    """Do two arrays agree, NaN with NaN?"""
    if a.shape != b.shape:
        return False
    scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    return bool(np.allclose(a, b, rtol, atol * max(1.0, scale), equal_nan=True))
