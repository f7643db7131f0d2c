"""Short-time Fourier transforms: spectra of the windowed pieces of a signal, and back."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradfn.graph.batched import all_values
from gradfn.ops.spectral import fft_row, irfft_row, rfft_row
from gradfn.ops.world import PUBLIC, RECORDED, public
from gradfn.tensor import Tensor, method


def _warn_of_no_window(purpose: str) -> None:
    warnings.warn(
        f"A window was not provided. A rectangular window will be applied, {purpose}. Pass "
        "window=torch.ones(n_fft) if that is what you want.",
        UserWarning,
        stacklevel=3,
    )


def _refused(name: str, x: Tensor, sizes: dict[str, Any], what: str) -> RuntimeError:
    given = ", ".join(f"{k}={v}" for k, v in sizes.items())
    return RuntimeError(f"{name}({x.dtype}{list(x.shape)}, {given}) : expected {what}")


def _check_sizes(
    name: str, x: Tensor, n_fft: int, hop: int, width: int, window: Any
) -> None:
    sizes = {"n_fft": n_fft, "hop_length": hop, "win_length": width}
    if not 0 < width <= n_fft:
        raise _refused(
            name, x, sizes, f"0 < win_length <= n_fft, but got win_length={width}"
        )
    if window is not None and window._array.shape != (width,):
        raise _refused(
            name,
            x,
            sizes,
            "a 1D window tensor of size equal to win_length, but got window with size "
            f"{list(window.shape)}",
        )


def _widened(window: Any, width: int, n_fft: int, like: Tensor) -> Any:
    """The window in the middle of n_fft points; ones where there is none."""
    if window is None:
        if width == n_fft:
            return None
        window = like.real.new_ones(width) if like.is_complex() else like.new_ones(width)
    left = (n_fft - width) // 2
    return PUBLIC["constant_pad_nd"](window, [left, n_fft - width - left])


@public
@method
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: Any = None,
    return_complex: Any = None,
    align_to_window: Any = None,
) -> Any:
    """The spectra of pieces of n_fft samples, one every hop_length: (…, frequency, piece).

    RuntimeErrors for sizes that don't fit and for signals that are not 1-d or 2-d.
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if window is None:
        _warn_of_no_window("which leaks energy into other frequencies")
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        return_complex = _complex_by_default(is_complex)
    sizes = {"n_fft": n_fft, "hop_length": hop, "win_length": width}
    if input._array.dtype.kind not in "fc":
        raise _refused(
            "stft", input, sizes, "a tensor of floating point or complex values"
        )
    if input.dim() not in (1, 2):
        raise _refused("stft", input, sizes, "a 1D or 2D tensor")
    signal = input if input.dim() == 2 else input.unsqueeze(0)
    if center:
        signal = _reflected(signal, n_fft // 2, pad_mode)
    length = signal.shape[-1]
    if not 0 < n_fft <= length:
        raise _refused("stft", signal, sizes, f"0 < n_fft <= {length}, but got {n_fft=}")
    if hop <= 0:
        raise _refused("stft", signal, sizes, f"hop_length > 0, but got hop_length={hop}")
    _check_sizes("stft", signal, n_fft, hop, width, window)
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    weights = _widened(window, width, n_fft, signal)
    pieces = signal.unfold(-1, n_fft, hop)
    pieces = pieces if weights is None else pieces * weights
    norm = "ortho" if normalized else "backward"
    spectra = (
        rfft_row(pieces, (-1,), norm) if onesided else fft_row(pieces, (-1,), norm, False)
    )
    out = spectra.transpose(1, 2)
    out = out if input.dim() == 2 else out.squeeze(0)
    return out if return_complex else PUBLIC["view_as_real"](out)


def _complex_by_default(is_complex: bool) -> bool:
    if not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will "
            "further require that return_complex=True in a future PyTorch release."
        )
    return True


def _reflected(signal: Tensor, margin: int, mode: str) -> Any:
    """With margins, so that the first piece is centred at the first sample."""
    from gradfn.nn.functional import pad

    return pad(signal.unsqueeze(0), [margin, margin], mode).squeeze(0)


@public
@method
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: Any = None,
    length: Any = None,
    return_complex: bool = False,
) -> Any:
    """The signal whose `stft` comes nearest to these spectra.

    RuntimeError for sizes that don't fit, and where the windows leave a gap.
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if window is None:
        _warn_of_no_window("which should be that which stft was given")
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft "
            f"with return_complex=True, but got {input.dtype}"
        )
    complex_window = window is not None and window.is_complex()
    if onesided is None:
        onesided = input.shape[-2] != n_fft if input.dim() > 1 else True
    _check_spectra(input, n_fft, hop, width, window, onesided)
    if return_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and complex_window:
        raise RuntimeError(
            "Complex windows are incompatible with return_complex=False: the signal is "
            "complex then"
        )
    norm = "ortho" if normalized else "backward"
    spectra = (input if input.dim() == 3 else input.unsqueeze(0)).transpose(1, 2)
    if return_complex:
        pieces = fft_row(spectra, (-1,), norm, True)
    else:
        half = spectra if onesided else spectra[..., : n_fft // 2 + 1]
        pieces = irfft_row(half, (-1,), n_fft, norm)
    weights = _widened(window, width, n_fft, pieces)
    out = _overlapped(pieces, weights, hop, n_fft // 2 if center else 0, center, length)
    return out if input.dim() == 3 else out.squeeze(0)


def _check_spectra(
    x: Tensor, n_fft: int, hop: int, width: int, window: Any, onesided: bool
) -> None:
    sizes = {"n_fft": n_fft, "hop_length": hop, "win_length": width, "onesided": onesided}
    if not x.numel():
        raise _refused("istft", x, sizes, "a tensor with elements: input cannot be empty")
    if x.dim() not in (2, 3):
        raise _refused(
            "istft", x, sizes, f"a tensor with 2 or 3 dimensions, got {x.dim()}"
        )
    bins = n_fft // 2 + 1 if onesided else n_fft
    if x.shape[-2] != bins:
        raise _refused(
            "istft",
            x,
            sizes,
            "the frequency dimension (3rd to the last) of the input tensor to match n_fft: "
            f"{bins} bins, but got {x.shape[-2]}",
        )
    if not 0 < hop <= width:
        raise _refused("istft", x, sizes, "0 < hop_length <= win_length")
    _check_sizes("istft", x, n_fft, hop, width, window)


def _overlapped(
    pieces: Any, weights: Any, hop: int, start: int, center: bool, length: Any
) -> Any:
    """The windowed pieces added where they overlap, over the sum of squared windows."""
    batch, count, n_fft = pieces.shape
    whole = n_fft + hop * (count - 1)
    weighted = pieces if weights is None else pieces * weights
    signal = RECORDED._windows_back(weighted, (batch, whole), -1, n_fft, hop)
    squares = (
        PUBLIC["ones"](n_fft, dtype=pieces.dtype)
        if weights is None
        else weights * weights
    )
    envelope = RECORDED._windows_back(
        squares.expand(count, n_fft), (whole,), -1, n_fft, hop
    )
    end = start + length if length is not None else whole - start * bool(center)
    signal, envelope = signal[..., start:end], envelope[start:end]
    least = np.abs(all_values(envelope)).min(initial=np.inf)
    if least < 1e-11:
        raise RuntimeError(
            f"istft: window overlap add min: {least}: the windows leave a gap, where the "
            "signal is not known (a smaller hop_length, or center=True, closes it)"
        )
    signal = signal / envelope
    missing = 0 if length is None else length - signal.shape[-1]
    if missing > 0:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being "
            "padded with zeros in the tail. Please check your center and hop_length "
            "settings.",
            UserWarning,
            stacklevel=4,
        )
        signal = PUBLIC["constant_pad_nd"](signal, [0, missing])
    return signal
