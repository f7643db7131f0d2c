"""A Function that needs its result, not its input, to differentiate.

The derivative of exp is exp itself. Written in two parts, forward knows
nothing of the graph and setup_context says what to keep for backward.
"""

import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


x = torch.tensor([[0.0, 1.0], [-1.0, 2.0]], requires_grad=True)
y = Exp.apply(x)
print(y)

# A saved result knows how it was made, so the derivative can be differentiated.
(first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), x)
print(first.detach())
print("second derivative is exp as well:", torch.equal(second, y))
