"""Functions of one argument, element by element, and their derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradfn.ops.constants import at_least, scalar
from gradfn.ops.elementwise import zero
from gradfn.ops.fused import BLOCK, blocks, sigmoid_back, tanh_back
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


op("neg(self)", _neg, ufunc=np.negative, inplace=True, self=lambda g: -g)
alias("negative", "neg")


def _absolute_grad(g: Any, xp: Any, self: Any) -> Any:
    return g * xp.sgn(self)


def not_for(name: str, kinds: str, kernel: Any) -> Any:
    """The kernel, refused for dtypes of some kinds (NotImplementedError)."""

    def checked(a: Any, *args: Any, **options: Any) -> Any:
        if a.dtype.kind in kinds:
            raise NotImplementedError(f"{name} is not implemented for {a.dtype}")
        return kernel(a, *args, **options)

    return checked


op("abs(self)", np.absolute, inplace=True, self=_absolute_grad)
alias("absolute", "abs")


def _sgn_grad(g: Any, xp: Any, self: Any, result: Any) -> Any:
    # Of x/|x|: the part of g that is orthogonal to x, over |x|; and 0 at 0.
    if not xp.is_complex(self):
        return zero(g, xp)
    size = xp.abs(self)
    along = xp._real_part(g * result.conj())
    return xp._keep((g - result * along) / size, size != 0)


def _sgn(a: Any) -> Any:
    if a.dtype.kind == "b":
        return a.copy()
    out = np.sign(a)
    # nan has the sign 0; NumPy says nan.
    return np.where(a == a, out, scalar(0, a.dtype)) if a.dtype.kind == "f" else out


op("sgn(self)", _sgn, inplace=True, self=_sgn_grad)


def _sign(a: Any) -> Any:
    if a.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please "
            "use torch.sgn instead."
        )
    return _sgn(a)


op("sign(self)", _sign, inplace=True, self=zero)


def _step(name: str) -> Any:
    """NumPy's rounding; integers are left as they are."""
    ufunc = getattr(np, name)

    def step(a: Any) -> Any:
        return a.copy() if a.dtype.kind in "iu" else ufunc(a)

    return not_for(name, "bc", step)


op("floor(self)", _step("floor"), inplace=True, self=zero)
op("ceil(self)", _step("ceil"), inplace=True, self=zero)
op("trunc(self)", _step("trunc"), inplace=True, self=zero)
alias("fix", "trunc")


def _round(a: Any, decimals: int = 0) -> Any:
    if a.dtype.kind not in "iu":
        return np.round(a, decimals)
    if decimals:
        raise NotImplementedError(f"round with decimals is not implemented for {a.dtype}")
    return a.copy()


op(
    "round(self, *, decimals=0)",
    not_for("round", "bc", _round),
    overload="decimals",
    inplace=True,
    self=zero,
)
op(
    "frac(self)",
    not_for("frac", "biuc", lambda a: a - np.trunc(a)),
    inplace=True,
    self=lambda g: g,
)
op("signbit(self)", not_for("signbit", "c", np.signbit), takes="self")

# -- powers ----------------------------------------------------------------------------

op(
    "square(self)",
    lambda a: a.astype(np.int64) if a.dtype.kind == "b" else a * a,
    ufunc=np.square,
    inplace=True,
    node="Pow",
    self=lambda g, self: g * (self + self).conj(),
)
op(
    "reciprocal(self)",
    np.reciprocal,
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, result: -g * (result * result).conj(),
)
op(
    "sqrt(self)",
    np.sqrt,
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, result: g / (result + result).conj(),
)
op(
    "rsqrt(self)",
    lambda a: np.reciprocal(np.sqrt(a)),
    floats=True,
    inplace=True,
    singular=True,
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
op(
    "log(self)",
    np.log,
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, self: g / self.conj(),
)
op(
    "log2(self)",
    np.log2,
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, self: g / (self.conj() * _LN2),
)
op(
    "log10(self)",
    np.log10,
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, self: g / (self.conj() * _LN10),
)
op(
    "log1p(self)",
    np.log1p,
    floats=True,
    inplace=True,
    singular=True,
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
    singular=True,
    self=lambda g, result: g * (result * result + 1).conj(),
)
op(
    "asin(self)",
    np.arcsin,
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, xp, self: g * xp.rsqrt(1 - self * self).conj(),
)
op(
    "acos(self)",
    np.arccos,
    floats=True,
    inplace=True,
    singular=True,
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
    raw={"self": tanh_back},
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
    singular=True,
    self=lambda g, xp, self: g * xp.rsqrt(self * self - 1).conj(),
)
op(
    "atanh(self)",
    np.arctanh,
    floats=True,
    inplace=True,
    singular=True,
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
    node="Deg2Rad",
    floats=True,
    inplace=True,
    self=lambda g: g * (math.pi / 180),
)
op(
    "rad2deg(self)",
    np.rad2deg,
    node="Rad2Deg",
    floats=True,
    inplace=True,
    self=lambda g: g * (180 / math.pi),
)

# -- activations -----------------------------------------------------------------------


def _sigmoid(a: Any) -> Any:
    one, out = scalar(1.0, a.dtype), np.empty_like(a)
    if a.size < BLOCK or not a.flags.c_contiguous:
        return _logistic(a, out, one)
    for part, to in blocks(a, out):
        _logistic(part, to, one)
    return out


def _logistic(a: Any, out: Any, one: Any) -> Any:
    np.negative(a, out)
    np.exp(out, out)
    np.add(out, one, out)
    return np.divide(one, out, out)


op(
    "sigmoid(self)",
    _sigmoid,
    floats=True,
    inplace=True,
    self=lambda g, result: g * ((1 - result) * result).conj(),
    raw={"self": sigmoid_back},
)


def _logit(a: Any, eps: Any = None) -> Any:
    if eps is not None:
        a = np.clip(a, eps, 1 - eps)
    return np.log(a / (1 - a))


def _logit_grad(g: Any, xp: Any, self: Any, eps: Any) -> Any:
    slope = g / (self * (1 - self))
    if eps is None:
        undefined = xp._zeros_like(self) * math.nan  # outside of [0, 1]; a constant
        return xp._where((self < 0) | (self > 1), undefined, slope)
    return xp._keep(slope, (self >= eps) & (self <= 1 - eps))


op(
    "logit(self, eps=None)",
    _logit,
    floats=True,
    inplace=True,
    singular=True,
    self=_logit_grad,
)
op(
    "relu(self)",
    not_for("relu", "bc", lambda a: at_least(a, 0)),
    inplace=True,
    self=lambda g, xp, result: xp._keep(g, result),  # nan lets it pass, as in torch
)


def _nan_to_num(a: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if a.dtype.kind not in "fc":
        return a.copy()
    return np.nan_to_num(a, nan=nan or 0.0, posinf=posinf, neginf=neginf)


op(
    "nan_to_num(self, nan=None, posinf=None, neginf=None)",
    _nan_to_num,
    inplace=True,
    discards=True,
    self=lambda g, xp, self: xp._keep(g, xp.isfinite(self)),
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
        got = getattr(scipy.special, name)(*arrays)
        if isinstance(got, tuple):
            return got
        return np.asarray(got).astype(arrays[-1].dtype, copy=False)

    return kernel


def real_special(name: str) -> Any:
    """The same, for real numbers alone."""
    return not_for(name, "c", special(name))


def _erfinv(a: Any) -> Any:
    return np.copysign(special("erfinv")(a), a)  # SciPy loses the sign of -0.0


def _lgamma(a: Any) -> Any:
    return np.where(np.isinf(a), np.abs(a), special("gammaln")(a))


_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

op(
    "erf(self)",
    real_special("erf"),
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.exp(-(self * self)) * _TWO_OVER_ROOT_PI,
)
op(
    "erfc(self)",
    real_special("erfc"),
    floats=True,
    inplace=True,
    self=lambda g, xp, self: g * xp.exp(-(self * self)) * -_TWO_OVER_ROOT_PI,
)
op(
    "erfinv(self)",
    not_for("erfinv", "c", _erfinv),
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, xp, result: g * xp.exp(result * result) * (1 / _TWO_OVER_ROOT_PI),
)
op(
    "lgamma(self)",
    not_for("lgamma", "c", _lgamma),
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, xp, self: g * xp.digamma(self),
)
op(
    "digamma(self)",
    real_special("digamma"),
    floats=True,
    inplace=True,
    singular=True,
    self=lambda g, xp, self: g * xp.polygamma(1, self),
)


def _polygamma(n: int, a: Any) -> Any:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    out = special("polygamma")(np.asarray(n), a)
    # For n = 1 it has no limit at -inf; SciPy says inf.
    return np.where(np.isneginf(a), scalar(math.nan, a.dtype), out) if n == 1 else out


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


@method
def polygamma_(self: Tensor, n: int) -> Any:
    """`polygamma` in place."""
    return self._polygamma_at_(n)


op(
    "_polygamma_at(self, n)",
    lambda a, n: _polygamma(n, a),
    function=False,
    method=False,
    inplace=True,
    node="Polygamma",
    floats=True,
    self=lambda g, xp, n, self: g * xp.polygamma(n + 1, self),
)
alias("special_gammaln", "lgamma", method=False)


@public
@method
def positive(self: Tensor) -> Tensor:
    """The tensor itself. RuntimeError for bools."""
    if self._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


for _new, _old in {"__neg__": "neg", "__pos__": "positive", "__abs__": "abs"}.items():
    setattr(Tensor, _new, getattr(Tensor, _old))
