"""Add a number to every element, with a derivative written by hand.

The number is no tensor, so nothing can be differentiated with respect to it:
backward answers None in its place.
"""

import torch


class AddConstant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, constant):
        return values + constant

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


values = torch.tensor([0.5, 1.5, 2.5], requires_grad=True)
shifted = AddConstant.apply(values, 10.0)
print(shifted)

shifted.sum().backward()
print(values.grad)
