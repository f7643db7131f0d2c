"""The largest element of windows, where it stands, and back from there.

Note [Maxima]
    The largest element of a window in several dims is found dim by dim, which is less work
    than going through all its places. Which place it has is computed when somebody asks:
    for the indices, or in the backward pass. Of equal ones the first counts, in the order
    of memory; NaN is larger than everything, and the last NaN counts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn.graph.batched import all_values
from gradfn.nn.arguments import by_rank, several
from gradfn.nn.pooling import check_empty, check_rank, output_sizes, windows_of
from gradfn.nn.taps import Windows, adaptive, at_places, is_whole
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

Array = Any


def _lowest(dtype: Any) -> Any:
    return -math.inf if dtype.kind not in "iu" else np.iinfo(dtype).min


def _max_windows(x: Array, windows: Any) -> Array:
    """The largest element of each window."""
    n = len(windows)
    for i, w in enumerate(windows):
        x = _max_along(x, w, i - n)
    return x


def _max_along(x: Array, w: Windows, axis: int) -> Array:
    taps = sorted(w.taps, key=lambda t: not is_whole(t.to, w.count))
    if taps and is_whole(taps[0].to, w.count):
        out = at_places(x, axis, taps[0].at).copy()
        taps = taps[1:]
    else:
        shape = list(x.shape)
        shape[axis] = w.count
        out = np.full(shape, _lowest(x.dtype), x.dtype)
    for t in taps:
        part = at_places(x, axis, t.at)
        if isinstance(t.to, slice):
            target = at_places(out, axis, t.to)
            np.maximum(target, part, out=target)
        else:
            where = (..., t.to, *(slice(None),) * (-1 - axis))
            out[where] = np.maximum(out[where], part)
    return out


def _max_places(x: Array, windows: Any) -> Array:
    """Where the largest element stands, counted through the last dims."""
    n, step, places = len(windows), 1, None
    sizes = x.shape[x.ndim - n :]
    for i in reversed(range(n)):
        x, places = _place_along(x, places, windows[i], i - n, step)
        step *= sizes[i]
    return places


def _place_along(x: Array, places: Any, w: Windows, axis: int, step: int) -> Any:
    after = (1,) * (-1 - axis)
    shape = list(x.shape)
    shape[axis] = w.count
    best = np.full(shape, _lowest(x.dtype), x.dtype)
    first = w.first.reshape(-1, *after) * step
    if places is not None:
        first = first + at_places(places, axis, w.first)
    found = np.empty(shape, np.int64)
    found[...] = first
    has_nan = x.dtype.kind == "f" and bool(np.isnan(x.max(initial=-math.inf)))
    for t in w.taps:
        part = at_places(x, axis, t.at)
        to = (..., t.to, *(slice(None),) * len(after))
        there, known = best[to], found[to]  # views, or copies to be written back
        better = part > there
        if has_nan:
            better |= part != part
        at = np.arange(x.shape[axis])[t.at].reshape(-1, *after) * step
        if places is not None:
            at = at + at_places(places, axis, t.at)
        np.copyto(there, part, where=better)
        np.copyto(known, at, where=better)
        if not isinstance(t.to, slice):
            best[to], found[to] = there, known
    return best, found


def _put_places(x: Array, index: Array, shape: Any, last: bool) -> Array:
    """Zeros of `shape` with x added at places; `last`: written, the last one stays."""
    n, size = len(shape), math.prod(shape)
    lead = x.shape[: x.ndim - n]
    rows = math.prod(lead)
    flat = index.reshape(rows, math.prod(index.shape[index.ndim - n :]))
    at = (flat + np.arange(rows)[:, None] * size).reshape(-1)
    if not last and x.dtype.kind == "f":
        out = np.bincount(at, x.reshape(-1), rows * size).astype(x.dtype, copy=False)
    else:
        out = np.zeros(rows * size, x.dtype)
        if last:
            out[at] = x.reshape(-1)
        else:
            np.add.at(out, at, x.reshape(-1))
    return out.reshape(*lead, *shape)


def _at_places(x: Array, index: Array, n: int) -> Array:
    lead = x.shape[: x.ndim - n]
    rows = math.prod(lead)
    flat = index.reshape(rows, math.prod(index.shape[index.ndim - n :]))
    found = np.take_along_axis(x.reshape(rows, math.prod(x.shape[x.ndim - n :])), flat, 1)
    return found.reshape(index.shape)


_hidden = {"function": False, "method": False}
_max_row = op(
    "_max_windows(self, windows)",
    _max_windows,
    **_hidden,
    node="MaxPool",
    self=lambda g, xp, self, self_shape, windows: xp._put_places(
        g,
        xp._max_places(self, windows),
        tuple(self_shape[len(self_shape) - len(windows) :]),
        all(w.apart for w in windows),
    ),
).function
_places_row = op(
    "_max_places(self, windows)", _max_places, **_hidden, takes="self"
).function
_put_row = op(
    "_put_places(self, index, shape, last)",
    _put_places,
    **_hidden,
    takes="index",
    node="MaxUnpool",
    self=lambda g, xp, index, shape: xp._at_places(g, index, len(shape)),
).function
op(
    "_at_places(self, index, n)",
    _at_places,
    **_hidden,
    takes="index",
    node="MaxPoolBackward",
    self=lambda g, xp, index, n, self_shape: xp._put_places(
        g, index, tuple(self_shape[len(self_shape) - n :]), False
    ),
)


def _largest(input: Tensor, windows: Any, return_indices: bool) -> Any:
    values = _max_row(input, tuple(windows))
    return (values, _places_row(input, tuple(windows))) if return_indices else values


def _pool(
    n: int,
    input: Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    return_indices: bool,
) -> Any:
    name = f"max_pool{n}d"
    check_rank(input, n, name)
    sizes = tuple(input.shape[-n:])
    windows = windows_of(sizes, kernel, stride, padding, dilation, ceil, name)
    check_empty(input if input.dim() == n + 2 else input.unsqueeze(0), name)
    return _largest(input, windows, return_indices)


def _make_max_pool(n: int) -> Any:
    def max_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The largest element of each window over the last {n} dims."""
        return _pool(
            n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
        )

    return max_pool


max_pool1d, max_pool2d, max_pool3d = by_rank("max_pool{n}d", _make_max_pool)


# -- as many windows as asked for ----------------------------------------------------------


def _adaptive(n: int, input: Tensor, output_size: Any, return_indices: bool) -> Any:
    check_rank(input, n, f"adaptive_max_pool{n}d")
    check_empty(input, f"adaptive_max_pool{n}d")
    wanted = output_sizes(input, output_size, n)
    windows = [adaptive(m, w) for m, w in zip(input.shape[-n:], wanted, strict=True)]
    return _largest(input, windows, return_indices)


def _make_adaptive_max_pool(n: int) -> Any:
    def adaptive_max_pool(
        input: Tensor, output_size: Any, return_indices: bool = False
    ) -> Any:
        """The largest elements of as many windows over the last {n} dims as asked for."""
        return _adaptive(n, input, output_size, return_indices)

    return adaptive_max_pool


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = by_rank(
    "adaptive_max_pool{n}d", _make_adaptive_max_pool
)


# -- windows drawn by lot ------------------------------------------------------------------


def _fractional(
    n: int,
    input: Tensor,
    kernel: Any,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Any,
) -> Any:
    name = f"fractional_max_pool{n}d"
    check_rank(input, n, name)
    kernel, sizes = several(kernel, n), input.shape[-n:]
    if output_size is None and output_ratio is None:
        raise ValueError(
            f"{name} requires specifying either an output_size or output_ratio"
        )
    if output_size is None:
        ratio = (
            output_ratio
            if isinstance(output_ratio, (tuple, list))
            else [output_ratio] * n
        )
        output_size = [int(m * r) for m, r in zip(sizes, ratio, strict=True)]
    wanted = several(output_size, n, "output_size")
    lead = (*(1,) * (n + 2 - input.dim()), *input.shape[:-n])
    if samples is None:
        samples = PUBLIC["rand"](*lead, n, dtype=input.dtype)
    for k, m, w in zip(kernel, sizes, wanted, strict=True):
        if w + k - 1 > m:
            raise RuntimeError(
                f"{name}(): pool size ({k}) and output size ({w}) are too large for input "
                f"of size {m}"
            )
    drawn = samples.detach().numpy().reshape(-1, n)
    rows = input.reshape(-1, *sizes)
    outs = []
    for i in range(rows.shape[0]):
        windows = [
            _drawn(m, w, k, drawn[i, d])
            for d, (m, w, k) in enumerate(zip(sizes, wanted, kernel, strict=True))
        ]
        outs.append(_largest(rows[i], windows, True))
    shape = (*input.shape[:-n], *wanted)
    values = PUBLIC["stack"]([v for v, _ in outs]).reshape(shape)
    if not return_indices:
        return values
    return values, PUBLIC["stack"]([p for _, p in outs]).reshape(shape)


def _drawn(size: int, count: int, kernel: int, sample: Any) -> Windows:
    """Windows at steps that are now longer, now shorter; the last one ends the dim."""
    starts = np.full(count, size - kernel)
    if count > 1:
        alpha = sample.dtype.type((size - kernel) / (count - 1))
        i = np.arange(count - 1, dtype=sample.dtype)
        starts[:-1] = np.trunc((i + sample) * alpha) - np.trunc(sample * alpha)
    return Windows(size, starts, starts + kernel)


def _make_fractional_max_pool(n: int) -> Any:
    def fractional_max_pool(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        """Maxima of windows whose steps are drawn by lot (Graham, 2014), a draw a channel."""
        return _fractional(
            n,
            input,
            kernel_size,
            output_size,
            output_ratio,
            return_indices,
            _random_samples,
        )

    return fractional_max_pool


fractional_max_pool2d, fractional_max_pool3d = by_rank(
    "fractional_max_pool{n}d", _make_fractional_max_pool, (2, 3)
)


# -- back ------------------------------------------------------------------------------------


def _unpool(
    n: int,
    input: Tensor,
    indices: Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    output_size: Any,
) -> Any:
    check_rank(input, n, f"max_unpool{n}d")
    if input.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor "
            f"({list(input.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    if indices.dtype is not PUBLIC["tensor"](0).dtype:
        raise RuntimeError(
            f"elements in indices should be type int64 but got: {indices.dtype}"
        )
    kernel = several(kernel, n)
    stride = kernel if stride in (None, (), []) else several(stride, n, "stride")
    padding = several(padding, n, "padding")
    sizes = [
        (m - 1) * s - 2 * p + k
        for m, s, p, k in zip(input.shape[-n:], stride, padding, kernel, strict=True)
    ]
    if output_size is not None:
        given = tuple(output_size)[-n:]
        for m, s, w in zip(sizes, stride, given, strict=True):
            if not m - s < w < m + s:
                raise ValueError(
                    f"invalid output_size {tuple(output_size)} (each must lie within one "
                    f"stride {stride} of the default {tuple(sizes)})"
                )
        sizes = list(given)
    count = math.prod(sizes)
    if indices.numel():
        values = all_values(indices)
        low, high = int(values.min()), int(values.max())
        if low < 0 or high >= count:
            raise RuntimeError(
                f"Found an invalid max index: {high if high >= count else low} (output "
                f"volumes are of size {' x '.join(str(m) for m in sizes)})"
            )
    return _put_row(input, indices, tuple(sizes), True)


def _make_max_unpool(n: int) -> Any:
    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Any:
        """The elements back at their indices, zeros between: what undoes max_pool{n}d."""
        return _unpool(n, input, indices, kernel_size, stride, padding, output_size)

    return max_unpool


max_unpool1d, max_unpool2d, max_unpool3d = by_rank("max_unpool{n}d", _make_max_unpool)
