"""The audits, in the order in which they run. A new one is a function and a line here."""

from __future__ import annotations

from gradfn.check.audits import (
    batch,
    contract,
    derivatives,
    forward,
    partial,
    portable,
    purity,
    shapes,
    state,
    trouble,
)

__all__ = ["AUDITS"]

AUDITS = (
    contract.gradients,
    contract.dtypes,
    derivatives.first_order,
    derivatives.linearity,
    derivatives.second_order,
    forward.forward_mode,
    batch.batches,
    purity.purity,
    purity.determinism,
    shapes.layouts,
    shapes.zero_d_and_empty,
    shapes.broadcasting,
    partial.needs_input_grad,
    partial.unused_outputs,
    purity.integers,
    purity.complex_numbers,
    trouble.trouble_spots,
    state.memory,
    state.threads,
    portable.pytorch,
)
