"""Functions that are right, though not in the plainest way: contexts, memory, outputs."""

import functools
import threading
from collections import namedtuple
from typing import Literal

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class DoublesInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


class SortsWithPlaces(Function):
    """The second output is integer, the third marked."""

    @staticmethod
    def forward(ctx, x):
        y, at = x.sort(-1)
        back = at.argsort(-1)
        least = y[..., 0].clone()
        ctx.mark_non_differentiable(at, least)
        ctx.save_for_backward(back)
        return y, at, least

    @staticmethod
    def backward(ctx, g, *_):
        (back,) = ctx.saved_tensors
        return g.gather(-1, back)

    @staticmethod
    def examples():
        return [(torch.randn(5),), (torch.randn(2, 4),)]


class EitherOutput(Function):
    """Does with None for outputs that are not used."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x * x

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        got = None if g is None else g * x.cos()
        if h is not None:
            more = 2 * h * x
            got = more if got is None else got + more
        return got


class PassesNoneOn(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 5

    @staticmethod
    def backward(ctx, g):
        return None if g is None else g * 5


class Dropout(Function):
    @staticmethod
    def forward(ctx, x, p):
        mask = (torch.rand(x.shape) >= p).to(x.dtype) / (1 - p)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask, None

    @staticmethod
    def examples():
        return [(torch.randn(4, 5), 0.3)]


class StraightThrough(Function):
    """Not a derivative, and it says so."""

    check_skip = ("first order",)

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class Reversal(Function):
    check_skip = ("first order",)

    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.strength * g, None


class ClipsTheGradient(Function):
    check_skip = ("first order", "second order", "linearity", "unused outputs")

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-0.1, 0.1)


class Gathers(Function):
    """Rows of a table by integers, some twice."""

    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        out = torch.zeros(ctx.shape, dtype=g.dtype)
        return out.index_add(0, index, g), None

    @staticmethod
    def examples():
        return [(torch.randn(4, 3), torch.tensor([0, 2, 2, 3, 0]))]


class RunningSum(Function):
    @staticmethod
    def forward(ctx, x, dim=-1):
        ctx.dim = dim
        return x.cumsum(dim)

    @staticmethod
    def backward(ctx, g):
        return g.flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim), None


class ReturnsAView(Function):
    @staticmethod
    def forward(ctx, x):
        return x.mT

    @staticmethod
    def backward(ctx, g):
        return g.mT

    @staticmethod
    def examples():
        return [(torch.randn(2, 3),)]


class Identity(Function):
    """Its output is its input."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class Expands(Function):
    """The output has stride 0."""

    @staticmethod
    def forward(ctx, x):
        return x.unsqueeze(0).expand(3, *x.shape)

    @staticmethod
    def backward(ctx, g):
        return g.sum(0)


class WithEveryRule(Function):
    """jvp, and vmap made of forward and backward."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sin() * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.cos() * x + x.sin())

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * (x.cos() * x + x.sin())


class OwnBatchRule(Function):
    """Its vmap moves the batch to the front and says where it left it."""

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x

    @staticmethod
    def vmap(info, in_dims, x, y):
        a, b = in_dims
        x = x.unsqueeze(-1) if a is None else x.movedim(a, -1)
        y = y.unsqueeze(-1) if b is None else y.movedim(b, -1)
        return OwnBatchRule.apply(x, y), -1

    @staticmethod
    def examples():
        return [(torch.randn(4), torch.randn(4))]


class TangentsOfTwo(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y + h, g * x + h

    @staticmethod
    def jvp(ctx, s, t):
        x, y = ctx.saved_tensors
        return s * y + x * t, s + t


class SavesWhatIsNeeded(Function):
    @staticmethod
    def forward(ctx, x, y):
        need_x, need_y = ctx.needs_input_grad
        ctx.save_for_backward(y if need_x else None, x if need_y else None)
        return x * y

    @staticmethod
    def backward(ctx, g):
        y, x = ctx.saved_tensors
        return None if y is None else g * y, None if x is None else g * x


class KeepsNumbersOnCtx(Function):
    """A constant tensor on ctx is no input."""

    weights = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)

    @staticmethod
    def forward(ctx, x):
        ctx.weights = KeepsNumbersOnCtx.weights.to(x.dtype)
        return x * ctx.weights

    @staticmethod
    def backward(ctx, g):
        return g * ctx.weights

    @staticmethod
    def examples():
        return [(torch.randn(3),), (torch.randn(2, 3),)]


@functools.lru_cache
def table(n):
    return torch.arange(n, dtype=torch.float64) + 1


class CachesATable(Function):
    """A cache of constants is no state."""

    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[-1]
        return (x * table(ctx.n).to(x.dtype)).sum(-1)

    @staticmethod
    def backward(ctx, g):
        return g.unsqueeze(-1) * table(ctx.n).to(g.dtype)

    @staticmethod
    def examples():
        return [(torch.randn(4),), (torch.randn(2, 3),)]


class CountsUnderALock(Function):
    lock = threading.Lock()
    calls = 0

    @staticmethod
    def forward(ctx, x):
        with CountsUnderALock.lock:
            CountsUnderALock.calls += 1
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class InheritsBackward(DoublesInPlace):
    @staticmethod
    def forward(ctx, x):
        return x + x


class CalledVjp(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def vjp(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x


class OfMany(Function):
    @staticmethod
    def forward(ctx, *xs):
        ctx.n = len(xs)
        return functools.reduce(lambda a, b: a + b, xs)

    @staticmethod
    def backward(ctx, g):
        return (g,) * ctx.n

    @staticmethod
    def examples():
        return [(torch.randn(3), torch.randn(3), torch.randn(3)), (torch.randn(2),)]


class Reduces(Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, how: Literal["sum", "mean"]):
        ctx.shape, ctx.how = x.shape, how
        return x.sum() if how == "sum" else x.mean()

    @staticmethod
    def backward(ctx, g):
        n = 1
        for k in ctx.shape:
            n *= k
        return g.expand(ctx.shape) / (n if ctx.how == "mean" else 1), None


class WithATupleArgument(Function):
    @staticmethod
    def forward(ctx, x, shape):
        ctx.shape = x.shape
        return x.reshape(shape)

    @staticmethod
    def backward(ctx, g):
        return g.reshape(ctx.shape), None

    @staticmethod
    def examples():
        return [(torch.randn(2, 6), (3, 4))]


Pair = namedtuple("Pair", "low high")


class ReturnsNumbersToo(Function):
    """A number among the outputs."""

    @staticmethod
    def forward(ctx, x):
        return x * 2, 7

    @staticmethod
    def backward(ctx, g, _):
        return g * 2


class RefusesVectors(Function):
    @staticmethod
    def forward(ctx, x):
        if x.dim() != 2:
            raise ValueError("a matrix, please")
        return x.diagonal().sum()

    @staticmethod
    def backward(ctx, g):
        return None if g is None else g * torch.eye(3, 3, dtype=g.dtype)

    @staticmethod
    def examples():
        return [(torch.randn(3, 3),)]


class MatricesOnly(Function):
    @staticmethod
    def forward(ctx, x):
        _, ctx.columns = x.shape
        return x.sum(1)

    @staticmethod
    def backward(ctx, g):
        return g.unsqueeze(1).expand(-1, ctx.columns)


class SinglePrecisionInside(Function):
    """Computes in single precision, whatever it is given, and gives back what it got."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.float().exp().to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g.float() * x.float().exp()).to(g.dtype)

    @staticmethod
    def examples():
        return [(torch.randn(4),)]


class CastsToHalf(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.dtype = x.dtype
        return x.to(torch.float32)

    @staticmethod
    def backward(ctx, g):
        return g.to(ctx.dtype)

    @staticmethod
    def examples():
        return [(torch.randn(4, dtype=torch.float64),)]


class TargetWithoutGradient(Function):
    """The examples say that only x is differentiated."""

    @staticmethod
    def forward(ctx, x, target):
        ctx.save_for_backward(x, target)
        return ((x - target) ** 2).sum()

    @staticmethod
    def backward(ctx, g):
        x, target = ctx.saved_tensors
        return 2 * g * (x - target), None

    @staticmethod
    def examples():
        return [(torch.randn(4, requires_grad=True), torch.randn(4))]


class BigMatrix(Function):
    """Too large to look at each element."""

    @staticmethod
    def forward(ctx, a, x):
        ctx.save_for_backward(a, x)
        return (a @ x).tanh()

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        h = g * (1 - (a @ x).tanh() ** 2)
        return torch.outer(h, x), a.mT @ h

    @staticmethod
    def examples():
        return [(torch.randn(80, 70) / 8, torch.randn(70))]
