"""Normalisation over the last dims, over groups of channels, over neighbours."""

from __future__ import annotations

from typing import Any

from gradfn.nn import functional as F
from gradfn.nn import init
from gradfn.nn.modules.module import Module
from gradfn.nn.modules.simple import REQUIRED, simple
from gradfn.nn.parameter import Parameter
from gradfn.ops.world import PUBLIC

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]

LocalResponseNorm = simple(
    "LocalResponseNorm",
    "local_response_norm",
    {"size": REQUIRED, "alpha": 1e-4, "beta": 0.75, "k": 1.0},
    shown="{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}",
)


class _Scaled(Module):
    """A weight of ones and a bias of zeros, or none."""

    def _fill(self, shape: Any, weight: bool, bias: Any, kind: dict[str, Any]) -> None:
        made = Parameter(PUBLIC["empty"](shape, **kind)) if weight else None
        self.register_parameter("weight", made)
        if bias is not None:
            made = Parameter(PUBLIC["empty"](shape, **kind)) if weight and bias else None
            self.register_parameter("bias", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weights to 1 and biases to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    one = isinstance(normalized_shape, int)
    return (normalized_shape,) if one else tuple(normalized_shape)


class LayerNorm(_Scaled):
    """Mean 0 and variance 1 over the last dims."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        kind = {"device": device, "dtype": dtype}
        self._fill(self.normalized_shape, elementwise_affine, bias, kind)

    def forward(self, input: Any) -> Any:
        """`nn.functional.layer_norm` of the input."""
        return F.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Scaled):
    """Divided by the root mean square over the last dims."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: Any = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        kind = {"device": device, "dtype": dtype}
        self._fill(self.normalized_shape, elementwise_affine, None, kind)

    def forward(self, x: Any) -> Any:
        """`nn.functional.rms_norm` of the input."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Scaled):
    """Mean 0 and variance 1 of groups of channels."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups "
                f"({num_groups})"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._fill(num_channels, affine, bias, {"device": device, "dtype": dtype})

    def forward(self, input: Any) -> Any:
        """`nn.functional.group_norm` of the input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
