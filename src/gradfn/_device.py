"""Devices, layouts and memory formats: there is one of each."""

from __future__ import annotations

from typing import Any, Final

_KNOWN: Final = ("cpu", "cuda", "meta", "mps", "xpu", "xla", "hip", "hpu")


class device:
    """A place for tensors. Only `cpu` can be used; others can be named."""

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        name, _, number = str(type).partition(":")
        if name not in _KNOWN:
            raise RuntimeError(
                f"Expected one of {', '.join(_KNOWN)} device type at start of "
                f"device string: {type}"
            )
        self.type = name
        self.index = int(number) if number else index

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, device)
        return same and (self.type, self.index) == (other.type, other.index)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __enter__(self) -> device:
        check_device(self)
        return self

    def __exit__(self, *error: object) -> None:
        return None


CPU: Final = device("cpu")


def check_device(d: Any) -> None:
    """Raises RuntimeError unless `d` is None or the CPU."""
    if d is not None and device(d).type != "cpu":
        raise RuntimeError(
            f"gradfn computes on the CPU with NumPy; device={str(d)!r} is not to be "
            "had. Leave the device out, or use device='cpu'."
        )


class _Constant:
    """One of torch's enumerations with a single usable value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class layout(_Constant):
    """How values lie in memory: strided."""

    __slots__ = ()


class memory_format(_Constant):
    """The order of dimensions in memory."""

    __slots__ = ()


strided: Final = layout("strided")
contiguous_format: Final = memory_format("contiguous_format")
preserve_format: Final = memory_format("preserve_format")
channels_last: Final = memory_format("channels_last")
channels_last_3d: Final = memory_format("channels_last_3d")
