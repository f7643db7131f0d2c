"""torch.nn.utils.stateless, the older place of torch.func.functional_call."""

from __future__ import annotations

import warnings
from typing import Any

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """A module called with other parameters and buffers: `torch.func.functional_call`."""
    from gradfn.func import functional_call as call

    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0; use "
        "`torch.func.functional_call` instead",
        FutureWarning,
        stacklevel=2,
    )
    return call(
        module,
        parameters_and_buffers,
        args,
        kwargs,
        tie_weights=tie_weights,
        strict=strict,
    )
