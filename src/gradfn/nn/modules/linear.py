"""Linear and bilinear maps."""

from __future__ import annotations

import math
from typing import Any

from gradfn.nn import functional as F
from gradfn.nn import init
from gradfn.nn.modules.module import Module
from gradfn.nn.parameter import Parameter
from gradfn.ops.world import PUBLIC

__all__ = ["Bilinear", "Identity", "Linear"]


def empty(*size: int, dtype: Any = None, device: Any = None) -> Parameter:
    """A parameter to be filled."""
    return Parameter(PUBLIC["empty"](*size, dtype=dtype, device=device))  # type: ignore[no-any-return]


def within(values: Any, bound: float) -> None:
    """Fills a parameter, which may be None, uniformly within a bound."""
    if values is not None:
        init.uniform_(values, -bound, bound)


class Identity(Module):
    """The input itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Module):
    """x @ weight.T + bias."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = empty(out_features, in_features, dtype=dtype, device=device)
        made = empty(out_features, dtype=dtype) if bias else None
        self.register_parameter("bias", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform within 1 / sqrt(in_features)."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
        within(self.weight, bound)
        within(self.bias, bound)

    def forward(self, input: Any) -> Any:
        """`nn.functional.linear` of the input."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear inside of MultiheadAttention, under the name that PyTorch gives it."""


class Bilinear(Module):
    """x1 @ weight[k] @ x2 + bias[k] for each output."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        self.weight = empty(
            out_features, in1_features, in2_features, dtype=dtype, device=device
        )
        made = empty(out_features, dtype=dtype) if bias else None
        self.register_parameter("bias", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform within 1 / sqrt(in1_features)."""
        within(self.weight, 1 / math.sqrt(self.in1_features))
        within(self.bias, 1 / math.sqrt(self.in1_features))

    def forward(self, input1: Any, input2: Any) -> Any:
        """`nn.functional.bilinear` of the inputs."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
