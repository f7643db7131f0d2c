"""Complex numbers: their parts, conjugates, angles, and views as pairs of reals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn._dtypes import complex_dtype
from gradfn.ops.elementwise import zero
from gradfn.ops.rule import op
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method

_conj = op(
    "_conj(self)",
    np.conj,
    function=False,
    method=False,
    node="Conj",
    self=lambda g: g.conj(),
)
_real_part = op(
    "_real_part(self)",
    lambda a: a.real,
    function=False,
    method=False,
    view=True,
    node="Real",
    self=lambda g: g,
)
_imag_part = op(
    "_imag_part(self)",
    lambda a: a.imag,
    function=False,
    method=False,
    view=True,
    node="Imag",
    self=lambda g: g * 1j,
)


@public
@method
def conj(self: Tensor) -> Tensor:
    """The complex conjugate; the tensor itself if it is real."""
    return _conj.function(self) if self._array.dtype.kind == "c" else self


@public
@method
def resolve_conj(self: Tensor) -> Tensor:
    """The tensor itself: conjugation is not put off here."""
    return self


@public
@method
def resolve_neg(self: Tensor) -> Tensor:
    """The tensor itself: negation is not put off here."""
    return self


op(
    "conj_physical(self)",
    lambda a: np.conj(a) if a.dtype.kind == "c" else a.copy(),
    inplace=True,
    self=lambda g: g.conj(),
)


@public
def real(input: Tensor) -> Tensor:
    """The real part, a view; the tensor itself if it is real."""
    return _real_part.function(input) if input._array.dtype.kind == "c" else input


@public
def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view. RuntimeError if the tensor is real."""
    if input._array.dtype.kind != "c":
        raise RuntimeError(
            f"imag is not implemented for tensors with non-complex dtypes ({input.dtype})"
        )
    return _imag_part.function(input)  # type: ignore[no-any-return]


def _set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value)


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value)


Tensor.real = property(real, _set_real)  # type: ignore[attr-defined]
Tensor.imag = property(imag, _set_imag)  # type: ignore[attr-defined]


def _angle_grad(g: Any, xp: Any, self: Any) -> Any:
    if not xp.is_complex(self):
        return zero(g, xp)
    size = xp.abs(self)
    return xp._keep(g * (self * 1j) / (size * size), size != 0)


def _angle(a: Any) -> Any:
    if a.dtype.kind == "c":
        return np.angle(a)
    return np.where(np.isnan(a), a, np.where(a < 0, math.pi, 0.0)).astype(a.dtype)


op("angle(self)", _angle, floats=True, self=_angle_grad)


def _as_complex(a: Any) -> Any:
    if a.ndim == 0 or a.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if a.dtype.name not in ("float32", "float64"):
        raise RuntimeError(
            "view_as_complex is only supported for float and double tensors, but got a "
            f"tensor of scalar type: {a.dtype}"
        )
    if a.strides[-1] != a.itemsize and a.size:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    return a.view(complex_dtype(a.dtype))[..., 0]


def _as_real(a: Any) -> Any:
    if a.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    real = a.real
    strides = (*a.strides, real.itemsize)
    return np.lib.stride_tricks.as_strided(real, (*a.shape, 2), strides)


op(
    "view_as_complex(self)",
    _as_complex,
    view=True,
    method=False,
    self=lambda g, xp: xp.view_as_real(g),
)
op(
    "view_as_real(self)",
    _as_real,
    view=True,
    method=False,
    self=lambda g, xp: xp.complex(g[..., 0], g[..., 1]),
)


def _complex(a: Any, b: Any) -> Any:
    if a.dtype != b.dtype or a.dtype.kind != "f":
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors of one dtype but "
            f"got {a.dtype} and {b.dtype}"
        )
    return a + b * np.complex64(1j).astype(np.result_type(a.dtype, np.complex64))


op(
    "complex(real, imag)",
    _complex,
    method=False,
    real=lambda g, xp: xp._real_part(g),
    imag=lambda g, xp: xp._imag_part(g),
)
op(
    "polar(abs, angle)",
    lambda a, angle: _complex(a * np.cos(angle), a * np.sin(angle)),
    method=False,
    abs=lambda g, xp, angle: xp._real_part(g * xp.complex(xp.cos(angle), -xp.sin(angle))),
    angle=lambda g, xp, result: xp._real_part(g * (result * 1j).conj()),
)
