"""Every sample: forward mode, once and nested, agrees with reverse mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.test_samples import along, directions, loss
from samples import inputs, names_in, smooth_samples

import gradfn as torch
from gradfn.autograd.forward_ad import dual_level, make_dual, unpack_dual


def pushed(expression: str, others: Any, smooth: Any, way: Any, levels: int) -> float:
    """The derivative of that order in one direction."""

    def derive(at: dict[str, Any], order: int) -> Any:
        if not order:
            return loss(expression, {**others, **at})
        with dual_level():
            dual = {k: make_dual(v, torch.tensor(way[k])) for k, v in at.items()}
            return unpack_dual(derive(dual, order - 1)).tangent

    tangent = derive({k: torch.tensor(v) for k, v in smooth.items()}, levels)
    return 0.0 if tangent is None else float(tangent)


@pytest.mark.parametrize("expression", smooth_samples())
def test_forward_is_reverse(expression: str) -> None:
    given = {k: inputs()[k] for k in names_in(expression)}
    smooth = {k: v for k, v in given.items() if v.dtype in (np.float64, np.complex128)}
    others = {k: v for k, v in given.items() if k not in smooth}
    leaves = {k: torch.tensor(v, requires_grad=True) for k, v in smooth.items()}
    value = loss(expression, {**others, **leaves})
    if value is None or not value.requires_grad or "n" in smooth:
        return
    way = directions(smooth)
    first = torch.autograd.grad(
        value, list(leaves.values()), create_graph=True, allow_unused=True
    )
    slope = along(first, way)
    np.testing.assert_allclose(
        pushed(expression, others, smooth, way, 1), float(slope), rtol=1e-8, atol=1e-9
    )
    if not slope.requires_grad:
        return
    second = torch.autograd.grad(slope, list(leaves.values()), allow_unused=True)
    bend = float(along(second, way))
    np.testing.assert_allclose(
        pushed(expression, others, smooth, way, 2), bend, rtol=1e-7, atol=1e-8
    )
