"""Train weights that may only be -1, 0 or +1, with a straight-through quantiser.

Rounding has derivative zero almost everywhere, so nothing would ever be
learnt through it. A straight-through quantiser rounds on the way forward and
lets the gradient pass on the way back, where the weight is inside the range.
"""

import numpy as np
import torch


class Ternary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight):
        ctx.save_for_backward(weight)
        return weight.clamp(-1, 1).round()

    @staticmethod
    def backward(ctx, grad_output):
        (weight,) = ctx.saved_tensors
        return grad_output * (weight.abs() <= 1)


def plain_rounding(weight):
    return weight.clamp(-1, 1).round()


rng = np.random.default_rng(7)
hidden = rng.integers(-1, 2, size=(12, 2)).astype(np.float64)
inputs = torch.from_numpy(rng.normal(size=(400, 12)))
noise = torch.from_numpy(0.1 * rng.normal(size=(400, 2)))
targets = inputs @ torch.from_numpy(hidden) + noise


def train(quantise, steps=81, rate=0.02):
    weight = torch.from_numpy(np.linspace(-0.4, 0.4, 24).reshape(12, 2))
    weight.requires_grad_()
    for step in range(steps):
        loss = ((inputs @ quantise(weight) - targets) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            weight -= rate * weight.grad
            weight.grad = None
        if step % 20 == 0:
            print(f"  step {step:2d}   loss {loss.item():.4f}")
    return quantise(weight).detach().numpy()


def wrong(found):
    return f"weights that are wrong: {int((found != hidden).sum())} of {hidden.size}"


print("plain rounding")
print(wrong(train(plain_rounding)))
print("straight through")
found = train(Ternary.apply)
print(wrong(found))
print(torch.from_numpy(found).int().T)
