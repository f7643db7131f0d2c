"""torch.cuda.amp: the older names of torch.amp."""

from __future__ import annotations

from typing import Any

from gradfn import amp as _amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class GradScaler(_amp.GradScaler):
    """`amp.GradScaler` with settings in the older order."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(enabled=enabled)


class autocast(_amp.autocast):
    """`amp.autocast` for a GPU."""

    def __init__(
        self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype, enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """`forward` itself: see `amp.custom_fwd`."""
    return _amp.custom_fwd(fwd)


def custom_bwd(bwd: Any = None) -> Any:
    """`backward` itself: see `amp.custom_bwd`."""
    return _amp.custom_bwd(bwd)
