"""Random programs of views, writes, hooks and Functions behave alike on both libraries.

A program is a list of steps over a growing list of tensors. The same list is run with
gradfn and with PyTorch; values, versions, who requires grad, gradients and the types of
errors are compared after it. `GRADFN_PROGRAMS` sets how many are tried.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gradfn

SHAPE = (2, 3)
COUNT = int(os.environ.get("GRADFN_PROGRAMS", "300"))

# name: (how many tensors, how many small ints)
STEPS = {
    "mul": (2, 0),
    "add": (2, 0),
    "square": (1, 0),
    "exp": (1, 0),
    "tanh": (1, 0),
    "sum_dim": (1, 1),
    "select": (1, 1),
    "slice": (1, 1),
    "transpose": (1, 0),
    "reshape": (1, 0),
    "unbind": (1, 1),
    "unsqueeze": (1, 0),
    "expand": (1, 0),
    "detach": (1, 0),
    "clone": (1, 0),
    "no_grad_view": (1, 0),
    "no_grad_add_": (1, 1),
    "add_": (2, 0),
    "mul_": (2, 0),
    "mul_number_": (1, 1),
    "tanh_": (1, 0),
    "zero_": (1, 0),
    "copy_": (2, 0),
    "set_row": (2, 1),
    "set_number": (1, 1),
    "masked_fill_": (1, 1),
    "function": (1, 0),
    "function_two": (1, 1),
    "function_dirty": (1, 0),
    "hook": (1, 1),
    "retain_grad": (1, 0),
    "backward": (1, 1),
    "grad_twice": (1, 0),
}
step = st.sampled_from(sorted(STEPS)).flatmap(
    lambda name: st.tuples(
        st.just(name),
        st.tuples(*[st.integers(0, 30)] * STEPS[name][0]),
        st.tuples(*[st.integers(0, 2)] * STEPS[name][1]),
    )
)


class Machine:
    """Runs steps with one library."""

    def __init__(self, library: Any) -> None:
        self.lib = library
        rng = np.random.default_rng(5)
        leaves = [library.tensor(rng.uniform(0.5, 1.5, SHAPE)) for _ in range(3)]
        self.tensors = [*(t.requires_grad_() for t in leaves[:2]), leaves[2]]
        self.leaves = leaves[:2]
        self.log: list[Any] = []
        self.functions = functions(library)
        self.once = False  # are second derivatives left out from here on?

    def run(self, steps: list[Any]) -> list[Any]:
        """The log of what happened, and the state afterwards."""
        for name, which, numbers in steps:
            given_tensors = [self.tensors[i % len(self.tensors)] for i in which]
            try:
                # PyTorch takes a view for a leaf that was written through another view
                # and not looked at since; gradfn does not.
                for t in given_tensors:
                    t.grad_fn
                out = getattr(self, f"do_{name}")(*given_tensors, *numbers)
            except Exception as error:
                assume("INTERNAL ASSERT" not in str(error))  # a bug that PyTorch admits
                self.log.append(f"{name}: {type(error).__name__}")
                continue
            for t in out if isinstance(out, (tuple, list)) else [out]:
                if t is not None and len(self.tensors) < 24:
                    self.tensors.append(t)
        self.log += [facts(t) for t in self.tensors]
        self.log += [None if t.grad is None else t.grad.tolist() for t in self.leaves]
        return self.log

    def do_mul(self, a: Any, b: Any) -> Any:
        return a * b

    def do_add(self, a: Any, b: Any) -> Any:
        return a + b

    def do_square(self, a: Any) -> Any:
        return a**2 * 0.5

    def do_exp(self, a: Any) -> Any:
        return (a * 0.1).exp()

    def do_tanh(self, a: Any) -> Any:
        return a.tanh()

    def do_sum_dim(self, a: Any, n: int) -> Any:
        return a.sum(n % max(a.dim(), 1), keepdim=True)

    def do_select(self, a: Any, n: int) -> Any:
        return a[n % a.shape[0]]

    def do_slice(self, a: Any, n: int) -> Any:
        return a[n % a.shape[0] :]

    def do_transpose(self, a: Any) -> Any:
        return a.transpose(0, -1)

    def do_reshape(self, a: Any) -> Any:
        return a.reshape(-1)

    def do_unbind(self, a: Any, n: int) -> Any:
        return a.unbind(0)[n % a.shape[0]]

    def do_unsqueeze(self, a: Any) -> Any:
        return a.unsqueeze(0) if a.dim() < 3 else a

    def do_expand(self, a: Any) -> Any:
        return a.expand(2, *a.shape) if a.dim() < 2 else None

    def do_detach(self, a: Any) -> Any:
        return a.detach()

    def do_clone(self, a: Any) -> Any:
        return a.clone()

    def do_no_grad_view(self, a: Any) -> Any:
        with self.lib.no_grad():
            return a.view(a.shape)

    def do_no_grad_add_(self, a: Any, n: int) -> None:
        with self.lib.no_grad():
            a.add_(n)

    def do_add_(self, a: Any, b: Any) -> None:
        a.add_(b)

    def do_mul_(self, a: Any, b: Any) -> None:
        if a is b:
            return  # PyTorch refuses the gradient of this, gradfn has it
        a.mul_(b)

    def do_mul_number_(self, a: Any, n: int) -> None:
        a.mul_(n)

    def do_tanh_(self, a: Any) -> None:
        # A second derivative of this shows in the .grad of PyTorch's view.
        self.once = self.once or (a._is_view() and a.retains_grad)
        a.tanh_()

    def do_zero_(self, a: Any) -> None:
        if 0 in a.stride() and a.requires_grad:
            return  # PyTorch writes and refuses the gradient, gradfn has it
        a.zero_()

    def do_copy_(self, a: Any, b: Any) -> None:
        a.copy_(b)

    def do_set_row(self, a: Any, b: Any, n: int) -> None:
        n = n % a.shape[0]
        if b.data_ptr() == a[n].data_ptr():
            return  # PyTorch's answer depends on strides of dims of size 1
        a[n] = b

    def do_set_number(self, a: Any, n: int) -> None:
        a[..., n % a.shape[-1]] = float(n)

    def do_masked_fill_(self, a: Any, n: int) -> None:
        if 0 in a.stride():
            return  # PyTorch warns of it and writes, gradfn refuses
        a.masked_fill_(a > n, 0.5)

    def do_function(self, a: Any) -> Any:
        return self.functions[0].apply(a)

    def do_function_two(self, a: Any, n: int) -> Any:
        return self.functions[1].apply(a)[n % 2]

    def do_function_dirty(self, a: Any) -> Any:
        return self.functions[2].apply(a)

    def do_hook(self, a: Any, n: int) -> None:
        a.register_hook(lambda g: g * (n + 1))

    def do_retain_grad(self, a: Any) -> None:
        a.retain_grad()

    def do_backward(self, a: Any, n: int) -> None:
        a.sum().backward(retain_graph=bool(n))

    def do_grad_twice(self, a: Any) -> None:
        # By all leaves: PyTorch looks at everything that a node saved, gradfn only at
        # what it needs, so by one of them it may refuse where gradfn has an answer.
        if self.once:
            return
        grad, leaves = self.lib.autograd.grad, self.leaves
        first = grad((a * a).sum(), leaves, create_graph=True, allow_unused=True)
        total = sum((g * g).sum() for g in first if g is not None)
        got = grad(total, leaves, allow_unused=True)
        self.log.append([None if t is None else t.tolist() for t in got])


def facts(t: Any) -> Any:
    """What must agree about a tensor; an error if its history can't be told."""
    try:
        return told(t)
    except RuntimeError as error:
        assume("INTERNAL ASSERT" not in str(error))
        return str(error)[:60]


def told(t: Any) -> Any:
    kept = t.grad.tolist() if t.retains_grad and t.grad is not None else None
    return (t.tolist(), t._version, t.requires_grad, t.is_leaf, t._is_view(), kept)


def functions(library: Any) -> Any:
    """Custom Functions of one library."""

    class Cube(library.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    class Two(library.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            out = x.exp()
            ctx.save_for_backward(out)
            return out, x * 2

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            (out,) = ctx.saved_tensors
            return g * out + h * 2

    class Dirty(library.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return Cube, Two, Dirty


def alike(a: Any, b: Any) -> bool:
    """Equal, numbers to a tolerance."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-7, atol=1e-9, equal_nan=True))
    return bool(a == b)


@settings(max_examples=COUNT)
@given(st.lists(step, min_size=2, max_size=14))
def test_programs_behave_alike(steps: list[Any]) -> None:
    with np.errstate(all="ignore"):
        mine, theirs = Machine(gradfn).run(steps), Machine(torch).run(steps)
    different = [(a, b) for a, b in zip(mine, theirs) if not alike(a, b)]
    assert len(mine) == len(theirs)
    assert not different, different[0]
