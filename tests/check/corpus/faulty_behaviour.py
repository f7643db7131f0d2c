"""Functions that are right on paper and misbehave. `planted` names how."""

import threading

import torch
from torch.autograd import Function


class OneGradientTooFew(Function):
    planted = "number of gradients"

    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k

    @staticmethod
    def examples():
        return [(torch.randn(3), 2.0)]


class OneGradientTooMany(Function):
    planted = "number of gradients"

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, g * 3


class GradientOfAnotherShape(Function):
    planted = "gradient shape"

    @staticmethod
    def forward(ctx, x):
        return x.reshape(-1) * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def examples():
        return [(torch.randn(2, 3),)]


class GradientIsANumber(Function):
    planted = "gradient type"

    @staticmethod
    def forward(ctx, x):
        return x.sum()

    @staticmethod
    def backward(ctx, g):
        return float(g)


class GradientsInAList(Function):
    planted = "gradient type"

    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, g):
        return [g, g]


class SinglePrecisionGradient(Function):
    planted = "precision lost"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g * x.exp()).float()


class GradientForANumber(Function):
    planted = "gradient for a non-tensor"

    @staticmethod
    def forward(ctx, x, k):
        return x + k

    @staticmethod
    def backward(ctx, g):
        return g, g

    @staticmethod
    def examples():
        return [(torch.randn(3), 2.0)]


class KeywordOnly(Function):
    planted = "keyword-only arguments"

    @staticmethod
    def forward(ctx, x, *, factor=2.0):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor


class ListOfTensors(Function):
    planted = "containers"

    @staticmethod
    def forward(ctx, xs):
        return xs[0] + xs[1]

    @staticmethod
    def backward(ctx, g):
        return [g, g]

    @staticmethod
    def examples():
        return [([torch.randn(3), torch.randn(3)],)]


class ListOfOutputs(Function):
    planted = "containers"

    @staticmethod
    def forward(ctx, x):
        return [x * 2, x * 3]

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3


class NothingIsDifferentiable(Function):
    planted = "not differentiable"

    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * 2


class VmapInFront(Function):
    """Its vmap takes it for granted that the batch is in front."""

    planted = "vmap"

    @staticmethod
    def forward(x):
        return x.sum(0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.shape = inputs[0].shape

    @staticmethod
    def backward(ctx, g):
        return g.unsqueeze(0).expand(ctx.shape)

    @staticmethod
    def vmap(info, in_dims, x):
        return x.sum(1), 0

    @staticmethod
    def examples():
        return [(torch.randn(2, 4),)]


class VmapSaysTheWrongDim(Function):
    planted = "vmap"

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def vmap(info, in_dims, x):
        return x.movedim(in_dims[0], 0) * 2, 1

    @staticmethod
    def examples():
        return [(torch.randn(3),)]


class VmapThatLooksInside(Function):
    planted = "vmap raises"
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2 if x.sum().item() > 0 else x * 2.0

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2


class VmapWithCtxInForward(Function):
    planted = "needs setup_context"
    generate_vmap_rule = True

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class WritesIntoItsInput(Function):
    planted = "input modified"

    @staticmethod
    def forward(ctx, x):
        y = x.detach()
        y.mul_(2)
        return y * 1

    @staticmethod
    def backward(ctx, g):
        return g * 2


class WritesAndReturnsUnmarked(Function):
    planted = "input modified"

    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


class WritesIntoGradOutput(Function):
    planted = "grad_output modified"

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g.mul_(2)


class WritesIntoWhatItSaved(Function):
    planted = "input modified"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.detach().exp_()


class DirtyButNotReturned(Function):
    planted = "mark_dirty"

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class ViewsTheGradient(Function):
    planted = "needs contiguous"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        flat = 2 * x.reshape(-1) * g.view(-1)
        return flat.reshape(x.shape)


class ViewsTheInput(Function):
    planted = "needs contiguous"

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.view(-1) * 2

    @staticmethod
    def backward(ctx, g):
        return (g * 2).reshape(ctx.shape)


class ReadsMemoryInOrder(Function):
    planted = "layout"

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return torch.as_strided(x, (x.numel(),), (1,)) * 2

    @staticmethod
    def backward(ctx, g):
        return (g * 2).reshape(ctx.shape)

    @staticmethod
    def examples():
        return [(torch.randn(3, 4),)]


class NeedsADim(Function):
    planted = "0-d input"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        rows = [2 * x[i] * g[i] for i in range(x.shape[0])]
        return torch.stack(rows) if rows else g

    @staticmethod
    def examples():
        return [(torch.randn(3),), (torch.randn(2, 2),)]


class NeedsAnElement(Function):
    planted = "empty input"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        largest = x.abs().max()
        return 2 * g * (x / largest) * largest


class CannotBroadcast(Function):
    planted = "broadcast sum"

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y).reshape(x.shape), (g * x).reshape(y.shape)


class AsksForTheWrongOne(Function):
    planted = "needs_input_grad"

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        gx = g * y if ctx.needs_input_grad[1] else None
        gy = g * x if ctx.needs_input_grad[0] else None
        return gx, gy


class CountsOnBoth(Function):
    planted = "needs_input_grad"

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(*(t for t in (x, y) if t.requires_grad))
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


class CannotDoWithoutBoth(Function):
    planted = "unused output"

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3


class CannotDoWithNone(Function):
    planted = "unused output"

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class CountsItsCalls(Function):
    planted = "not deterministic"
    calls = 0

    @staticmethod
    def forward(ctx, x):
        CountsItsCalls.calls += 1
        ctx.k = 1.0 + CountsItsCalls.calls % 3
        return x * ctx.k

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k


class DrawsTheMaskAgain(Function):
    planted = "random backward"

    @staticmethod
    def forward(ctx, x):
        return x * (torch.rand(x.shape) > 0.5).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g * (torch.rand(g.shape) > 0.5).to(g.dtype)


class UsesItselfUp(Function):
    planted = "changes its context"

    @staticmethod
    def forward(ctx, x):
        ctx.scale = 2.0
        return x * 2

    @staticmethod
    def backward(ctx, g):
        got = g * ctx.scale
        ctx.scale = ctx.scale + 1
        return got


class FreesWhatItKept(Function):
    planted = "changes its context"

    @staticmethod
    def forward(ctx, x):
        ctx.powers = [2.0, 3.0]
        return x * 6

    @staticmethod
    def backward(ctx, g):
        while ctx.powers:
            g = g * ctx.powers.pop()
        return g


class TruncatesIntegers(Function):
    planted = "integers"

    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        out.copy_(x * 0.3)
        return out

    @staticmethod
    def backward(ctx, g):
        return g * 0.3


class KeepsItsOutput(Function):
    planted = "output kept alive"

    @staticmethod
    def forward(ctx, x):
        ctx.y = x.exp()
        return ctx.y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.y


class KeepsItsInput(Function):
    planted = "input outside save_for_backward"

    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.x


class KeepsItsInputInADict(Function):
    planted = "input outside save_for_backward"

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.kept = {"x": inputs[0]}

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.kept["x"]


class KeepsAllInputsForever(Function):
    planted = "kept alive"
    seen = []

    @staticmethod
    def forward(ctx, x):
        KeepsAllInputsForever.seen.append(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class StateOnTheClass(Function):
    planted = "shared state"
    check_skip = ("second order",)
    slope = None

    @staticmethod
    def forward(ctx, x):
        StateOnTheClass.slope = x.exp()
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        return g * StateOnTheClass.slope


class SavedInAGlobal(Function):
    planted = "shared state"

    @staticmethod
    def forward(ctx, x):
        STACK["slope"] = x.detach().cos()
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        return g * STACK["slope"]

    check_skip = ("second order",)


STACK = {}


class SavedInAThreadLocal(Function):
    planted = "thread-local state"
    check_skip = ("second order",)

    @staticmethod
    def forward(ctx, x):
        calls = vars(LOCAL).setdefault("calls", {})
        ctx.number = len(calls)
        calls[ctx.number] = x.detach().clone().cos()
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        return g * LOCAL.calls[ctx.number]


LOCAL = threading.local()
