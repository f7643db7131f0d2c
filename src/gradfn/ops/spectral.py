"""Discrete Fourier transforms of complex and real arrays: what torch.fft is made of.

Note [Adjoints of Fourier transforms]
    The matrix F of a transform is symmetric, so its adjoint is conj(F): the inverse
    transform, with the factor of the norm on the other side. A real transform keeps half
    of the frequencies, since the others are their conjugates. So `_irfft` counts those in
    between (neither 0 nor the middle of an even number) twice and takes the real part,
    and its adjoint is `_rfft`, those in between doubled; that of `_rfft` is `_irfft` of
    these halved.
    Dims are counted from behind, so that samples may have a batch in front.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.rule import op

# The norm that has the factor of `norm` on the other transform.
OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _along(transform: Any, a: Any, dims: Any, norm: Any) -> Any:
    for d in dims:
        a = transform(a, axis=d, norm=norm)
    return a


def _fft(a: Any, dims: Any, norm: Any, inverse: bool) -> Any:
    if not dims:
        return a + np.complex64(0)
    return _along(np.fft.ifft if inverse else np.fft.fft, a, dims, norm)


def _rfft(a: Any, dims: Any, norm: Any) -> Any:
    half = np.fft.rfft(a, axis=dims[-1], norm=norm)
    return _along(np.fft.fft, half, dims[:-1], norm)


def _irfft(a: Any, dims: Any, n: int, norm: Any) -> Any:
    half = _along(np.fft.ifft, a, dims[:-1], norm)
    return np.fft.irfft(half, n, axis=dims[-1], norm=norm)


def _between(n: int, dim: int, factor: float) -> Any:
    """`factor` for the frequencies that stand for two, 1 for the others."""
    weights = np.full((n // 2 + 1, *(1,) * (-dim - 1)), factor, np.float32)
    weights[0] = 1
    if not n % 2:
        weights[-1] = 1
    return weights


def _rfft_grad(g: Any, xp: Any, self_shape: Any, dims: Any, norm: Any) -> Any:
    n = self_shape[dims[-1]]
    return xp._irfft(g * _between(n, dims[-1], 0.5), dims, n, OTHER[norm])


def _row(signature: str, kernel: Any, node: str, grad: Any) -> Any:
    return op(
        signature,
        kernel,
        function=False,
        method=False,
        linear=True,
        node=node,
        self=grad,
    ).function


fft_row = _row(
    "_fft(self, dims, norm, inverse)",
    _fft,
    "FftC2C",
    lambda g, xp, dims, norm, inverse: xp._fft(g, dims, OTHER[norm], not inverse),
)
rfft_row = _row("_rfft(self, dims, norm)", _rfft, "FftR2C", _rfft_grad)
irfft_row = _row(
    "_irfft(self, dims, n, norm)",
    _irfft,
    "FftC2R",
    lambda g, xp, dims, n, norm: (
        xp._rfft(g, dims, OTHER[norm]) * _between(n, dims[-1], 2.0)
    ),
)
