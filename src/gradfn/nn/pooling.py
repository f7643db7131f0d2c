"""Averages and norms of windows: Note [Resampling]."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from gradfn.nn.arguments import by_rank, several
from gradfn.nn.resample import Matrix, resample, sums
from gradfn.nn.taps import Windows, adaptive, moving
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def check_rank(input: Tensor, n: int, op: str) -> None:
    """RuntimeError unless the input has n dims after the channels, batched or not."""
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"{op}(): Expected {n + 1}D or {n + 2}D (batch mode) tensor for input, but got: "
            f"{list(input.shape)}"
        )


def check_empty(input: Tensor, op: str) -> None:
    """RuntimeError if another dim than the batch is empty."""
    if 0 in input.shape[1:]:
        raise RuntimeError(
            f"{op}(): Expected input to have non-zero size for non-batch dimensions, but "
            f"input has sizes {list(input.shape)}"
        )


def windows_of(
    sizes: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    op: str,
) -> list[Windows]:
    """The windows along each dim. RuntimeError for bad sizes."""
    n = len(sizes)
    kernel = several(kernel, n)
    stride = kernel if stride in (None, (), []) else several(stride, n, "stride")
    padding, dilation = several(padding, n, "padding"), several(dilation, n, "dilation")
    if min(kernel) <= 0:
        raise RuntimeError(
            f"{op}(): kernel size should be greater than zero, but got {kernel}"
        )
    if min(stride) <= 0:
        raise RuntimeError(f"{op}(): stride should not be zero, but got {stride}")
    if min(dilation) <= 0:
        raise RuntimeError(
            f"{op}(): dilation should be greater than zero, but got {dilation}"
        )
    found = []
    for size, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )
        windows = moving(size, k, s, p, d, bool(ceil))
        if windows.count < 1:
            raise RuntimeError(
                f"{op}(): Given input size per channel: {list(sizes)}. Calculated output "
                f"size {windows.count} for kernel {k}, stride {s}, padding {p}. Output size "
                "is too small"
            )
        found.append(windows)
    return found


@lru_cache(256)
def _mean(windows: Windows, padding: int, count_pad: bool) -> tuple[Matrix, Any]:
    """The means over windows, and by what each is divided."""
    size = windows.size
    if count_pad:
        counts = np.minimum(windows.ends, size + padding) - windows.starts
    else:
        counts = np.minimum(windows.ends, size) - np.maximum(windows.starts, 0)
    return sums(windows, counts), counts


@lru_cache(256)
def _sum(windows: Windows) -> Matrix:
    return sums(windows, None)


def _average(
    input: Tensor,
    n: int,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil: bool,
    count_pad: bool,
    divisor: Any = None,
) -> Any:
    name = f"avg_pool{n}d"
    check_rank(input, n, name)
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    sizes = tuple(input.shape[-n:])
    windows = windows_of(sizes, kernel, stride, padding, 1, ceil, name)
    check_empty(input, name)
    pads = several(padding, n)
    if divisor is None and input.is_floating_point():
        return resample(
            input,
            tuple(_mean(w, p, count_pad)[0] for w, p in zip(windows, pads, strict=True)),
        )
    total = resample(input, tuple(_sum(w) for w in windows))
    if divisor is None:
        divisor = PUBLIC["tensor"](1)
        for w, p in zip(windows, pads, strict=True):
            counts = PUBLIC["tensor"](_mean(w, p, count_pad)[1])
            divisor = divisor.unsqueeze(-1) * counts
    return (
        total / divisor
        if input.is_floating_point()
        else total.div(divisor, rounding_mode="trunc")
    )


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window over the last dim."""
    return _average(input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad)


def _make_avg_pool(n: int) -> Any:
    def avg_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Any:
        """The mean of each window over the last {n} dims."""
        return _average(
            input, n, kernel_size, stride, padding, ceil_mode, count_include_pad,
            divisor_override,
        )  # fmt: skip

    return avg_pool


avg_pool2d, avg_pool3d = by_rank("avg_pool{n}d", _make_avg_pool, (2, 3))


# -- as many windows as asked for ----------------------------------------------------------


def output_sizes(input: Tensor, wanted: Any, n: int) -> tuple[int, ...]:
    """The sizes asked for; None keeps one."""
    given = list(wanted) if isinstance(wanted, (tuple, list)) else [wanted] * n
    given = given * n if len(given) == 1 else given
    if len(given) != n:
        raise ValueError(f"output_size must have {n} elements, but got {wanted}")
    sizes = input.shape[input.dim() - n :]
    found = tuple(
        int(m) if w is None else int(w) for w, m in zip(given, sizes, strict=True)
    )
    if min(found) < 0:
        raise RuntimeError(
            f"elements of output_size must be greater than or equal to 0, but got {found}"
        )
    return found


@lru_cache(256)
def _even_means(size: int, count: int) -> Matrix:
    windows = adaptive(size, count)
    return sums(windows, windows.ends - windows.starts)


def _adaptive_average(input: Tensor, n: int, output_size: Any) -> Any:
    check_rank(input, n, f"adaptive_avg_pool{n}d")
    check_empty(input, f"adaptive_avg_pool{n}d")
    sizes = input.shape[-n:]
    wanted = output_sizes(input, output_size, n)
    if all(w == 1 for w in wanted):
        return input.mean(tuple(range(-n, 0)), True)
    return resample(
        input,
        tuple(
            None if w == m else _even_means(m, w)
            for w, m in zip(wanted, sizes, strict=True)
        ),
    )


def _make_adaptive_avg_pool(n: int) -> Any:
    def adaptive_avg_pool(input: Tensor, output_size: Any) -> Any:
        """Means over as many windows over the last {n} dims as asked for; None keeps a size."""
        return _adaptive_average(input, n, output_size)

    return adaptive_avg_pool


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = by_rank(
    "adaptive_avg_pool{n}d", _make_adaptive_avg_pool
)


# -- norms ---------------------------------------------------------------------------------


def _norm_pool(
    input: Tensor, n: int, p: float, kernel: Any, stride: Any, ceil: bool
) -> Any:
    mean = _average(input**p, n, kernel, stride, 0, ceil, True)
    count = math.prod(several(kernel, n))
    return (mean.sign() * mean.abs().relu() * count) ** (1.0 / p)


def _make_lp_pool(n: int) -> Any:
    def lp_pool(
        input: Tensor,
        norm_type: float,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: bool = False,
    ) -> Any:
        """The p-th root of the sum of p-th powers of each window over the last {n} dims."""
        return _norm_pool(input, n, norm_type, kernel_size, stride, ceil_mode)

    return lp_pool


lp_pool1d, lp_pool2d, lp_pool3d = by_rank("lp_pool{n}d", _make_lp_pool)
