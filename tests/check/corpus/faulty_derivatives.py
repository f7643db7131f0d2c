"""Functions with a wrong derivative. `planted` names what is wrong with each."""

import numpy as np
import torch
from torch.autograd import Function


class WrongSign(Function):
    planted = "sign"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.cos()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.sin()


class HalfOfIt(Function):
    planted = "constant factor"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x


class MeanOverTheBatch(Function):
    planted = "constant factor"

    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, g):
        return g, g.mean(0)

    @staticmethod
    def examples():
        return [(torch.randn(5, 3), torch.randn(3))]


class MeanSquare(Function):
    """1/n is forgotten."""

    planted = "constant factor"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).mean()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class WithoutTheChainRule(Function):
    planted = "grad_output ignored"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x


class SquaresTheGradient(Function):
    planted = "not linear"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * g * x.exp()


class SwappedFactors(Function):
    planted = "swapped argument"

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * x, g * y


class SwappedOutputs(Function):
    planted = "swapped output"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin(), x.exp()

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return h * x.cos() + g * x.exp()


class WeightNotTransposed(Function):
    planted = "transpose"

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, x.mT @ g

    @staticmethod
    def examples():
        return [(torch.randn(2, 3), torch.randn(3, 3))]


class ProductInTheWrongOrder(Function):
    planted = "transpose"

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.mT, g @ x.mT

    @staticmethod
    def examples():
        return [(torch.randn(3, 3), torch.randn(3, 3))]


class GradientTransposed(Function):
    planted = "transpose"

    @staticmethod
    def forward(ctx, x):
        return x.mT * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def examples():
        return [(torch.randn(3, 3),)]


class ReshapedForTransposed(Function):
    planted = "reshaped"

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.mT.contiguous()

    @staticmethod
    def backward(ctx, g):
        return g.reshape(ctx.shape)

    @staticmethod
    def examples():
        return [(torch.randn(2, 3),)]


class SumOverTheWrongDim(Function):
    planted = "wrong dim"

    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, g):
        return g, g.sum(1)

    @staticmethod
    def examples():
        return [(torch.randn(3, 3), torch.randn(3))]


class FirstRowOnly(Function):
    planted = "broadcast sum"

    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, g):
        return g, g[0]

    @staticmethod
    def examples():
        return [(torch.randn(4, 3), torch.randn(3))]


class UsedTwiceCountedOnce(Function):
    planted = "broadcast sum"

    @staticmethod
    def forward(ctx, x):
        return torch.cat([x, x])

    @staticmethod
    def backward(ctx, g):
        return g[: g.shape[0] // 2]

    @staticmethod
    def examples():
        return [(torch.randn(3),)]


class WithoutConj(Function):
    planted = "conjugate"

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return 2 * g * z

    @staticmethod
    def examples():
        return [(torch.randn(3, dtype=torch.complex128),)]


class RealPartOnly(Function):
    planted = "imaginary part"

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z.abs() ** 2

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return (2 * g * z.real).to(z.dtype)

    @staticmethod
    def examples():
        return [(torch.randn(3, dtype=torch.complex128),)]


class PowerOneTooLow(Function):
    planted = "formula factor"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * g


class ExpWithoutExp(Function):
    planted = "formula factor"

    @staticmethod
    def forward(ctx, x):
        return (2 * x).exp()

    @staticmethod
    def backward(ctx, g):
        return 2 * g


class TanhOfTheInput(Function):
    """1 - y**2 with x for y."""

    planted = "wrong formula"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.tanh()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (1 - x**2)


class LeakyOnOneSide(Function):
    planted = "branch"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, 0.1 * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, g, 0.2 * g)


class ForgetsTheSecond(Function):
    planted = "no gradient"

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y, None


class RoundsAndPasses(Function):
    """Straight through, and nothing says that this is meant."""

    planted = "no dependence"

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class BackwardInNumPy(Function):
    planted = "not recorded"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        slope = np.cos(x.detach().numpy())
        return g * torch.from_numpy(np.asarray(slope))


class DetachesTheGradient(Function):
    planted = "not recorded"

    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g.detach() * 3


class KeepsAnIntermediate(Function):
    planted = "saved intermediate"

    @staticmethod
    def forward(ctx, x):
        e = x.exp()
        ctx.save_for_backward(x, e)
        return x * e

    @staticmethod
    def backward(ctx, g):
        x, e = ctx.saved_tensors
        return g * (e + x * e)


class KeepsAnIntermediateOnCtx(Function):
    planted = "saved intermediate"

    @staticmethod
    def forward(ctx, x):
        ctx.slope = 1 - x.tanh() ** 2
        return x.tanh()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.slope


class HalfDetached(Function):
    planted = "second order"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x * x.detach()


class TangentTwiceTooLarge(Function):
    planted = "constant factor"

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 2 * t * x.cos()


class TangentOfOneOnly(Function):
    planted = "wrong jvp"

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x

    @staticmethod
    def jvp(ctx, s, t):
        _, y = ctx.saved_tensors
        return s * y


class TangentWithoutSaving(Function):
    planted = "jvp raises"

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * x.cos()


class NanAtTheOrigin(Function):
    planted = "not finite"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum().sqrt()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x / (x * x).sum().sqrt()


class AbsByDivision(Function):
    planted = "not finite"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x / x.abs()


class SigmoidThatOverflows(Function):
    planted = "not finite"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sigmoid(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        e = (-x).exp()
        return g * e / (1 + e) ** 2


class MaxGivesToAllTies(Function):
    planted = "ties"

    @staticmethod
    def forward(ctx, x):
        y = x.max()
        ctx.save_for_backward(x, y)
        return y.clone()

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * (x == y).to(x.dtype)


class SlopeAtTheKink(Function):
    planted = "not a subgradient"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ((x > 0).to(x.dtype) + 2 * (x == 0).to(x.dtype))
