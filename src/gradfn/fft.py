"""torch.fft: Fourier transforms along one dim, two, or any number of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradfn._dtypes import default_dtype
from gradfn._guard import guard_all
from gradfn.ops.create import checked, finished, named, wanted
from gradfn.ops.outs import into
from gradfn.ops.sizes import sizes, wrapped
from gradfn.ops.spectral import OTHER, fft_row, irfft_row, rfft_row
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

# -- arguments -------------------------------------------------------------------------


def _floating(x: Tensor) -> Tensor:
    """Integers in the default dtype; RuntimeError for half precision."""
    kind = x._array.dtype
    if kind.kind in "biu":
        return x._to_copy(default_dtype())  # type: ignore[no-any-return]
    if kind.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {x.dtype}: use .float()")
    return x


def _norm(norm: Any) -> str:
    if norm is not None and norm not in OTHER:
        raise RuntimeError(
            f'Invalid normalization mode: "{norm}" (use "backward", "forward" or "ortho")'
        )
    return norm or "backward"


def _axes(x: Tensor, s: Any, dim: Any) -> tuple[tuple[int, ...], list[int]]:
    """The dims, counted from behind, and the size wanted along each (-1: as it is)."""
    ndim = x._array.ndim
    lengths = None if s is None else list(sizes((s,)))
    if dim is None:
        count = ndim if lengths is None else len(lengths)
        if count > ndim:
            raise RuntimeError(
                f"Got shape with {count} values but input tensor only has {ndim} dimensions."
            )
        dims = tuple(range(-count, 0))
    else:
        dims = tuple(wrapped(d, ndim) - max(ndim, 1) for d in sizes((dim,)))
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"FFT dims must be unique, but they are {list(dims)}")
    if dims and not ndim:
        raise IndexError(
            f"Dimension specified as {dims[-1]} but tensor has no dimensions"
        )
    if lengths is not None and len(lengths) != len(dims):
        raise RuntimeError(
            "When given, dim and shape arguments must have the same length, but they are "
            f"{list(dims)} and {lengths}"
        )
    return dims, [-1] * len(dims) if lengths is None else lengths


def _check_length(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _resized(x: Tensor, dims: Any, lengths: list[int]) -> Tensor:
    """Cut off or filled up with zeros along the dims. RuntimeError for sizes below 1."""
    shape = x._array.shape
    wide = [shape[d] if n == -1 else n for d, n in zip(dims, lengths, strict=True)]
    for n in wide:
        _check_length(n)
    if all(shape[d] == n for d, n in zip(dims, wide, strict=True)):
        return x
    pad = [0, 0] * -min(dims)
    for d, n in zip(dims, wide, strict=True):
        pad[-2 * d - 1] = n - shape[d]
    return PUBLIC["constant_pad_nd"](x, pad)  # type: ignore[no-any-return]


# -- one core for each kind ------------------------------------------------------------


def _complex(name: str, x: Tensor, s: Any, dim: Any, norm: str, inverse: bool) -> Any:
    dims, lengths = _axes(x, s, dim)
    return fft_row(_resized(_floating(x), dims, lengths), dims, norm, inverse)


def _fft(name: str, x: Tensor, s: Any, dim: Any, norm: str) -> Any:
    return _complex(name, x, s, dim, norm, False)


def _ifft(name: str, x: Tensor, s: Any, dim: Any, norm: str) -> Any:
    return _complex(name, x, s, dim, norm, True)


def _some_axes(name: str, x: Tensor, s: Any, dim: Any) -> Any:
    dims, lengths = _axes(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return dims, lengths


def _rfft(name: str, x: Tensor, s: Any, dim: Any, norm: str) -> Any:
    if x._array.dtype.kind == "c":
        raise RuntimeError(f"{name} expects a real input tensor, but got {x.dtype}")
    dims, lengths = _some_axes(name, x, s, dim)
    return rfft_row(_resized(_floating(x), dims, lengths), dims, norm)


def _irfft(name: str, x: Tensor, s: Any, dim: Any, norm: str) -> Any:
    dims, lengths = _some_axes(name, x, s, dim)
    n = lengths[-1]
    n = 2 * (x._array.shape[dims[-1]] - 1) if n == -1 else n
    _check_length(n)
    half = _resized(_floating(x), dims, [*lengths[:-1], n // 2 + 1])
    return irfft_row(half, dims, n, norm)


def _hfft(name: str, x: Tensor, s: Any, dim: Any, norm: str) -> Any:
    return _irfft(name, x.conj(), s, dim, OTHER[norm])


def _ihfft(name: str, x: Tensor, s: Any, dim: Any, norm: str) -> Any:
    return _rfft(name, x, s, dim, OTHER[norm]).conj()


# -- the three functions of each kind --------------------------------------------------


def _family(name: str, core: Any, what: str) -> list[Callable[..., Any]]:
    def run(called: str, x: Any, s: Any, dim: Any, norm: Any, out: Any) -> Any:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"fft_{called}(): argument 'input' (position 1) must be Tensor, not "
                f"{type(x).__name__}"
            )
        result = core(called, x, s, dim, _norm(norm))
        return result if out is None else into(called, out, result)

    def one(
        input: Tensor, n: Any = None, dim: int = -1, norm: Any = None, *, out: Any = None
    ) -> Any:
        return run(name, input, None if n is None else (n,), (dim,), norm, out)

    def two(
        input: Tensor,
        s: Any = None,
        dim: Any = (-2, -1),
        norm: Any = None,
        *,
        out: Any = None,
    ) -> Any:
        return run(f"{name}2", input, s, dim, norm, out)

    def many(
        input: Tensor,
        s: Any = None,
        dim: Any = None,
        norm: Any = None,
        *,
        out: Any = None,
    ) -> Any:
        return run(f"{name}n", input, s, dim, norm, out)

    along = {"": "along one dim", "2": "along two dims", "n": "along all dims or some"}
    made = zip((one, two, many), along.items(), strict=True)
    return [named(f, name + end, f"{what}, {where}.") for f, (end, where) in made]


fft, fft2, fftn = _family("fft", _fft, "The Fourier transform")
ifft, ifft2, ifftn = _family("ifft", _ifft, "The inverse Fourier transform")
rfft, rfft2, rfftn = _family(
    "rfft", _rfft, "The Fourier transform of real numbers, half of it"
)
irfft, irfft2, irfftn = _family("irfft", _irfft, "The inverse of rfft, real")
hfft, hfft2, hfftn = _family(
    "hfft", _hfft, "The Fourier transform of half of a Hermitian signal, real"
)
ihfft, ihfft2, ihfftn = _family("ihfft", _ihfft, "The inverse of hfft, half of it")

# -- frequencies and their order -------------------------------------------------------


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, **options: Any) -> Tensor:
    """The frequencies of a transform of `n` samples that are `d` apart."""
    (n,) = checked(((n,),))
    values = np.fft.fftfreq(n, d) if n else np.empty(0)
    return finished(values.astype(wanted(dtype)), **options)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, **options: Any) -> Tensor:
    """The frequencies of `rfft` of `n` samples that are `d` apart."""
    (n,) = checked(((n,),))
    values = np.fft.rfftfreq(n, d) if n else np.zeros(1)
    return finished(values.astype(wanted(dtype)), **options)


def _shift(input: Tensor, dim: Any, half: Callable[[int], int]) -> Any:
    shape = input._array.shape
    dims = range(len(shape)) if dim is None else [wrapped(d, len(shape)) for d in dim]
    return input.roll([half(shape[d]) for d in dims], list(dims))


def fftshift(input: Tensor, dim: Any = None) -> Any:
    """Moves frequency 0 from the front to the middle."""
    dim = (dim,) if isinstance(dim, int) else dim
    return _shift(input, dim, lambda n: n // 2)


def ifftshift(input: Tensor, dim: Any = None) -> Any:
    """Moves frequency 0 from the middle to the front."""
    dim = (dim,) if isinstance(dim, int) else dim
    return _shift(input, dim, lambda n: (n + 1) // 2)


guard_all(globals(), __all__, "fft_")
