"""Activations as modules: the functions of nn.functional with their settings kept."""

from __future__ import annotations

from typing import Any

from gradfn.nn import functional as F
from gradfn.nn.modules.attention import MultiheadAttention
from gradfn.nn.modules.module import Module
from gradfn.nn.modules.simple import REQUIRED, simple
from gradfn.nn.parameter import Parameter
from gradfn.ops.world import PUBLIC

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]
_INPLACE = {"inplace": False}

ReLU = simple("ReLU", "relu", _INPLACE)
Sigmoid = simple("Sigmoid", "sigmoid", {})
Tanh = simple("Tanh", "tanh", {})
LeakyReLU = simple("LeakyReLU", "leaky_relu", {"negative_slope": 0.01, **_INPLACE})
ELU = simple("ELU", "elu", {"alpha": 1.0, **_INPLACE})
SELU = simple("SELU", "selu", _INPLACE)
CELU = simple("CELU", "celu", {"alpha": 1.0, **_INPLACE})
GELU = simple(
    "GELU", "gelu", {"approximate": "none"}, shown="approximate={self.approximate!r}"
)
SiLU = simple("SiLU", "silu", _INPLACE)
Mish = simple("Mish", "mish", _INPLACE)
Softplus = simple("Softplus", "softplus", {"beta": 1.0, "threshold": 20.0})
Softsign = simple("Softsign", "softsign", {})
Softshrink = simple("Softshrink", "softshrink", {"lambd": 0.5}, shown="{self.lambd}")
Hardshrink = simple("Hardshrink", "hardshrink", {"lambd": 0.5}, shown="{self.lambd}")
Tanhshrink = simple("Tanhshrink", "tanhshrink", {})
Hardsigmoid = simple("Hardsigmoid", "hardsigmoid", _INPLACE, shown=())
Hardswish = simple("Hardswish", "hardswish", _INPLACE, shown=())
LogSigmoid = simple("LogSigmoid", "logsigmoid", {})
GLU = simple("GLU", "glu", {"dim": -1})
Softmax = simple("Softmax", "softmax", {"dim": None})
Softmin = simple("Softmin", "softmin", {"dim": None})
LogSoftmax = simple("LogSoftmax", "log_softmax", {"dim": None})
RReLU = simple(
    "RReLU",
    "rrelu",
    {"lower": 1.0 / 8, "upper": 1.0 / 3, **_INPLACE},
    training=True,
)
Threshold = simple(
    "Threshold", "threshold", {"threshold": REQUIRED, "value": REQUIRED, **_INPLACE}
)


def _checked_bounds(module: Any) -> None:
    if module.max_val <= module.min_val:
        raise AssertionError(
            f"max_val ({module.max_val}) must be greater than min_val ({module.min_val})"
        )


Hardtanh = simple(
    "Hardtanh",
    "hardtanh",
    {"min_val": -1.0, "max_val": 1.0, **_INPLACE},
    finish=_checked_bounds,
)


class ReLU6(Hardtanh):  # type: ignore[misc, valid-type]
    """`nn.functional.relu6` of the input."""

    _shown = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Softmax2d(Module):
    """Softmax over the channels of images."""

    def forward(self, input: Any) -> Any:
        """`nn.functional.softmax` over the third dim from behind."""
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)


class PReLU(Module):
    """leaky_relu with slopes that are learned."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(
            PUBLIC["empty"](num_parameters, device=device, dtype=dtype)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets all slopes to their first value."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Any) -> Any:
        """The input, scaled where it is negative."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"
