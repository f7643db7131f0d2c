"""Covariances and correlations of the rows of a matrix."""

from __future__ import annotations

import warnings
from typing import Any

from gradfn.graph.batched import all_values
from gradfn.ops.reduce import kind_name
from gradfn.ops.world import PUBLIC, public
from gradfn.tensor import Tensor, method


def _weights(name: str, w: Any, n: int, kinds: str) -> None:
    """RuntimeErrors for weights that do not fit `n` observations."""
    if w._array.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{w._array.ndim} dimensions"
        )
    if w._array.dtype.kind not in kinds:
        wanted = "integral" if kinds == "iu" else "floating point"
        raise RuntimeError(
            f"cov(): expected {name} to have {wanted} dtype but got {name} with "
            f"{kind_name(w._array.dtype)} dtype"
        )
    if w._array.size != n:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in "
            f"the input but got {w._array.size} != {n}"
        )
    if w._array.size and all_values(w).min() < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")


@public
@method
def cov(
    input: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None
) -> Any:
    """The covariances of the rows, whose columns are observations.

    `fweights` says how often each was made, `aweights` how much it counts. RuntimeErrors.
    """
    if input._array.ndim > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input._array.ndim} dimensions"
        )
    if input._array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input.reshape(1, -1) if input._array.ndim < 2 else input
    n = rows.shape[1]
    weights = None
    if fweights is not None:
        _weights("fweights", fweights, n, "iu")
        weights = fweights
    if aweights is not None:
        _weights("aweights", aweights, n, "f")
        weights = aweights if weights is None else weights * aweights
    total = n if weights is None else weights.sum()
    if weights is not None and n and not all_values(total).any():
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    if weights is None:
        mean = rows.sum(1, keepdim=True) / total
    else:
        mean = (rows * weights).sum(1, keepdim=True) / total
    norm: Any
    if aweights is not None and correction:
        extra = (
            (weights * aweights).sum() if fweights is not None else (aweights**2).sum()
        )
        norm = total - correction * extra / total
    else:
        norm = total - correction
    low = (
        norm <= 0 if not isinstance(norm, Tensor) else bool((all_values(norm) <= 0).all())
    )
    if low:
        warnings.warn("cov(): degrees of freedom is <= 0", UserWarning, stacklevel=2)
        norm = 0 if not isinstance(norm, Tensor) else norm.clamp(min=0)
    apart = rows - mean
    turned = (apart if weights is None else apart * weights).mH
    if not isinstance(norm, Tensor):
        norm = PUBLIC["tensor"](float(norm), dtype=apart.abs().dtype)
    whole = apart @ turned.to(apart.dtype) / norm
    return whole.squeeze()


@public
@method
def corrcoef(input: Tensor) -> Any:
    """The correlation coefficients of the rows, whose columns are observations."""
    if input._array.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input "
            f"with {input._array.ndim} dimensions"
        )
    c = cov(input)
    if not c._array.ndim:
        return c / c
    spread = c.diagonal().real.sqrt() if c.is_complex() else c.diagonal().sqrt()
    c = c / spread.unsqueeze(1) / spread.unsqueeze(0)
    if c.is_complex():
        return PUBLIC["complex"](c.real.clamp(-1, 1), c.imag.clamp(-1, 1))
    return c.clamp(-1, 1)
