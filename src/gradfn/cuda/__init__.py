"""torch.cuda: there is none, and that is what these functions answer.

Questions get PyTorch's answers on a machine without a GPU (not available, no device, no
byte allocated); what would have to do something there raises as PyTorch does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NoReturn

from gradfn._device import device as _any_device
from gradfn._names import late as _late

_initialized = False
_MESSAGE = (
    "Torch not compiled with CUDA enabled: gradfn computes on the CPU with NumPy. Ask "
    "`torch.cuda.is_available()` before using a GPU."
)


def _constant(name: str, make: Callable[[], Any], doc: str) -> None:
    def answer(*args: Any, **kwargs: Any) -> Any:
        return make()

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = doc
    globals()[name] = answer


def _refusal(name: str) -> None:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError(f"torch.cuda.{name}(): {_MESSAGE}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises AssertionError: there is no GPU."
    globals()[name] = refuse


for _name in [
    "is_available",
    "is_initialized",
    "is_bf16_supported",
    "is_current_stream_capturing",
]:
    _constant(_name, lambda: False, "False: there is no GPU.")
for _name in [
    "device_count",
    "memory_allocated",
    "memory_reserved",
    "memory_cached",
    "max_memory_allocated",
    "max_memory_reserved",
    "max_memory_cached",
]:
    _constant(_name, lambda: 0, "0: there is no GPU.")
for _name in [
    "empty_cache",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "ipc_collect",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "reset_accumulated_memory_stats",
]:
    _constant(_name, lambda: None, "Does nothing: there is no GPU.")
for _name in ("get_arch_list", "get_rng_state_all"):
    _constant(_name, list, "An empty list: there is no GPU.")
_constant("memory_stats", OrderedDict, "An empty dict: there is no GPU.")
for _name in [
    "init",
    "current_device",
    "synchronize",
    "set_device",
    "get_device_name",
    "get_device_capability",
    "get_device_properties",
    "mem_get_info",
    "get_rng_state",
    "set_rng_state",
    "current_stream",
    "default_stream",
    "current_blas_handle",
    "memory_summary",
]:
    _refusal(_name)


def set_rng_state_all(new_states: Any) -> None:
    """Sets the state of no device; AssertionError if there is a state for one."""
    if len(list(new_states)):
        raise AssertionError(f"torch.cuda.set_rng_state_all(): {_MESSAGE}")


class device:
    """A context in which tensors would be made on a GPU. Only an index below 0 works."""

    def __init__(self, device: Any) -> None:
        index = _any_device(device).index if isinstance(device, str) else device
        self.idx = getattr(index, "index", index)

    def __enter__(self) -> None:
        if self.idx is not None and self.idx >= 0:
            raise AssertionError(f"torch.cuda.device({self.idx}): {_MESSAGE}")

    def __exit__(self, *error: object) -> None:
        return None


class _Refused:
    """What cannot be made without a GPU."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"torch.cuda.{type(self).__name__} requires CUDA support, and gradfn computes on "
            "the CPU"
        )


class Stream(_Refused):
    """A queue of work on a GPU. RuntimeError: there is none."""


class Event(_Refused):
    """A mark in a queue of work on a GPU. RuntimeError: there is none."""


class stream:
    """A context for a queue of work; without a GPU the queue is None, and it does nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


__getattr__ = _late(__name__, ("amp",))
