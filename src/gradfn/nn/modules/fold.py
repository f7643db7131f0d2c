"""Windows as columns, and back."""

from __future__ import annotations

from gradfn.nn.modules.simple import REQUIRED, simple

__all__ = ["Fold", "Unfold"]

_WINDOW = {"kernel_size": REQUIRED, "dilation": 1, "padding": 0, "stride": 1}
Unfold = simple("Unfold", "unfold", _WINDOW)
Fold = simple("Fold", "fold", {"output_size": REQUIRED, **_WINDOW})
