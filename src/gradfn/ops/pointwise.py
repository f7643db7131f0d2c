"""The rows of which each result depends on one place of each argument.

A row whose kernel is one ufunc is known to be so; these are the others. What holds of all
of them is used twice: samples of a batch may be given one rank and broadcast (func/rules),
and the map from the gradient of a result to that of an argument is diagonal, hence its
own transposed (ops/forward).
"""

from __future__ import annotations

from typing import Any, Final

NAMES = """
    _keep rsub floor_divide remainder fmod maximum minimum fmax fmin logaddexp xlogy ldexp
    heaviside addcmul addcdiv _lerp_number _lerp_tensor sgn sign floor ceil trunc round frac
    signbit rsqrt sinc logit relu nan_to_num erf erfc erfinv sigmoid lgamma digamma polygamma
    _polygamma_at lt le gt ge bitwise_and bitwise_or bitwise_xor bitwise_left_shift
    bitwise_right_shift bitwise_not isposinf isneginf isreal isclose _where _masked_fill
    _clamp _clamp_tensors _real_part _imag_part conj_physical angle complex polar clone
    _to_copy _to_constant i0 special_i1 special_i0e special_i1e igamma igammac mvlgamma
    special_ndtr special_log_ndtr special_ndtri special_erfcx special_entr special_xlog1py
    special_zeta _zeros_like _pow_number _pow_tensor _drawn _hardtanh _fill _zero _filled_with
    _flat_power _keep_unmarked frexp special_airy_ai special_bessel_j0 special_bessel_j1
    special_bessel_y0 special_bessel_y1 special_modified_bessel_i0 special_modified_bessel_i1
    special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0
    special_scaled_modified_bessel_k1 special_spherical_bessel_j0
    special_chebyshev_polynomial_t special_chebyshev_polynomial_u
    special_chebyshev_polynomial_v special_chebyshev_polynomial_w
    special_hermite_polynomial_h special_hermite_polynomial_he
    special_laguerre_polynomial_l special_legendre_polynomial_p
    special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
    special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w
    _gelu _gelu_slope
"""
POINTWISE: Final = frozenset(NAMES.split())


def is_pointwise(op: Any) -> bool:
    """Does each result of the row depend on one place of each argument?"""
    return op.ufunc is not None or op.name in POINTWISE
