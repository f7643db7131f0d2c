"""Layers with parameters, and those that only rearrange."""

from __future__ import annotations

import math
from typing import Any

from gradfn.nn import functional as F
from gradfn.nn import init
from gradfn.nn.modules.module import Module
from gradfn.nn.parameter import Parameter
from gradfn.ops.world import PUBLIC

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Bilinear",
    "Conv1d",
    "Conv2d",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Identity",
    "LayerNorm",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
    "Unflatten",
]


def _empty(*size: int, dtype: Any = None) -> Parameter:
    return Parameter(PUBLIC["empty"](*size, dtype=dtype))  # type: ignore[no-any-return]


class Identity(Module):
    """The input itself."""

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
        self.weight = _empty(out_features, in_features, dtype=dtype)
        self.register_parameter(
            "bias", _empty(out_features, dtype=dtype) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform within 1 / sqrt(in_features)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        """`nn.functional.linear` of the input."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """x1 @ weight[k] @ x2 + bias[k] for each output."""

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in1_features)
        self.weight = init.uniform_(
            _empty(out_features, in1_features, in2_features), -bound, bound
        )
        made = init.uniform_(_empty(out_features), -bound, bound) if bias else None
        self.register_parameter("bias", made)  # type: ignore[arg-type]

    def forward(self, input1: Any, input2: Any) -> Any:
        """`nn.functional.bilinear` of the inputs."""
        return F.bilinear(input1, input2, self.weight, self.bias)


class Flatten(Module):
    """Several dims as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        """`flatten` of the input."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The dims."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dim as several."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Any) -> Any:
        """`unflatten` of the input."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The dim and its sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Embedding(Module):
    """The rows of a table at given indices."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: Any = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        self._options = options
        self.weight = init.normal_(_empty(num_embeddings, embedding_dim))
        if padding_idx is not None:
            self.weight.data[padding_idx] = 0

    def forward(self, input: Any) -> Any:
        """`nn.functional.embedding` of the input."""
        return F.embedding(input, self.weight, self.padding_idx, **self._options)

    def extra_repr(self) -> str:
        """The sizes."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class _Conv(Module):
    """What convolutions share."""

    _n = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError("in_channels and out_channels must be divisible by groups")
        if padding_mode != "zeros":
            raise NotImplementedError(
                f"padding_mode={padding_mode!r}: gradfn has 'zeros' only"
            )
        n = self._n

        def several(x: Any) -> Any:
            return (x,) * n if isinstance(x, int) else tuple(x)

        self.in_channels, self.out_channels, self.groups = (
            in_channels,
            out_channels,
            groups,
        )
        self.kernel_size, self.stride = several(kernel_size), several(stride)
        self.dilation = several(dilation)
        self.padding = padding if isinstance(padding, str) else several(padding)
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = _empty(*shape, dtype=dtype)
        self.register_parameter(
            "bias", _empty(out_channels, dtype=dtype) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform within 1 / sqrt(inputs of each output)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(init.fans(self.weight)[0])
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        """The convolution of the input."""
        convolve = F.conv1d if self._n == 1 else F.conv2d
        return convolve(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
        )

    def extra_repr(self) -> str:
        """The sizes and what is not the default."""
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if isinstance(self.padding, str) or any(self.padding):
            text += f", padding={self.padding}"
        if any(d != 1 for d in self.dilation):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self.bias is not None else f"{text}, bias=False"


class Conv1d(_Conv):
    """A convolution over the last dim."""


class Conv2d(_Conv):
    """A convolution over the last two dims."""

    _n = 2


class _BatchNorm(Module):
    """What batch normalisations share."""

    _dims: tuple[int, ...] = (2, 3)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: Any = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        zeros, ones = PUBLIC["zeros"], PUBLIC["ones"]
        self.register_parameter(
            "weight", Parameter(ones(num_features)) if affine else None
        )
        self.register_parameter(
            "bias", Parameter(zeros(num_features)) if affine else None
        )
        track = track_running_stats
        self.register_buffer("running_mean", zeros(num_features) if track else None)
        self.register_buffer("running_var", ones(num_features) if track else None)
        self.register_buffer(
            "num_batches_tracked", PUBLIC["tensor"](0) if track else None
        )

    def forward(self, input: Any) -> Any:
        """`nn.functional.batch_norm` of the input."""
        if input.dim() not in self._dims:
            wanted = " or ".join(f"{d}D" for d in self._dims)
            raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        training = self.training or self.running_mean is None
        return F.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            training,
            factor,
            self.eps,
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L)."""


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W)."""

    _dims = (4,)


class LayerNorm(Module):
    """Normalisation over the last dims."""

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
        one = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if one else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        shape = self.normalized_shape
        made = Parameter(PUBLIC["ones"](shape)) if elementwise_affine else None
        self.register_parameter("weight", made)
        made = Parameter(PUBLIC["zeros"](shape)) if elementwise_affine and bias else None
        self.register_parameter("bias", made)

    def forward(self, input: Any) -> Any:
        """`nn.functional.layer_norm` of the input."""
        return F.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Normalisation over groups of channels."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        **_: Any,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        made = Parameter(PUBLIC["ones"](num_channels)) if affine else None
        self.register_parameter("weight", made)
        made = Parameter(PUBLIC["zeros"](num_channels)) if affine else None
        self.register_parameter("bias", made)

    def forward(self, input: Any) -> Any:
        """`nn.functional.group_norm` of the input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


def _pool(name: str, function: str, names: tuple[str, ...]) -> type[Module]:
    defaults = {"stride": None, "padding": 0, "dilation": 1, "ceil_mode": False}
    defaults |= {"count_include_pad": True}

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        given = {**dict(zip(names, args)), **kwargs}
        for n in names:
            setattr(self, n, given.get(n, defaults.get(n)))
        if "stride" in names and self.stride is None:
            self.stride = self.kernel_size

    def forward(self: Any, input: Any) -> Any:
        return getattr(F, function)(input, **{n: getattr(self, n) for n in names})

    def extra_repr(self: Any) -> str:
        return ", ".join(
            f"{n}={getattr(self, n)}" for n in names if n != "count_include_pad"
        )

    body = {"__init__": __init__, "forward": forward, "extra_repr": extra_repr}
    made = type(name, (Module,), body)
    made.__module__, made.__doc__ = __name__, f"`nn.functional.{function}` of the input."
    return made


_MAX = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
_AVG = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")
MaxPool1d = _pool("MaxPool1d", "max_pool1d", _MAX)
MaxPool2d = _pool("MaxPool2d", "max_pool2d", _MAX)
AvgPool1d = _pool("AvgPool1d", "avg_pool1d", _AVG)
AvgPool2d = _pool("AvgPool2d", "avg_pool2d", _AVG)
AdaptiveAvgPool1d = _pool("AdaptiveAvgPool1d", "adaptive_avg_pool1d", ("output_size",))
AdaptiveAvgPool2d = _pool("AdaptiveAvgPool2d", "adaptive_avg_pool2d", ("output_size",))
