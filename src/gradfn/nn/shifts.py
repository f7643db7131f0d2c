"""Convolutions with a step of 1, by shifting whole images.

Note [Shifts]
    An image among its padding is a line of numbers, in which a window's places stand at
    constant distances from its first. So for all windows at once a place of the kernel
    names one long piece of the line: columns are copies of long pieces, and what is added
    back is added to long pieces, several times faster than row by row. At the ends of
    rows the pieces also have places that are no windows: results leave them out, and
    gradients have zeros there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

Array = Any

BLOCK = 1 << 20  # bytes of columns made at a time
MANY = 1  # times as many channels: see `turned`


class Block(NamedTuple):
    """Samples, rows of places, where these begin in the line, and how long they are."""

    samples: slice
    rows: slice
    start: int
    size: int


class Line:
    """How the places of a convolution lie in the line."""

    def __init__(self, frame: Any, sizes: Any, kernel: Any) -> None:
        padded = frame.padded(sizes)
        self.steps = [math.prod(padded[i + 1 :]) for i in range(len(padded))]
        self.places = frame.places(sizes, kernel)
        self.padded, self.kernel, self.groups = padded, tuple(kernel), frame.groups
        self.inner = (slice(None), slice(None), *frame.inner(sizes))
        self.apart = [d * s for d, s in zip(frame.dilation, self.steps, strict=True)]
        self.offsets = [
            sum(k * a for k, a in zip(at, self.apart, strict=True))
            for at in np.ndindex(self.kernel)
        ]
        # From the first place of a row to the last.
        self.width = 1 + sum(
            (m - 1) * s for m, s in zip(self.places[1:], self.steps[1:], strict=True)
        )

    def laid(self, x: Array) -> Array:
        """x among its padding."""
        if x.shape[2:] == self.padded:
            return x
        out = np.zeros((*x.shape[:2], *self.padded), x.dtype)
        out[self.inner] = x
        return out

    def blocks(self, n: int, channels: int, item: int) -> Iterator[Block]:
        """All samples and rows, in pieces whose columns stay in the cache."""
        row, step = self.places[0], self.steps[0]
        size = max(channels * len(self.offsets) * step * item, 1)
        rows = min(max(BLOCK // size, 1), row)
        samples = max(BLOCK // (size * row), 1) if rows == row else 1
        for i in range(0, n, samples):
            for r in range(0, row, rows):
                end = min(r + rows, row)
                count = (end - r - 1) * step + self.width
                yield Block(slice(i, i + samples), slice(r, end), r * step, count)

    def columns(self, x: Array, block: Block) -> Array:
        """(sample, group, channel · place of the kernel, window), of lines x."""
        part = x[block.samples]
        if len(self.offsets) == 1:
            return part[..., block.start : block.start + block.size]
        step = x.itemsize
        view = np.ndarray(
            (*part.shape[:3], *self.kernel, block.size),
            x.dtype,
            x,
            block.samples.start * x.strides[0] + block.start * step,
            (*x.strides[:3], *(a * step for a in self.apart), step),
        )
        return view.reshape(*part.shape[:2], -1, block.size)

    def windows(self, line: Array, rows: int) -> Array:
        """The windows alone of a line with a number for each place, as a view."""
        step = line.itemsize
        return np.ndarray(
            (*line.shape[:-1], rows, *self.places[1:]),
            line.dtype,
            line,
            0,
            (*line.strides[:-1], *(s * step for s in self.steps)),
        )

    def widened(self, y: Array, block: Block) -> Array:
        """Numbers for windows in a line, zeros at the other places."""
        part = y[block.samples, :, :, block.rows]
        if self.places[1:] == tuple(self.padded[1:]):
            return part.reshape(*part.shape[:3], block.size)
        line = np.zeros((*part.shape[:3], block.size), y.dtype)
        self.windows(line, part.shape[3])[...] = part
        return line


line_of = lru_cache(256)(Line)


def _grouped(x: Array, groups: int) -> Array:
    return np.ascontiguousarray(x).reshape(x.shape[0], groups, x.shape[1] // groups, -1)


def convolved(image: Array, w: Array, bias: Array, line: Line) -> Array:
    """The result for an image."""
    laid = line.laid(image)
    n, outs = laid.shape[0], w.shape[0]
    x = _grouped(laid, line.groups)
    w = w.reshape(line.groups, outs // line.groups, -1)
    out = np.empty((n, line.groups, w.shape[1], *line.places), laid.dtype)
    dims = (1,) * len(line.places)
    shift = None if bias is None else bias.reshape(line.groups, -1, *dims)
    for block in line.blocks(n, laid.shape[1], laid.itemsize):
        made = np.matmul(w, line.columns(x, block))
        found = line.windows(made, block.rows.stop - block.rows.start)
        target = out[block.samples, :, :, block.rows]
        if shift is None:
            target[...] = found
        else:
            np.add(found, shift, target)
    return out.reshape(n, outs, *line.places)


def convolved_back(y: Array, w: Array, line: Line) -> Array:
    """The gradient of the image, from that of the result."""
    n, outs = y.shape[:2]
    w = w.reshape(line.groups, outs // line.groups, -1).swapaxes(1, 2)
    y = y.reshape(n, line.groups, outs // line.groups, *line.places)
    taps = len(line.offsets)
    each = w.shape[1] // taps
    image = np.zeros((n, line.groups, each, math.prod(line.padded)), y.dtype)
    for block in line.blocks(n, each * line.groups, y.itemsize):
        columns = np.matmul(w, line.widened(y, block))
        columns = columns.reshape(*columns.shape[:2], each, taps, block.size)
        for k, offset in enumerate(line.offsets):
            start = block.start + offset
            target = image[block.samples, :, :, start : start + block.size]
            np.add(target, columns[:, :, :, k], target)
    return image.reshape(n, line.groups * each, *line.padded)[line.inner]


def kernel_gradient(image: Array, y: Array, line: Line) -> Array:
    """The gradient of the kernel, from that of the result."""
    laid, (n, outs) = line.laid(image), y.shape[:2]
    x, y = _grouped(laid, line.groups), y.reshape(n, line.groups, -1, *line.places)
    each = x.shape[2]
    total = np.zeros((line.groups, each * len(line.offsets), y.shape[2]), y.dtype)
    for block in line.blocks(n, laid.shape[1], laid.itemsize):
        given = line.widened(y, block).swapaxes(-1, -2)
        total += np.matmul(line.columns(x, block), given).sum(0)
    return total.swapaxes(1, 2).reshape(outs, each, *line.kernel)


def turned(y_sizes: Any, w: Array, frame: Any, size: Any) -> tuple[Array, Any] | None:
    """The kernel and frame of the convolution that `convolved_back` is too, or None.

    It makes columns of the result's channels, and adds none; that pays unless these are
    many more than the image's.
    """
    outs, ins, *kernel = w.shape
    spans = [d * (k - 1) for d, k in zip(frame.dilation, kernel, strict=True)]
    before = [s - b for s, (b, _) in zip(spans, frame.padding, strict=True)]
    after = [
        n - m - b + s for n, m, b, s in zip(size, y_sizes, before, spans, strict=True)
    ]
    if outs > ins * frame.groups * MANY or min(*before, *after) < 0:
        return None
    dims = tuple(range(3, w.ndim + 1))
    apart = w.reshape(frame.groups, outs // frame.groups, ins, *kernel)
    swapped = np.flip(apart, dims).swapaxes(1, 2)
    padding = tuple(zip(before, after, strict=True))
    return (
        swapped.reshape(frame.groups * ins, outs // frame.groups, *kernel),
        frame._replace(padding=padding),
    )
