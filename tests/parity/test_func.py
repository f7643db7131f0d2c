"""Compositions of transforms, up to three deep, over made-up functions: as torch.func."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

import gradfn
import gradfn.func

# Steps from a vector of three and another (y) to a vector of three.
STEPS = {
    "sin": "x.sin()",
    "exp": "(x * 0.3).exp()",
    "tanh": "x.tanh() * y",
    "power": "x**3",
    "root": "(x * x + 1).sqrt()",
    "quotient": "x / (y * y + 2)",
    "pow": "(x * x + 1) ** y",
    "abs": "x.abs() + y",
    "where": "torch.where(x > y, x * y, x.cos())",
    "clamp": "x.clamp(min=-0.5) * x",
    "maximum": "torch.maximum(x, y) * x",
    "softmax": "x.softmax(-1)",
    "normed": "x / x.norm()",
    "logsumexp": "x - x.logsumexp(0)",
    "cumsum": "x.cumsum(0)",
    "cumprod": "x.cumprod(0)",
    "sorted": "x.sort().values",
    "largest": "x * x.max()",
    "spread": "x * x.var(0)",
    "product": "x.prod() + y",
    "flip": "x.flip(0) * x",
    "roll": "x.roll(1, 0) * y",
    "joined": "torch.cat([x[1:], y[:1] * x[0]])",
    "stacked": "torch.stack([x[0] * x[1], x[2], y.sum()])",
    "indexed": "x[torch.tensor([2, 0, 2])] * y",
    "gathered": "x.gather(0, y.argsort()) * y",
    "matmul": "W @ x",
    "rows": "x @ W.T",
    "outer": "torch.outer(x, y).sum(0)",
    "einsum": "torch.einsum('i,ij,j->j', x, W, y)",
    "square": "(W * x).mm(W) @ y",
    "inverse": "(W + torch.diag(x * x + 4)).inverse() @ y",
    "triangle": "torch.outer(x, x).tril().sum(1)",
    "unfolded": "torch.cat([x, y, x]).unfold(0, 3, 2).sum(0)",
    "padded": "torch.nn.functional.pad(x, (1, 1))[1:] .unsqueeze(0).sum(0)[:3] * x",
    # Not here, since PyTorch is wrong: the third derivative of layer_norm, and the second
    # ones of det and solve where the first is taken forwards.
    "standard": "(x - x.mean()) / (x.var(0, correction=0) + 1e-5).sqrt() * y",
    "gelu": "torch.nn.functional.gelu(x)",
    "loss": "torch.nn.functional.mse_loss(x, y) * x",
    "convolved": "torch.nn.functional.conv1d(x[None, None], W[None, :1], padding=1)[0, 0]",
    "scattered": "x.scatter_add(0, y.argsort(), x * y)",
    "written": "written(x, y)",
    "overwritten": "overwritten(x, y)",
    "detached": "x * x.detach()",
    "with no grad": "quiet(x, y)",
}

W = np.array([[0.4, -0.2, 0.9], [-0.7, 0.3, 0.1], [0.2, 0.8, -0.5]])

HELPERS = """
def written(x, y):
    out = x.clone()
    out.mul_(y)
    out[1] = x.sum()
    return out

def overwritten(x, y):
    out = torch.zeros_like(x)
    out[:2] = x[1:]
    out.view(3, 1)[2].add_(y[:1])
    return out * x

def quiet(x, y):
    with torch.no_grad():
        scale = x.sin()
    return x * scale
"""


def function(library: Any, steps: tuple[str, ...]) -> Callable[[Any, Any], Any]:
    """The steps, one after the other, as a function of x and y."""
    place = {"torch": library, "W": library.tensor(W.tolist(), dtype=library.float64)}
    exec(HELPERS, place)
    parts = [eval(f"lambda x, y: {STEPS[name]}", place) for name in steps]

    def call(x: Any, y: Any) -> Any:
        for part in parts:
            x = part(x, y)
        return x

    return call


# -- transforms: each makes a function of x and y from one ----------------------------------


def weights(library: Any, like: Any) -> Any:
    """A cotangent for a result."""
    flat = library.arange(1, like.numel() + 1, dtype=library.float64)
    return (flat * 0.7).cos().reshape(like.shape)


def summed(f: Any) -> Any:
    """The function's sum, which has a gradient."""
    return lambda x, y: f(x, y).sum()


def pushed(library: Any, f: Any, by: str) -> Any:
    """The derivative in the direction of y."""

    def g(x: Any, y: Any) -> Any:
        way = y.expand(x.shape) * 1.0
        if by == "linearize" and library is gradfn:  # PyTorch's does not nest
            out, push = library.func.linearize(lambda x: f(x, y), x)
            return push(way) + 0.1 * out
        out, tangent = library.func.jvp(lambda x: f(x, y), (x,), (way,))
        return tangent + 0.1 * out

    return g


def pulled(library: Any, f: Any) -> Any:
    """The gradient for a cotangent, by both arguments."""

    def g(x: Any, y: Any) -> Any:
        out, pull = library.func.vjp(f, x, y)
        by_x, by_y = pull(weights(library, out))
        return by_x + by_y.sum()

    return g


def transformed(library: Any, f: Any, name: str) -> Any:
    """What the transform makes of a function."""
    func = library.func
    if name == "grad":
        return func.grad(summed(f))
    if name == "grad of y":
        both = func.grad_and_value(summed(f), argnums=(1, 0))
        return lambda x, y: both(x, y)[0][1] * both(x, y)[1] + both(x, y)[0][0].sum()
    if name == "hessian":
        return func.hessian(summed(f))
    if name in ("jacrev", "jacfwd"):
        return getattr(func, name)(f)
    if name == "chunked":
        return func.jacrev(f, chunk_size=2)
    if name == "vjp":
        return pulled(library, f)
    if name in ("jvp", "linearize"):
        return pushed(library, f, name)
    in_dims, out_dims = {"vmap": ((0, 0), 0), "shared": ((0, None), 0), "last": (0, -1)}[
        name
    ]
    return func.vmap(f, in_dims, out_dims)


TRANSFORMS = (
    "grad",
    "grad of y",
    "hessian",
    "jacrev",
    "jacfwd",
    "chunked",
    "vjp",
    "jvp",
    "linearize",
    "vmap",
    "shared",
    "last",
)


def result(library: Any, steps: tuple[str, ...], transforms: tuple[str, ...]) -> Any:
    """The value of all of them, at fixed points."""
    f = function(library, steps)
    shape, shared = [3], [3]
    for name in transforms:
        f = transformed(library, f, name)
        if name in ("vmap", "shared", "last"):
            shape.insert(0, 2)
            if name != "shared":
                shared.insert(0, 2)
    rng = np.random.default_rng(5)
    x, y = (
        library.tensor(rng.uniform(-1.5, 1.5, s).tolist(), dtype=library.float64)
        for s in (shape, shared)
    )
    return f(x, y)


def size(transforms: tuple[str, ...]) -> int:
    """How many elements the value has, roughly."""
    n, out = 3, 3
    for name in transforms:
        if name in ("vmap", "shared", "last"):
            n, out = 2 * n, 2 * out
        elif name in ("jacrev", "jacfwd", "chunked"):
            out *= n
        elif name == "hessian":
            out = n * n
        elif name in ("grad", "grad of y", "vjp"):
            out = n
    return out


chains = st.lists(st.sampled_from(TRANSFORMS), min_size=1, max_size=3).map(tuple)
steps = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=3).map(tuple)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(steps=steps, transforms=chains.filter(lambda t: size(t) <= 400))
@example(steps=("sin",), transforms=("jacfwd", "jacrev", "vmap"))
@example(steps=("written",), transforms=("jvp", "jvp", "jvp"))
@example(steps=("cumprod", "outer"), transforms=("hessian", "grad"))
@example(steps=("sin",), transforms=("grad", "shared", "vjp"))
@example(steps=("written",), transforms=("jacfwd", "chunked", "vmap"))
def test_compositions(steps: tuple[str, ...], transforms: tuple[str, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, of its loops and of its own parts
        try:
            theirs = result(torch, steps, transforms)
        except RuntimeError:  # some writes and zero tangents PyTorch cannot nest
            reject()
    if theirs._is_zerotensor():  # which has no memory
        theirs = torch.zeros(theirs.shape, dtype=torch.float64)
    mine = result(gradfn, steps, transforms)
    assert tuple(mine.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(
        mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-7, atol=1e-9
    )
