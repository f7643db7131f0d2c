"""Single ops, each on few, some and many elements: what ops.py measures.

An op is an expression over torch, F (torch.nn.functional) and the tensors below; those
that its text names take part, and the floating ones among them get gradients.
"""

from __future__ import annotations

from math import isqrt
from types import ModuleType
from typing import Any

import data
import numpy as np
from catalogue import Entry
from workloads import Workload

OPS = {
    "add": "a + b",
    "mul": "a * b",
    "div": "a / p",
    "square": "a ** 2",
    "exp": "a.exp()",
    "log": "p.log()",
    "sin": "a.sin()",
    "tanh": "a.tanh()",
    "sigmoid": "a.sigmoid()",
    "relu": "a.relu()",
    "gelu": "F.gelu(a)",
    "clamp": "a.clamp(-1, 1)",
    "where": "torch.where(a > 0, a, b)",
    "masked_fill": "a.masked_fill(a > 1, 0.5)",
    "sum": "a.sum()",
    "sum rows": "m.sum(0)",
    "mean": "a.mean()",
    "max": "m.max(1)[0]",
    "var": "m.var(1)",
    "norm": "a.norm()",
    "cumsum": "m.cumsum(1)",
    "softmax": "m.softmax(1)",
    "sort": "m.sort(1)[0]",
    "matmul": "m @ k",
    "linear": "F.linear(m, k, k[0])",
    "transpose": "m.t().contiguous()",
    "cat": "torch.cat([m, k])",
    "index": "m[i]",
    "embedding": "F.embedding(i, m)",
    "layer_norm": "F.layer_norm(m, m.shape[1:], k[0], k[0])",
    "batch_norm": "F.batch_norm(m, None, None, k[0], k[0], training=True)",
    "mse_loss": "F.mse_loss(a, b)",
    "cross_entropy": "F.cross_entropy(m, i)",
    "attention": "F.scaled_dot_product_attention(m, k, k)",
    "conv2d": "F.conv2d(image, kernel, padding=1)",
    "max_pool2d": "F.max_pool2d(image, 2)",
}
SIZES = (3, 10**3, 10**6)  # elements of a tensor, or nearly so many
LIMITS = dict(zip(SIZES, (0.5, 1.0, 1.0), strict=True))
_IMAGES = {  # samples, channels, height and width, channels of the result
    3: (1, 1, 2, 2, 1),
    10**3: (1, 4, 16, 16, 8),
    10**6: (4, 16, 128, 128, 32),
}


def name_of(op: str, size: int, backward: bool) -> str:
    return f"{op} {size} {'both' if backward else 'forward'}"


ENTRIES = {
    name_of(op, size, backward): Entry(
        name_of(op, size, backward), LIMITS[size], "single", (op, size, backward)
    )
    for op in OPS
    for size in SIZES
    for backward in (False, True)
}


def arrays(size: int) -> dict[str, Any]:
    """The numbers behind the names in expressions."""
    side = max(isqrt(size), 3)
    n, channels, high, wide, outs = _IMAGES[size]
    return {
        "a": data.normal(1, size),
        "b": data.normal(2, size),
        "p": np.abs(data.normal(3, size)) + np.float32(0.5),
        "m": data.normal(4, side, side),
        "k": data.normal(5, side, side, scale=side**-0.5),
        "i": np.random.default_rng(6).integers(0, side, side),
        "image": data.normal(7, n, channels, high, wide),
        "kernel": data.normal(8, outs, channels, 3, 3, scale=0.1),
    }


def single(torch: ModuleType, op: str, size: int, backward: bool) -> Workload:
    code = compile(OPS[op], f"<{op}>", "eval")
    given = {k: torch.tensor(v) for k, v in arrays(size).items() if k in code.co_names}
    leaves = [t.requires_grad_() for t in given.values() if t.is_floating_point()]
    space = {"torch": torch, "F": torch.nn.functional}
    call = eval(f"lambda {', '.join(given)}: {OPS[op]}", space)
    tensors = tuple(given.values())

    def forward() -> tuple[Any, ...]:
        return (call(*tensors),)

    seed = torch.tensor(data.normal(9, *call(*tensors).shape))

    def both() -> tuple[Any, ...]:
        out = call(*tensors)
        return out, *torch.autograd.grad(out, leaves, seed)

    return Workload(both if backward else forward)
