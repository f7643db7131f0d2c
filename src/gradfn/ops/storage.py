"""Storage: the memory in which a tensor and its views lie, as bytes or as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradfn._device import CPU
from gradfn._dtypes import BY_NUMPY
from gradfn.ops.strided import owner
from gradfn.tensor import Tensor, method


class UntypedStorage:
    """The memory of a tensor as bytes."""

    _unit = np.dtype(np.uint8)
    device = CPU
    is_cuda = False

    def __init__(self, array: Any) -> None:
        self._owner = owner(array)

    def _values(self) -> Any:
        flat = self._owner.reshape(-1, order="A")
        return flat.view(self._unit) if flat.size else flat.astype(self._unit)

    def data_ptr(self) -> int:
        """Its address."""
        return int(self._owner.__array_interface__["data"][0])

    def nbytes(self) -> int:
        """Its size in bytes."""
        return int(self._owner.nbytes)

    def element_size(self) -> int:
        """Bytes of one element."""
        return int(self._unit.itemsize)

    def size(self) -> int:
        """The number of elements."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def __getitem__(self, at: Any) -> Any:
        got = self._values()[at]
        return type(self)(got) if isinstance(at, slice) else got.item()

    def __setitem__(self, at: Any, value: Any) -> None:
        self._values()[at] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, UntypedStorage)
        return same and self.data_ptr() == other.data_ptr()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def tolist(self) -> list[Any]:
        """All elements as Python numbers."""
        return self._values().tolist()

    def fill_(self, value: Any) -> UntypedStorage:
        """Writes one value everywhere."""
        self._values()[...] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: Any = None) -> UntypedStorage:
        """Writes the values of another storage."""
        self._values()[...] = source._values()
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return type(self)(self._values().copy())

    def is_shared(self) -> bool:
        """False: processes share nothing."""
        return False

    def cpu(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._owner)

    def _kind(self) -> str:
        return "torch.storage.UntypedStorage(device=cpu)"

    def __repr__(self) -> str:
        lines = "".join(f" {x}\n" for x in self.tolist())
        return f"{lines}[{self._kind()} of size {len(self)}]"


class TypedStorage(UntypedStorage):
    """The memory of a tensor as numbers of its dtype."""

    def __init__(self, array: Any) -> None:
        super().__init__(array)
        self._unit = array.dtype
        self.dtype = BY_NUMPY[array.dtype]

    def _kind(self) -> str:
        return f"torch.storage.TypedStorage(dtype={self.dtype}, device=cpu)"


@method
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory of this tensor and of all that share it, as bytes."""
    return UntypedStorage(self._array)


@method
def storage(self: Tensor) -> TypedStorage:
    """The memory of this tensor and of all that share it, as numbers of its dtype."""
    return TypedStorage(self._array)


@method
def _typed_storage(self: Tensor) -> TypedStorage:
    return TypedStorage(self._array)


@method
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """False: pinned memory is for copies to a GPU."""
    return False


@method
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: there is no GPU to copy it to."""
    return self


@method
def share_memory_(self: Tensor) -> Tensor:
    """The tensor itself: processes share nothing."""
    return self
