"""Functions of one argument, element by element, and their derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn._dtypes import real_dtype
from gradfn.ops.constants import scalar
from gradfn.ops.elementwise import zero
from gradfn.ops.rule import alias, op
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method

# -- signs and steps -------------------------------------------------------------------


def _neg(a: Any) -> Any:
    if a.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return np.negative(a)


op("neg(self)", _neg, inplace=True, self=lambda g: -g)
alias("negative", "neg")


def _absolute_grad(g: Any, xp: Any, self: Any) -> Any:
    return g * xp.sgn(self)


op("abs(self)", np.absolute, inplace=True, self=_absolute_grad)
alias("absolute", "abs")


def _sgn_grad(g: Any, xp: Any, self: Any, result: Any) -> Any:
    # Of x/|x|: the part of g that is orthogonal to x, over |x|; and 0 at 0.
    if not xp.is_complex(self):
        return zero(g, xp)
    size = xp.abs(self)
    along = xp._real_part(g * result.conj())
    return xp._keep((g - result * along) / size, size != 0)


op("sgn(self)", np.sign, inplace=True, self=_sgn_grad)


def _sign(a: Any) -> Any:
    if a.dtype.kind == "c":
        raise RuntimeError(
            "Unlike NumPy, torch.sign doesn't support complex numbers; use torch.sgn"
        )
    return a.copy() if a.dtype.kind == "b" else np.sign(a)


op("sign(self)", _sign, inplace=True, self=zero)


def _unless_integer(kernel: Any) -> Any:
    """The kernel, but integers are left as they are."""

    def step(a: Any) -> Any:
        return a.copy() if a.dtype.kind in "iu" else kernel(a)

    return step


op("floor(self)", _unless_integer(np.floor), inplace=True, self=zero)
op("ceil(self)", _unless_integer(np.ceil), inplace=True, self=zero)
op("trunc(self)", _unless_integer(np.trunc), inplace=True, self=zero)
alias("fix", "trunc")
op(
    "round(self, *, decimals=0)",
    lambda a, decimals=0: a.copy() if a.dtype.kind in "iu" else np.round(a, decimals),
    inplace=True,
    self=zero,
)
op("frac(self)", lambda a: a - np.trunc(a), inplace=True, self=lambda g: g)
op("signbit(self)", np.signbit, takes="self")

# -- powers ----------------------------------------------------------------------------

op(
    "square(self)",
    np.square,
    inplace=True,
    node="Pow",
    self=lambda g, self: g * (self + self).conj(),
)
op(
    "reciprocal(self)",
    np.reciprocal,
    floats=True,
    inplace=True,
    self=lambda g, result: -g * (result * result).conj(),
)
op(
    "sqrt(self)",
    np.sqrt,
    floats=True,
    inplace=True,
    self=lambda g, result: g / (result + result).conj(),
)
op(
    "rsqrt(self)",
    lambda a: np.reciprocal(np.sqrt(a)),
    floats=True,
    inplace=True,
    self=lambda g, result: g * (result * result * result).conj() * -0.5,
)

# -- exponentials and logarithms -------------------------------------------------------

_LN2, _LN10 = math.log(2), math.log(10)

op(
    "exp(self)",
    np.exp,
    floats=True,
    inplace=True,
    self=lambda g, result: g * result.conj(),
)
op(
    "exp2(self)",
    np.exp2,
    floats=True,
    inplace=True,
    self=lambda g, result: g * result.conj() * _LN2,
)
op(
    "expm1(self)",
    np.expm1,
    floats=True,
    inplace=True,
    self=lambda g, result: g * (result + 1).conj(),
)
op("log(self)", np.log, floats=True, inplace=True, self=lambda g, self: g / self.conj())
op(
    "log2(self)",
    np.log2,
    floats=True,
    inplace=True,
    self=lambda g, self: g / (self.conj() * _LN2),
)
op(
    "log10(self)",
    np.log10,
    floats=True,
    inplace=True,
    self=lambda g, self: g / (self.conj() * _LN10),
)
op(
    "log1p(self)",
    np.log1p,
    floats=True,
    inplace=True,
    self=lambda g, self: g / (self + 1).conj(),
)

# -- circles and hyperbolas ------------------------------------------------------------

op(
    "sin(self)",
    np.sin,
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.cos(self).conj(),
)
op(
    "cos(self)",
    np.cos,
    floats=True,
    inplace=True,
    self=lambda g, xp, self: -g * xp.sin(self).conj(),
)
op(
    "tan(self)",
    np.tan,
    floats=True,
    inplace=True,
    self=lambda g, result: g * (result * result + 1).conj(),
)
op(
    "asin(self)",
    np.arcsin,
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.rsqrt(1 - self * self).conj(),
)
op(
    "acos(self)",
    np.arccos,
    floats=True,
    inplace=True,
    self=lambda g, xp, self: -g * xp.rsqrt(1 - self * self).conj(),
)
op(
    "atan(self)",
    np.arctan,
    floats=True,
    inplace=True,
    self=lambda g, self: g / (self * self + 1).conj(),
)
op(
    "sinh(self)",
    np.sinh,
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.cosh(self).conj(),
)
op(
    "cosh(self)",
    np.cosh,
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.sinh(self).conj(),
)
op(
    "tanh(self)",
    np.tanh,
    floats=True,
    inplace=True,
    self=lambda g, result: g - g * (result * result).conj(),
)
op(
    "asinh(self)",
    np.arcsinh,
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.rsqrt(self * self + 1).conj(),
)
op(
    "acosh(self)",
    np.arccosh,
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.rsqrt(self * self - 1).conj(),
)
op(
    "atanh(self)",
    np.arctanh,
    floats=True,
    inplace=True,
    self=lambda g, self: g / (1 - self * self).conj(),
)
for _new, _old in {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
}.items():
    alias(_new, _old)


def _sinc_grad(g: Any, xp: Any, self: Any) -> Any:
    x = self * math.pi
    slope = (x * xp.cos(x) - xp.sin(x)) / (x * self)
    return xp._keep(g * slope.conj(), self != 0)


op("sinc(self)", np.sinc, floats=True, inplace=True, self=_sinc_grad)
op(
    "deg2rad(self)",
    np.deg2rad,
    floats=True,
    inplace=True,
    self=lambda g: g * (math.pi / 180),
)
op(
    "rad2deg(self)",
    np.rad2deg,
    floats=True,
    inplace=True,
    self=lambda g: g * (180 / math.pi),
)

# -- activations -----------------------------------------------------------------------


def _sigmoid(a: Any) -> Any:
    out = np.exp(-a)
    if not out.ndim:
        return np.reciprocal(out + scalar(1.0, a.dtype))
    np.add(out, scalar(1.0, a.dtype), out=out)
    return np.reciprocal(out, out=out)


op(
    "sigmoid(self)",
    _sigmoid,
    floats=True,
    inplace=True,
    self=lambda g, result: g * ((1 - result) * result).conj(),
)


def _logit(a: Any, eps: Any = None) -> Any:
    if eps is not None:
        a = np.clip(a, eps, 1 - eps)
    return np.log(a / (1 - a))


def _logit_grad(g: Any, xp: Any, self: Any, eps: Any) -> Any:
    slope = g / (self * (1 - self))
    if eps is None:
        return slope
    return xp._keep(slope, (self >= eps) & (self <= 1 - eps))


op("logit(self, eps=None)", _logit, floats=True, inplace=True, self=_logit_grad)
op(
    "relu(self)",
    lambda a: np.maximum(a, scalar(0, a.dtype)),
    inplace=True,
    self=lambda g, xp, result: xp._keep(g, result > 0),
)


def _nan_to_num(a: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if a.dtype.kind not in "fc":
        return a.copy()
    return np.nan_to_num(a, nan=nan or 0.0, posinf=posinf, neginf=neginf)


op(
    "nan_to_num(self, nan=None, posinf=None, neginf=None)",
    _nan_to_num,
    inplace=True,
    self=lambda g, xp, self: xp._keep(g, xp.isfinite(self)),
)

# -- complex numbers -------------------------------------------------------------------

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
    return _conj.function(self) if self._array.dtype.kind == "c" else self  # type: ignore[no-any-return]


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


op("conj_physical(self)", np.conj, inplace=True, self=lambda g: g.conj())


@public
def real(input: Tensor) -> Tensor:
    """The real part, a view; the tensor itself if it is real."""
    return _real_part.function(input) if input._array.dtype.kind == "c" else input  # type: ignore[no-any-return]


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


def _dense(a: Any) -> Any:
    return a if a.flags.c_contiguous else a.copy()


def _as_complex(a: Any) -> Any:
    if a.ndim == 0 or a.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    wide = {"float16": "complex64", "float32": "complex64", "float64": "complex128"}
    return _dense(a).view(wide[a.dtype.name])[..., 0]


def _as_real(a: Any) -> Any:
    if a.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return _dense(a)[..., None].view(real_dtype(a.dtype))


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
    self=lambda g, xp: xp.view_as_complex(g),
)


def _complex(a: Any, b: Any) -> Any:
    if a.dtype != b.dtype or a.dtype.kind != "f":
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors of one dtype but got "
            f"{a.dtype} and {b.dtype}"
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

# -- from SciPy ------------------------------------------------------------------------


def special(name: str) -> Any:
    """A kernel that is scipy.special's function; ImportError says how to get SciPy."""

    def kernel(*arrays: Any) -> Any:
        try:
            import scipy.special
        except ImportError as error:
            raise ImportError(
                f"{name} needs SciPy, which is not installed: pip install gradfn[scipy]"
            ) from error
        return np.asarray(getattr(scipy.special, name)(*arrays)).astype(
            arrays[-1].dtype, copy=False
        )

    return kernel


_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

op(
    "erf(self)",
    special("erf"),
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.exp(-(self * self)) * _TWO_OVER_ROOT_PI,
)
op(
    "erfc(self)",
    special("erfc"),
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.exp(-(self * self)) * -_TWO_OVER_ROOT_PI,
)
op(
    "erfinv(self)",
    special("erfinv"),
    floats=True,
    inplace=True,
    self=lambda g, xp, result: g * xp.exp(result * result) * (1 / _TWO_OVER_ROOT_PI),
)
op(
    "lgamma(self)",
    special("gammaln"),
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.digamma(self),
)
op(
    "digamma(self)",
    special("digamma"),
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.polygamma(1, self),
)


def _polygamma(n: int, a: Any) -> Any:
    return special("polygamma")(np.asarray(n), a)


op(
    "polygamma(n, self)",
    _polygamma,
    floats=True,
    method=False,
    self=lambda g, xp, n, self: g * xp.polygamma(n + 1, self),
)


@method
def polygamma(self: Tensor, n: int) -> Any:
    """The nth derivative of digamma."""
    from gradfn.ops.world import PUBLIC

    return PUBLIC["polygamma"](n, self)


alias("special_gammaln", "lgamma", method=False)


@public
@method
def positive(self: Tensor) -> Tensor:
    """The tensor itself. RuntimeError for bools."""
    if self._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


Tensor.__neg__ = Tensor.neg  # type: ignore[attr-defined]
Tensor.__pos__ = positive  # type: ignore[attr-defined]
Tensor.__abs__ = Tensor.abs  # type: ignore[attr-defined]
