"""Normalisation of each channel of each sample."""

from __future__ import annotations

from typing import Any

from gradfn.nn import functional as F
from gradfn.nn.modules.batchnorm import _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase):
    """What instance normalisations share."""

    _spatial = 1

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features,
            eps,
            momentum,
            affine,
            track_running_stats,
            device,
            dtype,
            bias=bias,
        )

    def forward(self, input: Any) -> Any:
        """`nn.functional.instance_norm` of the input, with or without a batch."""
        alone, batched = self._spatial + 1, self._spatial + 2
        if input.dim() not in (alone, batched):
            raise ValueError(
                f"expected {alone}D or {batched}D input (got {input.dim()}D input)"
            )
        x = input.unsqueeze(0) if input.dim() == alone else input
        if self.affine and x.shape[1] != self.num_features:
            raise ValueError(
                f"expected input's size at dim=1 to match num_features ({self.num_features}),"
                f" but got: {x.shape[1]}."
            )
        out = F.instance_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out.squeeze(0) if input.dim() == alone else out


class InstanceNorm1d(_InstanceNorm):
    """Normalisation of (N, C, L) or (C, L)."""


class InstanceNorm2d(_InstanceNorm):
    """Normalisation of (N, C, H, W) or (C, H, W)."""

    _spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalisation of (N, C, D, H, W) or (C, D, H, W)."""

    _spatial = 3
