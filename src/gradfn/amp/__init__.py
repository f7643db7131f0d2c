"""torch.amp: mixed precision, which gradfn does not do.

NumPy computes in the dtype that it is given, and float16 is slower than float32 on a CPU.
So programs that ask for mixed precision run in full: `autocast` says so once and changes
nothing, `GradScaler` scales by 1, and `custom_fwd` and `custom_bwd` hand the method back.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]


def custom_fwd(
    fwd: Any = None, *, device_type: str = "cpu", cast_inputs: Any = None
) -> Any:
    """`forward` itself: no autocast is ever on, and only then would inputs be cast."""
    return (lambda function: function) if fwd is None else fwd


def custom_bwd(bwd: Any = None, *, device_type: str = "cpu") -> Any:
    """`backward` itself: it runs as `forward` did, without autocast."""
    return (lambda function: function) if bwd is None else bwd


def is_autocast_available(device_type: str) -> bool:
    """False: there is no mixed precision."""
    return False


class autocast:
    """A context manager and decorator that leaves all dtypes as they are."""

    def __init__(
        self,
        device_type: str = "cpu",
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: Any = None,
    ) -> None:
        if enabled:
            warnings.warn(
                f"gradfn has no mixed precision: autocast({device_type!r}) changes nothing, "
                "and all is computed in the dtypes it is given. Pass enabled=False to say "
                "that this is meant.",
                UserWarning,
                stacklevel=2,
            )
        self.device, self.fast_dtype, self._enabled = device_type, dtype, False

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return plain


class GradScaler:
    """A scaler that is off, as PyTorch's is where there is no GPU: the factor is 1."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled:
            warnings.warn(
                "GradScaler is enabled, but gradfn has no mixed precision. Disabling.",
                UserWarning,
                stacklevel=2,
            )

    def is_enabled(self) -> bool:
        """False."""
        return False

    def get_scale(self) -> float:
        """1."""
        return 1.0

    def scale(self, outputs: Any) -> Any:
        """The outputs themselves."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Leaves the gradients: they were not scaled."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Leaves the factor at 1."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes nothing over."""
