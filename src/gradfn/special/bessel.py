"""Bessel functions and Airy's; as in PyTorch, they have no gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.unary import not_for, special
from gradfn.special.normal import row


def _bessel(name: str, scipy_name: str) -> Any:
    return row(f"{name}(self)", not_for(name, "c", special(scipy_name)), takes="self")


bessel_j0 = _bessel("bessel_j0", "j0")
bessel_j1 = _bessel("bessel_j1", "j1")
bessel_y0 = _bessel("bessel_y0", "y0")
bessel_y1 = _bessel("bessel_y1", "y1")
modified_bessel_i0 = _bessel("modified_bessel_i0", "i0")
modified_bessel_i1 = _bessel("modified_bessel_i1", "i1")
modified_bessel_k0 = _bessel("modified_bessel_k0", "k0")
modified_bessel_k1 = _bessel("modified_bessel_k1", "k1")
scaled_modified_bessel_k0 = _bessel("scaled_modified_bessel_k0", "k0e")
scaled_modified_bessel_k1 = _bessel("scaled_modified_bessel_k1", "k1e")


def _airy(a: Any) -> Any:
    return special("airy")(a)[0]


airy_ai = row("airy_ai(self)", not_for("airy_ai", "c", _airy), takes="self")


def _spherical(a: Any) -> Any:
    return np.where(np.isinf(a), a.dtype.type(0), np.sinc(a / np.pi)).astype(a.dtype)


spherical_bessel_j0 = row(
    "spherical_bessel_j0(self)",
    not_for("spherical_bessel_j0", "c", _spherical),
    takes="self",
)
