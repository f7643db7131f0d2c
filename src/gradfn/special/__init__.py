"""torch.special: functions of mathematical physics and statistics, SciPy behind them."""

from __future__ import annotations

from gradfn._guard import guard_all
from gradfn.ops.world import PUBLIC, RECORDED
from gradfn.special.bessel import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
)
from gradfn.special.normal import entr, erfcx, log_ndtr, ndtr, ndtri, xlog1py, zeta
from gradfn.special.polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)

# What gradfn has by the same name, or by another one.
digamma = psi = PUBLIC["digamma"]
erf, erfc, erfinv = PUBLIC["erf"], PUBLIC["erfc"], PUBLIC["erfinv"]
exp2, expm1, log1p = PUBLIC["exp2"], PUBLIC["expm1"], PUBLIC["log1p"]
expit = PUBLIC["sigmoid"]
gammainc, gammaincc = PUBLIC["igamma"], PUBLIC["igammac"]
gammaln, multigammaln = PUBLIC["lgamma"], PUBLIC["mvlgamma"]
i0, i0e = PUBLIC["i0"], RECORDED.special_i0e
i1, i1e = RECORDED.special_i1, RECORDED.special_i1e
log_softmax, softmax = PUBLIC["log_softmax"], PUBLIC["softmax"]
logit, logsumexp = PUBLIC["logit"], PUBLIC["logsumexp"]
polygamma, round = PUBLIC["polygamma"], PUBLIC["round"]
sinc, xlogy = PUBLIC["sinc"], PUBLIC["xlogy"]

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]

guard_all(globals(), __all__, "special_")
