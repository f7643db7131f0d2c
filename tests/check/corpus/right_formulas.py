"""Functions that are right, though not in the plainest way: formulas."""

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SavesItsOutput(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class AddNumber(Function):
    @staticmethod
    def forward(ctx, x, k):
        return x + k

    @staticmethod
    def backward(ctx, g):
        return g, None


class Linear(Function):
    """The bias may be missing."""

    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight, bias)
        y = x @ weight.mT
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, g):
        x, weight, bias = ctx.saved_tensors
        gx = g @ weight if ctx.needs_input_grad[0] else None
        gw = g.mT @ x if ctx.needs_input_grad[1] else None
        gb = g.sum(0) if bias is not None and ctx.needs_input_grad[2] else None
        return gx, gw, gb

    @staticmethod
    def examples():
        x, w = torch.randn(2, 3), torch.randn(4, 3)
        return [(x, w, torch.randn(4)), (x, w, None), (x, w)]


class Product(Function):
    """Of whatever shapes broadcast: the engine sums."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


class Quotient(Function):
    """Sums over what was broadcast itself."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x / y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return summed_to(g / y, x.shape), summed_to(-g * x / y**2, y.shape)


def summed_to(g, shape):
    while g.dim() > len(shape):
        g = g.sum(0)
    for i, n in enumerate(shape):
        if n == 1 and g.shape[i] != 1:
            g = g.sum(i, keepdim=True)
    return g


class MatMul(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b.mT, a.mT @ g

    @staticmethod
    def examples():
        return [
            (torch.randn(2, 3), torch.randn(3, 4)),
            (torch.randn(3, 3), torch.randn(3, 3)),
            (torch.randn(5, 2, 3), torch.randn(3, 2)),
        ]


class Bilinear(Function):
    """Symmetric arguments: x A y."""

    @staticmethod
    def forward(ctx, x, a, y):
        ctx.save_for_backward(x, a, y)
        return x @ a @ y

    @staticmethod
    def backward(ctx, g):
        x, a, y = ctx.saved_tensors
        return g * (a @ y), g * torch.outer(x, y), g * (x @ a)

    @staticmethod
    def examples():
        return [(torch.randn(3), torch.randn(3, 3), torch.randn(3))]


class Inverse(Function):
    @staticmethod
    def forward(ctx, a):
        y = torch.linalg.inv(a)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return -y.mT @ g @ y.mT

    @staticmethod
    def examples():
        return [(torch.randn(3, 3) + 3 * torch.eye(3),)]


class Rectifier(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mask = x > 0
        return x * ctx.mask

    @staticmethod
    def backward(ctx, g):
        return g * ctx.mask


class Absolute(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.sign()


class Clamped(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        inside = (x >= ctx.low) & (x <= ctx.high)
        return g * inside, None, None

    @staticmethod
    def examples():
        return [(torch.randn(5) * 2, -1.0, 1.0)]


class LargestFirst(Function):
    """Of equal elements the first has the gradient."""

    @staticmethod
    def forward(ctx, x):
        flat = x.reshape(-1)
        ctx.at = int(flat.argmax())
        ctx.shape = x.shape
        return flat[ctx.at].clone()

    @staticmethod
    def backward(ctx, g):
        n = 1
        for k in ctx.shape:
            n *= k
        unit = torch.zeros(n, dtype=g.dtype)
        unit[ctx.at] = 1.0
        return (unit * g).reshape(ctx.shape)


class LargestShared(Function):
    """Equal elements share it."""

    @staticmethod
    def forward(ctx, x):
        y = x.max()
        mask = x == y
        ctx.save_for_backward(mask)
        return y.clone()

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask / mask.sum()


class Norm(Function):
    """Zero at the origin."""

    @staticmethod
    def forward(ctx, x):
        y = (x * x).sum().sqrt()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * x / y if y > 0 else torch.zeros_like(x)


class LogSumExp(Function):
    @staticmethod
    def forward(ctx, x):
        top = x.max()
        y = top + (x - top).exp().sum().log()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * (x - y).exp()

    @staticmethod
    def examples():
        return [(torch.randn(4),), (torch.randn(2, 3) * 50,)]


class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        e = (x - x.max(-1, keepdim=True).values).exp()
        y = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True))


class CrossEntropy(Function):
    """The targets are classes."""

    @staticmethod
    def forward(ctx, logits, target):
        p = logits.softmax(-1)
        rows = torch.arange(len(target))
        ctx.save_for_backward(logits, target)
        return -p[rows, target].log().mean()

    @staticmethod
    def backward(ctx, g):
        logits, target = ctx.saved_tensors
        hot = torch.zeros_like(logits)
        hot[torch.arange(len(target)), target] = 1.0
        return g * (logits.softmax(-1) - hot) / len(target), None

    @staticmethod
    def examples():
        return [(torch.randn(4, 3), torch.tensor([0, 2, 1, 1]))]


class StableSigmoid(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.sigmoid(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y * (1 - y)


class XLogX(Function):
    """0 log 0 is 0; its slope there is infinite, and cut off."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x * x.clamp(min=1e-300).log(), x * 0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        safe = torch.where(x > 0, x, torch.ones_like(x))
        return torch.where(x > 0, g * (1 + safe.log()), g * 0)

    @staticmethod
    def examples():
        return [(torch.rand(4) + 0.1,)]


class Sinc(Function):
    """sin(x)/x, with the series near 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        safe = torch.where(x.abs() < 1e-4, torch.ones_like(x), x)
        return torch.where(x.abs() < 1e-4, 1 - x * x / 6, safe.sin() / safe)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        near = x.abs() < 1e-4
        safe = torch.where(near, torch.ones_like(x), x)
        slope = (safe * safe.cos() - safe.sin()) / (safe * safe)
        return g * torch.where(near, -x / 3, slope)


class NumPySine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.sin(x.detach().numpy()).copy())

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.from_numpy(g.numpy() * np.cos(x.detach().numpy()))

    @staticmethod
    def examples():
        return [(torch.randn(3),), (torch.randn(2, 2),)]


class NumPySinh(Function):
    """Differentiable again: its backward is another Function."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.asarray(np.sinh(x.detach().numpy())))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * NumPyCosh.apply(x)


class NumPyCosh(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.asarray(np.cosh(x.detach().numpy())))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * NumPySinh.apply(x)


class ComplexProduct(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b.conj(), g * a.conj()

    @staticmethod
    def examples():
        return [
            (torch.randn(3, dtype=torch.cdouble), torch.randn(3, dtype=torch.cdouble))
        ]


class SquaredModulus(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return (z * z.conj()).real

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return 2 * g * z

    @staticmethod
    def examples():
        return [(torch.randn(3, dtype=torch.cdouble),)]


class UnitCircle(Function):
    """A complex function of a real argument."""

    @staticmethod
    def forward(ctx, x):
        y = torch.complex(x.cos(), x.sin())
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.imag * x.cos() - g.real * x.sin()


class ReturnsTheIntermediate(Function):
    """sinh as PyTorch's tutorial has it: what backward uses is an output."""

    @staticmethod
    def forward(ctx, x):
        up, down = x.exp(), (-x).exp()
        ctx.save_for_backward(up, down)
        return (up - down) / 2, up, down

    @staticmethod
    def backward(ctx, g, g_up, g_down):
        up, down = ctx.saved_tensors
        return g * (up + down) / 2 + g_up * up - g_down * down


class ComputesItAgain(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        e = x.exp()
        return g * (e + x * e)


class Root(Function):
    """y with y + exp(y) = x, by Newton's method; the implicit function theorem."""

    @staticmethod
    def forward(ctx, x):
        y = torch.zeros_like(x)
        for _ in range(60):
            y = y - (y + y.exp() - x) / (1 + y.exp())
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g / (1 + y.exp())

    @staticmethod
    def examples():
        return [(torch.randn(4),)]


class Recomputes(Function):
    """Checkpointing: backward runs the forward again, recorded."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.tanh() * x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            again = x.detach().requires_grad_()
            y = again.tanh() * again
        return torch.autograd.grad(y, again, g)[0]


class Steps(Function):
    """Rounds; the derivative is zero, and is said to be."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return torch.zeros_like(g)


class Hinge(Function):
    """Kinks wherever x*y is 1."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (1 - x * y).clamp(min=0).mean()

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        active = (x * y < 1).to(x.dtype) * (g / x.numel())
        return -active * y, -active * x

    @staticmethod
    def examples():
        return [(torch.randn(6), torch.randn(6))]
