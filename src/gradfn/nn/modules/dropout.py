"""Dropout: values or channels that are left out at random while training."""

from __future__ import annotations

from typing import Any

from gradfn.nn.modules.simple import simple

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


def _checked(module: Any) -> None:
    if not 0 <= module.p <= 1:
        raise ValueError(
            f"dropout probability has to be between 0 and 1, but got {module.p}"
        )


def _dropout(name: str, function: str) -> Any:
    return simple(
        name,
        function,
        {"p": 0.5, "inplace": False},
        shown="p={self.p}, inplace={self.inplace}",
        training=True,
        finish=_checked,
    )


Dropout = _dropout("Dropout", "dropout")
Dropout1d = _dropout("Dropout1d", "dropout1d")
Dropout2d = _dropout("Dropout2d", "dropout2d")
Dropout3d = _dropout("Dropout3d", "dropout3d")
AlphaDropout = _dropout("AlphaDropout", "alpha_dropout")
FeatureAlphaDropout = _dropout("FeatureAlphaDropout", "feature_alpha_dropout")
for _made in (
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    AlphaDropout,
    FeatureAlphaDropout,
):
    _made.__module__ = __name__
