"""Convolutions and their transposes, fold and unfold: windows as columns of a matrix.

Note [Three convolutions]
    y = conv(x, w) ties three arrays together, and each of three rows gives one from the
    two others: `_conv` the places y, `_conv_back` the input x (its gradient, which is what
    conv_transpose computes), `_conv_kernel` the kernel w (its gradient). All are linear in
    both arguments, and the derivatives of each are the two others, so that every order of
    derivative is a convolution again.

Note [Columns]
    The windows of x are a view of (sample, group, channel, *offset, *place). Copied, it is a
    matrix whose product with the kernel is the result as it lies in memory. The copy is
    made in blocks that stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gradfn.nn.arguments import batched, by_rank, several
from gradfn.nn.shifts import convolved, convolved_back, kernel_gradient, line_of, turned
from gradfn.ops.rule import op
from gradfn.tensor import Tensor

BLOCK = 1 << 21  # bytes of columns made at a time

Array = Any


class Frame(NamedTuple):
    """How windows lie: for each dim a step, zeros before and after, and a spacing."""

    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]  # less than 0 after: that much is not reached
    dilation: tuple[int, ...]
    groups: int = 1

    @property
    def is_dense(self) -> bool:
        """Is there a window at each place? Then Note [Shifts] holds."""
        return all(s == 1 for s in self.stride)

    def places(self, sizes: Any, kernel: Any) -> tuple[int, ...]:
        """The number of windows along each dim."""
        found = []
        for n, k, s, (before, after), d in zip(
            sizes, kernel, self.stride, self.padding, self.dilation, strict=True
        ):
            found.append((n + before + after - d * (k - 1) - 1) // s + 1)
        return tuple(found)

    def inner(self, sizes: Any) -> tuple[Any, ...]:
        """Where what is padded lies within its padding."""
        return tuple(
            slice(before, before + n)
            for n, (before, _) in zip(sizes, self.padding, strict=True)
        )

    def padded(self, sizes: Any) -> tuple[int, ...]:
        """The sizes with the padding."""
        return tuple(
            n + before + max(after, 0)
            for n, (before, after) in zip(sizes, self.padding, strict=True)
        )


def _laid(x: Array, frame: Frame) -> Array:
    """x among zeros."""
    sizes = frame.padded(x.shape[2:])
    if sizes == x.shape[2:]:
        return x
    out = np.zeros((*x.shape[:2], *sizes), x.dtype)
    out[(..., *frame.inner(x.shape[2:]))] = x
    return out


def _columns(x: Array, kernel: Any, places: Any, frame: Frame) -> Array:
    """The view of all windows: Note [Columns]."""
    n, channels = x.shape[:2]
    per_group = channels // frame.groups
    by_sample, by_channel, *steps = x.strides
    strides = (
        by_sample,
        by_channel * per_group,
        by_channel,
        *(s * d for s, d in zip(steps, frame.dilation, strict=True)),
        *(s * t for s, t in zip(steps, frame.stride, strict=True)),
    )
    shape = (n, frame.groups, per_group, *kernel, *places)
    return as_strided(x, shape, strides, writeable=False)


def _blocks(n: int, rows: int, size: int) -> Iterator[tuple[slice, slice]]:
    """Slices of samples and of rows of places, for rows with columns of `size` bytes."""
    whole = slice(0, rows)
    if n * rows * size <= BLOCK:
        yield slice(0, n), whole
    elif rows * size <= BLOCK:
        step = BLOCK // (rows * size)
        for i in range(0, n, step):
            yield slice(i, min(i + step, n)), whole
    else:
        step = max(BLOCK // size, 1)
        for i in range(n):
            for r in range(0, rows, step):
                yield slice(i, i + 1), slice(r, min(r + step, rows))


def _each_block(n: int, places: Any, channels: int, kernel: Any, item: int) -> Any:
    return _blocks(
        n, places[0], channels * math.prod(kernel) * math.prod(places[1:]) * item
    )


def _conv(x: Array, w: Array, bias: Array, frame: Frame) -> Array:
    outs, _, *kernel = w.shape
    if frame.is_dense and x.size:
        return convolved(x, w, bias, line_of(frame, x.shape[2:], tuple(kernel)))
    groups, n = frame.groups, x.shape[0]
    places = frame.places(x.shape[2:], kernel)
    columns = _columns(_laid(x, frame), kernel, places, frame)
    w = w.reshape(groups, outs // groups, -1)
    out = np.empty((n, groups, outs // groups, *places), x.dtype)
    first = 3 + len(kernel)
    for some, rows in _each_block(n, places, x.shape[1], kernel, x.itemsize):
        part = columns[(some, *(slice(None),) * (first - 1), rows)]
        target = out[some, :, :, rows]
        count = math.prod(target.shape[3:])
        shape = (*part.shape[:2], w.shape[2], count)
        np.matmul(w, part.reshape(shape), out=target.reshape(*target.shape[:3], count))
    out = out.reshape(n, outs, *places)
    if bias is not None:
        out += bias.reshape(-1, *(1,) * len(places))
    return out


def _conv_back(y: Array, w: Array, bias: Array, frame: Frame, size: Any) -> Array:
    outs, ins, *kernel = w.shape
    groups, n, places = frame.groups, y.shape[0], y.shape[2:]
    if frame.is_dense and y.size:
        other = turned(places, w, frame, size)
        if other is not None:
            return _conv(y, other[0], bias, other[1])
        out = convolved_back(y, w, line_of(frame, size, tuple(kernel)))
        return out if bias is None else out + bias.reshape(-1, *(1,) * len(size))
    w = w.reshape(groups, outs // groups, -1).swapaxes(1, 2)
    y = y.reshape(n, groups, outs // groups, *places)
    image = np.zeros((n, groups, ins, *frame.padded(size)), y.dtype)
    for some, rows in _each_block(n, places, ins * groups, kernel, y.itemsize):
        part = y[some, :, :, rows]
        columns = np.matmul(w, part.reshape(*part.shape[:3], -1))
        shape = (*part.shape[:2], ins, *kernel, *part.shape[3:])
        _add_columns(image[some], columns.reshape(shape), frame, rows.start)
    out = image.reshape(n, ins * groups, *image.shape[3:])[(..., *frame.inner(size))]
    return out if bias is None else out + bias.reshape(-1, *(1,) * len(places))


def _add_columns(image: Array, columns: Array, frame: Frame, row: int = 0) -> None:
    """Adds windows, given as columns from a row of places on, to where they lie."""
    n = len(frame.stride)
    places = columns.shape[-n:]
    for offset in np.ndindex(columns.shape[3 : 3 + n]):
        where: list[Any] = [...]
        for i, (k, d, s, m) in enumerate(
            zip(offset, frame.dilation, frame.stride, places, strict=True)
        ):
            start = k * d + (0 if i else row * s)
            where.append(slice(start, start + (m - 1) * s + 1, s))
        target = image[tuple(where)]
        np.add(target, columns[(slice(None),) * 3 + offset], out=target)


def _conv_kernel(x: Array, y: Array, frame: Frame, kernel: Any) -> Array:
    if frame.is_dense and x.size:
        return kernel_gradient(x, y, line_of(frame, x.shape[2:], tuple(kernel)))
    groups, n, places = frame.groups, x.shape[0], y.shape[2:]
    outs, dims = y.shape[1], len(places)
    columns = _columns(_laid(x, frame), kernel, places, frame)
    y = y.reshape(n, groups, outs // groups, *places)
    total = np.zeros(
        (groups, x.shape[1] // groups * math.prod(kernel), outs // groups), x.dtype
    )
    behind = tuple(range(1, 3 + dims))  # the samples stand before the places
    for some, rows in _each_block(n, places, x.shape[1], kernel, x.itemsize):
        part = columns[(some, *(slice(None),) * (2 + dims), rows)]
        last = tuple(range(3 + dims, part.ndim))
        matrix = part.transpose(*behind, 0, *last).reshape(groups, total.shape[1], -1)
        given = y[some, :, :, rows]
        order = (1, 0, *range(3, given.ndim), 2)
        total += matrix @ given.transpose(order).reshape(groups, -1, outs // groups)
    return total.swapaxes(1, 2).reshape(outs, x.shape[1] // groups, *kernel)


def _bias_gradient(g: Any, xp: Any) -> Any:
    return xp.sum(g, (0, *range(2, g.ndim)))


_hidden = {"function": False, "method": False}
_conv_row = op(
    "_conv(self, weight, bias=None, frame=None)",
    _conv,
    **_hidden,
    node="Convolution",
    self=lambda g, xp, weight, frame, self_shape: xp._conv_back(
        g, weight.conj(), None, frame, tuple(self_shape[2:])
    ),
    weight=lambda g, xp, self, frame, weight_shape: xp._conv_kernel(
        self.conj(), g, frame, tuple(weight_shape[2:])
    ),
    bias=_bias_gradient,
).function
_back_row = op(
    "_conv_back(self, weight, bias=None, frame=None, size=None)",
    _conv_back,
    **_hidden,
    node="Convolution",
    self=lambda g, xp, weight, frame: xp._conv(g, weight.conj(), None, frame),
    weight=lambda g, xp, self, frame, weight_shape: xp._conv_kernel(
        g, self.conj(), frame, tuple(weight_shape[2:])
    ),
    bias=_bias_gradient,
).function
op(
    "_conv_kernel(self, other, frame, sizes)",
    _conv_kernel,
    **_hidden,
    linear=True,
    node="ConvolutionBackward",
    self=lambda g, xp, other, frame, self_shape: xp._conv_back(
        other.conj(), g, None, frame, tuple(self_shape[2:])
    ),
    other=lambda g, xp, self, frame: xp._conv(self.conj(), g, None, frame),
)

# -- torch's functions ---------------------------------------------------------------------


def _check(input: Tensor, weight: Tensor, bias: Any, channels: int, n: int) -> None:
    name = f"conv{n}d"
    if weight.dim() != n + 2:
        raise RuntimeError(
            f"{name}(): expected a weight with {n + 2} dims, but got one of size "
            f"{list(weight.shape)}"
        )
    for what, t in (("weight", weight), ("bias", bias)):
        if t is not None and t.dtype is not input.dtype:
            raise RuntimeError(
                f"Input type ({input.dtype}) and {what} type ({t.dtype}) should be the same"
            )
    if bias is not None and tuple(bias.shape) != (channels,):
        raise RuntimeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional "
            f"with {channels} elements, but got bias of size {list(bias.shape)} instead"
        )


def _steps(stride: Any, dilation: Any, groups: int, n: int) -> tuple[Any, Any]:
    stride, dilation = several(stride, n, "stride"), several(dilation, n, "dilation")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) <= 0:
        raise RuntimeError("dilation should be greater than zero")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    return stride, dilation


def _sides(padding: Any, stride: Any, dilation: Any, kernel: Any) -> Any:
    """The zeros before and after, of a number for both or "same" or "valid"."""
    n = len(kernel)
    if padding == "valid":
        return ((0, 0),) * n
    if padding == "same":
        if any(s != 1 for s in stride):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple((t // 2, t - t // 2) for t in total)
    if isinstance(padding, str):
        raise RuntimeError(
            f"Invalid padding string: {padding!r}; should be 'same' or 'valid'"
        )
    both = several(padding, n, "padding")
    if min(both) < 0:
        raise RuntimeError("negative padding is not supported")
    return tuple((p, p) for p in both)


def _by(sizes: Any) -> str:
    return " x ".join(str(n) for n in sizes)


def _convolve(
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Any:
    x, alone = batched(input, n, f"conv{n}d")
    _check(input, weight, bias, weight.shape[0], n)
    kernel = tuple(weight.shape[2:])
    stride, dilation = _steps(stride, dilation, groups, n)
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected "
            f"input{list(input.shape)} to have {weight.shape[1] * groups} channels, but got "
            f"{x.shape[1]} channels instead"
        )
    frame = Frame(stride, _sides(padding, stride, dilation, kernel), dilation, groups)
    if min(frame.places(x.shape[2:], kernel)) < 1:
        spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
        raise RuntimeError(
            "Calculated padded input size per channel: "
            f"({_by(frame.padded(x.shape[2:]))}). Kernel size: ({_by(spans)}). Kernel size "
            "can't be greater than actual input size"
        )
    out = _conv_row(x, weight, bias, frame)
    return out.squeeze(0) if alone else out


def _transpose(
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    more: Any,
    groups: int,
    dilation: Any,
) -> Any:
    x, alone = batched(input, n, f"conv_transpose{n}d")
    _check(input, weight, bias, weight.shape[1] * groups, n)
    kernel = tuple(weight.shape[2:])
    stride, dilation = _steps(stride, dilation, groups, n)
    if x.shape[1] != weight.shape[0] or weight.shape[0] % groups:
        raise RuntimeError(
            f"Given transposed=True, weight of size {list(weight.shape)}, expected "
            f"input{list(input.shape)} to have {weight.shape[0]} channels, but got "
            f"{x.shape[1]} channels instead"
        )
    sides, sizes = [], []
    wanted = zip(
        x.shape[2:], kernel, stride, several(padding, n), several(more, n), dilation,
        strict=True,
    )  # fmt: skip
    for size, k, s, p, extra, d in wanted:
        if extra >= max(s, d) or extra < 0:
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                f"output_padding: {extra}, stride: {s}, dilation: {d}"
            )
        sizes.append((size - 1) * s - 2 * p + d * (k - 1) + 1 + extra)
        sides.append((p, p - extra))
    if min(sizes) < 1:
        raise RuntimeError(
            f"Given input size per channel: ({_by(x.shape[2:])}). Calculated output size "
            f"per channel: ({_by(sizes)}). Output size is too small"
        )
    frame = Frame(stride, tuple(sides), dilation, groups)
    out = _back_row(x, weight, bias, frame, tuple(sizes))
    return out.squeeze(0) if alone else out


def _make_conv(n: int) -> Any:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        """Sums of products with a kernel moving over the last {n} dims."""
        return _convolve(n, input, weight, bias, stride, padding, dilation, groups)

    return conv


conv1d, conv2d, conv3d = by_rank("conv{n}d", _make_conv)


def _make_conv_transpose(n: int) -> Any:
    def conv_transpose(
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        """The kernel times each element, added up where it lies: conv{n}d's gradient."""
        return _transpose(
            n, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    return conv_transpose


conv_transpose1d, conv_transpose2d, conv_transpose3d = by_rank(
    "conv_transpose{n}d", _make_conv_transpose
)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Any:
    """conv1d of (time, batch, channel) with a kernel of (time, in, out)."""
    out = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return out.permute(2, 0, 1)


# -- fold and unfold -----------------------------------------------------------------------


def _im2col(x: Array, kernel: Any, frame: Frame) -> Array:
    places = frame.places(x.shape[2:], kernel)
    columns = _columns(_laid(x, frame), kernel, places, frame)
    return columns.reshape(x.shape[0], x.shape[1] * math.prod(kernel), math.prod(places))


def _col2im(x: Array, kernel: Any, frame: Frame, size: Any) -> Array:
    places = frame.places(size, kernel)
    channels = x.shape[1] // math.prod(kernel)
    image = np.zeros((x.shape[0], 1, channels, *frame.padded(size)), x.dtype)
    _add_columns(image, x.reshape(x.shape[0], 1, channels, *kernel, *places), frame)
    return image[(slice(None), 0, ..., *frame.inner(size))]


_im2col_row = op(
    "_im2col(self, window, frame)",
    _im2col,
    **_hidden,
    linear=True,
    node="Im2Col",
    self=lambda g, xp, window, frame, self_shape: xp._col2im(
        g, window, frame, tuple(self_shape[2:])
    ),
).function
_col2im_row = op(
    "_col2im(self, window, frame, size)",
    _col2im,
    **_hidden,
    linear=True,
    node="Col2Im",
    self=lambda g, xp, window, frame: xp._im2col(g, window, frame),
).function


def _fold_frame(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    kernel = several(kernel_size, 2)
    stride, dilation = _steps(stride, dilation, 1, 2)
    return kernel, Frame(stride, _sides(padding, stride, dilation, kernel), dilation)


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """The windows over the last two dims as columns."""
    x, alone = batched(input, 2, "unfold")
    kernel, frame = _fold_frame(kernel_size, dilation, padding, stride)
    places = frame.places(x.shape[2:], kernel)
    if min(places) < 1:
        raise RuntimeError(
            f"Given input with spatial size ({_by(x.shape[2:])}), kernel_size="
            f"({_by(kernel)}), calculated shape of the array of sliding blocks as "
            f"({_by(places)}), but its components must be at least one."
        )
    out = _im2col_row(x, kernel, frame)
    return out.squeeze(0) if alone else out


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    """The sum of windows given as columns: unfold's gradient."""
    alone = input.dim() == 2
    if input.dim() not in (2, 3):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size, "
            f"but got: {list(input.shape)}"
        )
    x = input.unsqueeze(0) if alone else input
    kernel, frame = _fold_frame(kernel_size, dilation, padding, stride)
    size = several(output_size, 2, "output_size")
    if x.shape[1] % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of "
            f"kernel_size, but got input.size(1)={x.shape[1]} and kernel_size={kernel}."
        )
    places = frame.places(size, kernel)
    if min(places) < 1 or x.shape[2] != math.prod(places):
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={frame.dilation}, "
            f"padding={padding}, stride={frame.stride}, expected size of input's dimension "
            f"2 to match the calculated number of sliding blocks {_by(places)} = "
            f"{math.prod(places)}, but got input.size(2)={x.shape[2]}."
        )
    out = _col2im_row(x, kernel, frame, size)
    return out.squeeze(0) if alone else out
