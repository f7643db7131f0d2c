"""log(sum(exp(x))) without overflow, beside the formula as it stands in books.

The largest element is taken out before exp. The derivative is the softmax,
computed from the saved result, so backward cannot overflow either.
"""

import torch


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        largest = x.max(dim=-1, keepdim=True).values
        result = largest + (x - largest).exp().sum(dim=-1, keepdim=True).log()
        ctx.save_for_backward(x, result)
        return result.squeeze(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, result = ctx.saved_tensors
        return grad_output.unsqueeze(-1) * (x - result).exp()


def naive(x):
    return x.exp().sum(dim=-1).log()


def value_and_gradient(function, x):
    x = x.clone().requires_grad_()
    value = function(x)
    value.sum().backward()
    return value.detach(), x.grad


small = torch.tensor([[0.5, -1.0, 2.0], [0.0, 0.0, 0.0]])
for name, function in ("naive ", naive), ("stable", LogSumExp.apply):
    value, gradient = value_and_gradient(function, small)
    print(f"{name} on small numbers:", value)
    print(gradient)

large = torch.tensor([[1000.0, 1001.0, 1002.0], [-1000.0, -1001.0, -1002.0]])
for name, function in ("naive ", naive), ("stable", LogSumExp.apply):
    value, gradient = value_and_gradient(function, large)
    print(f"{name} on large numbers:", value)
    print(gradient)
