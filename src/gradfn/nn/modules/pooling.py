"""Pooling: one value of each window."""

from __future__ import annotations

from typing import Any

from gradfn.nn import functional as F
from gradfn.nn.modules.module import Module
from gradfn.nn.modules.simple import REQUIRED, simple
from gradfn.nn.modules.utils import _ntuple

__all__ = [
    f"{kind}{n}d"
    for kind in ("AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "LPPool", "MaxPool")
    for n in (1, 2, 3)
] + [
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


def _stride(module: Any) -> None:
    if module.stride is None:
        module.stride = module.kernel_size


def _add(name: str, *args: Any, **options: Any) -> None:
    made = simple(name, *args, **options)
    made.__module__ = __name__
    globals()[name] = made


_MAX = {
    "kernel_size": REQUIRED,
    "stride": None,
    "padding": 0,
    "dilation": 1,
    "return_indices": False,
    "ceil_mode": False,
}
_AVG = {
    "kernel_size": REQUIRED,
    "stride": None,
    "padding": 0,
    "ceil_mode": False,
    "count_include_pad": True,
}
_LP = {
    "norm_type": REQUIRED,
    "kernel_size": REQUIRED,
    "stride": None,
    "ceil_mode": False,
}
for _n in (1, 2, 3):
    _add(
        f"MaxPool{_n}d",
        f"max_pool{_n}d",
        _MAX,
        shown=("kernel_size", "stride", "padding", "dilation", "ceil_mode"),
        finish=_stride,
    )

    def _finish(module: Any, n: int = _n) -> None:
        _stride(module)
        if n == 1:  # torch keeps these as tuples for one dim only
            for name in ("kernel_size", "stride", "padding"):
                setattr(module, name, _ntuple(1)(getattr(module, name)))

    _add(
        f"AvgPool{_n}d",
        f"avg_pool{_n}d",
        _AVG if _n == 1 else {**_AVG, "divisor_override": None},
        shown=("kernel_size", "stride", "padding"),
        finish=_finish,
    )
    _add(f"LPPool{_n}d", f"lp_pool{_n}d", _LP)
    _add(f"AdaptiveAvgPool{_n}d", f"adaptive_avg_pool{_n}d", {"output_size": REQUIRED})
    _add(
        f"AdaptiveMaxPool{_n}d",
        f"adaptive_max_pool{_n}d",
        {"output_size": REQUIRED, "return_indices": False},
        shown=("output_size",),
    )


class _MaxUnpool(Module):
    """What the inverses of max pooling share."""

    _n = 1

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        several = _ntuple(self._n)
        self.kernel_size = several(kernel_size)
        self.stride = several(kernel_size if stride is None else stride)
        self.padding = several(padding)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """The input at the places that max pooling took it from, zeros elsewhere."""
        unpool = getattr(F, f"max_unpool{self._n}d")
        return unpool(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        """The sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """`nn.functional.max_unpool1d` of the input."""


class MaxUnpool2d(_MaxUnpool):
    """`nn.functional.max_unpool2d` of the input."""

    _n = 2


class MaxUnpool3d(_MaxUnpool):
    """`nn.functional.max_unpool3d` of the input."""

    _n = 3


class _FractionalMaxPool(Module):
    """What both share: windows drawn by lot."""

    _n = 2

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        name, several = type(self).__name__, _ntuple(self._n)
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
                if output_size is None
                else "only one of output_size and output_ratio may be specified"
            )
        self.kernel_size, self.return_indices = several(kernel_size), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else several(output_size)
        self.output_ratio = None if output_ratio is None else several(output_ratio)
        if self.output_ratio and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(
                f"output_ratio must be between 0 and 1 (got {self.output_ratio})"
            )

    def forward(self, input: Any) -> Any:
        """`nn.functional.fractional_max_pool` of the input."""
        return getattr(F, f"fractional_max_pool{self._n}d")(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """`nn.functional.fractional_max_pool2d` of the input."""


class FractionalMaxPool3d(_FractionalMaxPool):
    """`nn.functional.fractional_max_pool3d` of the input."""

    _n = 3
