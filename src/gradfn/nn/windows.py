"""Padding, convolution and pooling: sums and extremes over moving windows.

A convolution is a product of matrices over a view of all windows (`unfold` twice), so its
derivatives are those of the ops.
"""

from __future__ import annotations

import math
from typing import Any

from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def _tuple(x: Any, n: int) -> tuple[int, ...]:
    """n ints from one, or from n."""
    if isinstance(x, int):
        return (x,) * n
    several: tuple[int, ...] = tuple(x)
    return several * n if len(several) == 1 else several


def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """More places before and after in the last dims: constant, reflect, replicate, circular."""
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > input.dim():
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but "
            f"got padding length {len(pad)} and input of dimension {input.dim()}"
        )
    pairs = [(int(pad[i]), int(pad[i + 1])) for i in range(0, len(pad), 2)]
    for back, (before, after) in enumerate(pairs):
        dim = input.dim() - 1 - back
        if mode == "constant":
            input = _pad_constant(
                input, dim, before, after, 0 if value is None else value
            )
        elif before or after:
            input = input.index_select(
                dim, _pad_index(input.shape[dim], before, after, mode)
            )
    return input.clone() if all(p == (0, 0) for p in pairs) else input


def _pad_constant(x: Tensor, dim: int, before: int, after: int, value: Any) -> Any:
    size = x.shape[dim]
    start, end = max(-before, 0), size - max(-after, 0)
    if start > end:
        raise RuntimeError(
            f"narrow(): length must be non-negative: dim {dim} of size {size} is padded by "
            f"{before} and {after}"
        )
    parts = [x.narrow(dim, start, end - start)]
    for n, front in ((before, True), (after, False)):
        if n > 0:
            shape = [n if d == dim else m for d, m in enumerate(x.shape)]
            extra = x.new_full(shape, value)
            parts = [extra, *parts] if front else [*parts, extra]
    return PUBLIC["cat"](parts, dim) if len(parts) > 1 else parts[0]


def _pad_index(size: int, before: int, after: int, mode: str) -> Any:
    if mode == "circular":  # of what is left if a side is cut
        start, end = max(-before, 0), size - max(-after, 0)
        round_ = PUBLIC["arange"](-max(before, 0), end - start + max(after, 0))
        return round_ % max(end - start, 1) + start
    places = PUBLIC["arange"](-before, size + after)
    if mode == "replicate":
        return places.clamp(0, size - 1)
    if mode == "reflect":
        if before >= size or after >= size:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input "
                f"dimension, but got: padding ({before}, {after}) at dimension of size {size}"
            )
        period = max(2 * (size - 1), 1)
        places = places.abs() % period
        return PUBLIC["where"](places < size, places, period - places)
    raise NotImplementedError(f"Unrecognised padding mode {mode}")


def _windows(x: Tensor, kernel: Any, stride: Any, dilation: Any) -> Any:
    """All windows over the last n dims, which become 2n: places, then offsets."""
    n = len(kernel)
    first = x.dim() - n
    for i in range(n):
        span = dilation[i] * (kernel[i] - 1) + 1
        x = x.unfold(first + i, span, stride[i])
        if dilation[i] > 1:
            x = x[..., :: dilation[i]]
    return x


def _convolve(
    input: Tensor,
    weight: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Any:
    n = weight.dim() - 2
    alone = input.dim() == n + 1
    x = input.unsqueeze(0) if alone else input
    stride, dilation = _tuple(stride, n), _tuple(dilation, n)
    kernel = tuple(weight.shape[2:])
    if x.dim() != n + 2:
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to conv{n}d, but got "
            f"input of size: {list(input.shape)}"
        )
    if x.shape[1] != weight.shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected "
            f"input{list(input.shape)} to have {weight.shape[1] * groups} channels, but got "
            f"{x.shape[1]} channels instead"
        )
    x = pad(x, _both_sides(padding, kernel, dilation, n)) if padding else x
    windows = _windows(x, kernel, stride, dilation)
    batch, places = x.shape[0], windows.shape[2 : 2 + n]
    outs, ins = weight.shape[0] // groups, weight.shape[1]
    size = ins * math.prod(kernel)
    grouped = windows.reshape(batch, groups, ins, *places, *kernel)
    order = (1, 0, *range(3, 3 + n), 2, *range(3 + n, 3 + 2 * n))
    rows = grouped.permute(order).reshape(groups, -1, size)
    columns = weight.reshape(groups, outs, size).transpose(1, 2)
    out = rows.bmm(columns).reshape(groups, batch, *places, outs)
    out = out.permute(1, 0, 2 + n, *range(2, 2 + n)).reshape(
        batch, groups * outs, *places
    )
    if bias is not None:
        out = out + bias.reshape(-1, *[1] * n)
    return out.squeeze(0) if alone else out


def _both_sides(padding: Any, kernel: Any, dilation: Any, n: int) -> list[int]:
    """Padding as `pad` takes it, the last dim first."""
    sides: list[int] = []
    for i in reversed(range(n)):
        if padding == "same":
            total = dilation[i] * (kernel[i] - 1)
            sides += [total // 2, total - total // 2]
        elif padding == "valid":
            sides += [0, 0]
        else:
            sides += [_tuple(padding, n)[i]] * 2
    return sides


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Sums of products with a kernel moving over the last dim."""
    return _convolve(input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Sums of products with a kernel moving over the last two dims."""
    return _convolve(input, weight, bias, stride, padding, dilation, groups)


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """The windows over the last two dims as columns."""
    alone = input.dim() == 3
    x = input.unsqueeze(0) if alone else input
    kernel = _tuple(kernel_size, 2)
    d = _tuple(dilation, 2)
    x = pad(x, _both_sides(padding, kernel, d, 2))
    windows = _windows(x, kernel, _tuple(stride, 2), d)
    rows, columns = windows.shape[2:4]
    out = windows.permute(0, 1, 4, 5, 2, 3).reshape(
        x.shape[0], x.shape[1] * kernel[0] * kernel[1], rows * columns
    )
    return out.squeeze(0) if alone else out


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    """The sum of windows given as columns: unfold's derivative."""
    from gradfn.autograd.backward import grad
    from gradfn.autograd.grad_mode import enable_grad, is_grad_enabled

    alone = input.dim() == 2
    x = input.unsqueeze(0) if alone else input
    size, kernel = _tuple(output_size, 2), _tuple(kernel_size, 2)
    channels = x.shape[1] // (kernel[0] * kernel[1])
    with enable_grad():
        image = x.new_zeros(x.shape[0], channels, *size).requires_grad_()
        columns = unfold(image, kernel, dilation, padding, stride)
        (out,) = grad(columns, image, x, create_graph=is_grad_enabled())
    if not is_grad_enabled():
        out = out.detach()
    return out.squeeze(0) if alone else out


def _pool_windows(
    input: Tensor,
    n: int,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    fill: Any,
) -> Any:
    kernel = _tuple(kernel, n)
    stride = kernel if stride in (None, ()) else _tuple(stride, n)
    padding, dilation = _tuple(padding, n), _tuple(dilation, n)
    sides: list[int] = []
    for i in reversed(range(n)):
        if padding[i] > kernel[i] // 2:
            raise RuntimeError("pad should be at most half of effective kernel size")
        size = input.shape[input.dim() - n + i] + 2 * padding[i]
        span = dilation[i] * (kernel[i] - 1) + 1
        more = 0
        if ceil:
            places = -(-(size - span) // stride[i]) + 1
            if (places - 1) * stride[i] >= size - padding[i]:
                places -= 1
            more = max((places - 1) * stride[i] + span - size, 0)
        sides += [padding[i], padding[i] + more]
    x = pad(input, sides, value=fill) if any(sides) else input
    return _windows(x, kernel, stride, dilation)


def _max_pool(input: Tensor, n: int, args: Any, return_indices: bool) -> Any:
    kernel, stride, padding, dilation, ceil = args
    windows = _pool_windows(input, n, kernel, stride, padding, dilation, ceil, -math.inf)
    values, best = windows.flatten(-n).max(-1)
    if not return_indices:
        return values
    shape = input.shape[input.dim() - n :]
    places = PUBLIC["arange"](math.prod(shape)).reshape(shape)
    numbers = _pool_windows(
        places, n, kernel, stride, padding, dilation, ceil, -1
    ).flatten(-n)
    found = numbers.expand(*best.shape, numbers.shape[-1]).gather(-1, best.unsqueeze(-1))
    return values, found.squeeze(-1)


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window over the last dim."""
    return _max_pool(
        input, 1, (kernel_size, stride, padding, dilation, ceil_mode), return_indices
    )


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window over the last two dims."""
    return _max_pool(
        input, 2, (kernel_size, stride, padding, dilation, ceil_mode), return_indices
    )


def _avg_pool(
    input: Tensor,
    n: int,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil: bool,
    count_pad: bool,
) -> Any:
    dims = tuple(range(-n, 0))
    windows = _pool_windows(input, n, kernel, stride, padding, 1, ceil, 0.0)
    total = windows.sum(dims)
    ones = PUBLIC["ones"](input.shape[input.dim() - n :], dtype=input.dtype)
    if count_pad and any(_tuple(padding, n)):
        inner = pad(
            ones, [p for q in reversed(_tuple(padding, n)) for p in (q, q)], value=1.0
        )
        counts = _pool_windows(inner, n, kernel, stride, 0, 1, ceil, 0.0).sum(dims)
        counts = counts[tuple(slice(m) for m in total.shape[total.dim() - n :])]
    else:
        counts = _pool_windows(ones, n, kernel, stride, padding, 1, ceil, 0.0).sum(dims)
    return total / counts


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window over the last dim."""
    return _avg_pool(input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:
    """The mean of each window over the last two dims."""
    if divisor_override is not None:
        windows = _pool_windows(input, 2, kernel_size, stride, padding, 1, ceil_mode, 0.0)
        return windows.sum((-2, -1)) / divisor_override
    return _avg_pool(input, 2, kernel_size, stride, padding, ceil_mode, count_include_pad)


def _adaptive(input: Tensor, dim: int, wanted: Any) -> Any:
    size = input.shape[dim]
    if wanted is None or wanted == size:
        return input
    parts = []
    for i in range(wanted):
        start, end = i * size // wanted, -(-(i + 1) * size // wanted)
        parts.append(input.narrow(dim, start, end - start).mean(dim, True))
    return PUBLIC["cat"](parts, dim) if parts else input.narrow(dim, 0, 0)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Any:
    """Means over as many windows as asked for."""
    return _adaptive(input, -1, _tuple(output_size, 1)[0])


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Any:
    """The same over the last two dims; None keeps a size."""
    rows, columns = (
        (output_size,) * 2 if isinstance(output_size, int) else tuple(output_size)
    )
    return _adaptive(_adaptive(input, -2, rows), -1, columns)
