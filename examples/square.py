"""The smallest useful Function: squares, and the derivative 2x written by hand."""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


x = torch.tensor([1.0, -2.0, 4.0], requires_grad=True)
y = Square.apply(x)
print("x squared:     ", y)

y.sum().backward()
print("its derivative:", x.grad)
