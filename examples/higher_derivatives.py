"""Sine and cosine, each the derivative of the other, differentiated four times.

A backward made of differentiable operations, here of another Function, can be
differentiated itself. Tensor operations of the forward pass are not recorded:
what a Function does inside is its own affair.
"""

import torch


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * Cosine.apply(x)


class Cosine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.cos(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return -grad_output * Sine.apply(x)


x = torch.tensor(0.5, requires_grad=True)
value = Sine.apply(x)
print(f"sin(x)          {value.item(): .6f}")
for order in range(1, 5):
    (value,) = torch.autograd.grad(value, x, create_graph=True)
    print(f"derivative {order}    {value.item(): .6f}")
print("the fourth is the function again:", torch.allclose(value, torch.sin(x)))
