"""Convolutions and their transposes."""

from __future__ import annotations

import math
from typing import Any

from gradfn.nn import functional as F
from gradfn.nn import init
from gradfn.nn.modules.linear import empty, within
from gradfn.nn.modules.module import Module
from gradfn.nn.modules.utils import _ntuple, _reverse_repeat_tuple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]
_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What convolutions and transposed ones share."""

    _n = 1
    transposed = False
    padding: Any
    output_padding: tuple[int, ...]

    def _fill(
        self,
        in_channels: int,
        out_channels: int,
        sizes: tuple[Any, Any, Any, Any],
        groups: int,
        bias: bool,
        padding_mode: str,
        kind: dict[str, Any],
    ) -> None:
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in _MODES:
            raise ValueError(
                f"padding_mode must be one of {set(_MODES)}, but got "
                f"padding_mode='{padding_mode}'"
            )
        kernel_size, stride, padding, dilation = sizes
        several = _ntuple(self._n)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = several(kernel_size), several(stride)
        self.dilation, self.groups, self.padding_mode = (
            several(dilation),
            groups,
            padding_mode,
        )
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of ['same', 'valid']"
            )
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        self.padding = padding if isinstance(padding, str) else several(padding)
        first, second = (
            (in_channels, out_channels)
            if self.transposed
            else (out_channels, in_channels)
        )
        self.weight = empty(first, second // groups, *self.kernel_size, **kind)
        self.register_parameter("bias", empty(out_channels, **kind) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform within 1 / sqrt(inputs of each output)."""
        fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
        bound = 1 / math.sqrt(fan_in) if fan_in else 0
        within(self.weight, bound)
        within(self.bias, bound)

    def extra_repr(self) -> str:
        """The sizes and what is not the default."""
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        n = self._n
        for name, usual in (
            ("padding", (0,) * n),
            ("dilation", (1,) * n),
            ("output_padding", (0,) * n),
            ("groups", 1),
        ):
            value = getattr(self, name, usual)
            if value != usual:
                text += f", {name}={value}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    """What convolutions share."""

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
        sizes = kernel_size, stride, padding, dilation
        kind = {"device": device, "dtype": dtype}
        self._fill(in_channels, out_channels, sizes, groups, bias, padding_mode, kind)

    def _sides(self) -> tuple[int, ...]:
        """The padding as `nn.functional.pad` takes it."""
        if self.padding == "valid":
            return (0,) * (2 * self._n)
        if self.padding != "same":
            return _reverse_repeat_tuple(self.padding, 2)
        sides: tuple[int, ...] = ()
        for d, k in zip(reversed(self.dilation), reversed(self.kernel_size), strict=True):
            total = d * (k - 1)
            sides += (total // 2, total - total // 2)
        return sides

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._sides(), self.padding_mode)
            padding = 0
        convolve = getattr(F, f"conv{self._n}d")
        return convolve(
            input, weight, bias, self.stride, padding, self.dilation, self.groups
        )

    def forward(self, input: Any) -> Any:
        """The convolution of the input."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """A convolution over the last dim."""


class Conv2d(_Conv):
    """A convolution over the last two dims."""

    _n = 2


class Conv3d(_Conv):
    """A convolution over the last three dims."""

    _n = 3


class _ConvTransposeNd(_ConvNd):
    """What transposed convolutions share."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}'
            )
        super().__init__()
        self.output_padding = _ntuple(self._n)(output_padding)
        sizes = kernel_size, stride, padding, dilation
        kind = {"device": device, "dtype": dtype}
        self._fill(in_channels, out_channels, sizes, groups, bias, padding_mode, kind)

    def _more(self, input: Any, output_size: Any) -> Any:
        """The output_padding that gives a wanted size."""
        if output_size is None:
            return self.output_padding
        n = self._n
        wanted = list(output_size)[-n:]
        least = [
            (input.shape[i - n] - 1) * self.stride[i]
            - 2 * self.padding[i]
            + self.dilation[i] * (self.kernel_size[i] - 1)
            + 1
            for i in range(n)
        ]
        most = [m + s - 1 for m, s in zip(least, self.stride, strict=True)]
        if len(wanted) != n or any(
            not lo <= w <= hi for lo, w, hi in zip(least, wanted, most, strict=True)
        ):
            raise ValueError(
                f"requested an output size of {list(output_size)}, but valid sizes range "
                f"from {least} to {most} (for an input of {list(input.shape[-n:])})"
            )
        return tuple(w - m for w, m in zip(wanted, least, strict=True))

    def forward(self, input: Any, output_size: Any = None) -> Any:
        """The transposed convolution of the input."""
        convolve = getattr(F, f"conv_transpose{self._n}d")
        return convolve(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._more(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of a convolution over the last dim."""


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of a convolution over the last two dims."""

    _n = 2


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of a convolution over the last three dims."""

    _n = 3
