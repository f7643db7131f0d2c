"""The classes of old, one a dtype (`torch.LongTensor`), and `torch.cos_` and its like."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import BY_NUMPY
from gradfn.ops.late import IN_PLACE
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Size, Tensor, method, wrap


class _OfDtype(type):
    """Such a class is called to make a tensor, and knows the tensors of its dtype."""

    dtype: Any
    _kind: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance._array.dtype == cls._kind

    def __call__(cls, *data: Any, device: Any = None) -> Any:
        from gradfn._device import check_device

        check_device(device)
        kind = cls._kind
        if len(data) != 1 or isinstance(data[0], int):
            return wrap(np.empty(data or 0, kind))
        (given,) = data
        if isinstance(given, Size):
            return wrap(np.empty(given, kind))
        if isinstance(given, Tensor):
            if given._array.dtype != kind:
                raise TypeError(
                    f"{cls.__name__}() expected a tensor of {cls.dtype}, but got one of "
                    f"{given.dtype}; convert it with .to({cls.dtype})"
                )
            return given.detach()
        if not hasattr(given, "__len__"):
            raise TypeError(
                f"new(): data must be a sequence (got {type(given).__name__}); a single "
                "number is made a tensor by torch.tensor"
            )
        return wrap(np.array(given).astype(kind))


_NAMES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "Int": "int32",
    "Long": "int64",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}
for _name, _target in _NAMES.items():
    _kind = np.dtype(_target)
    _body = {
        "__module__": "torch",
        "__doc__": f"Tensors of torch.{_target}, made as by the class Tensor.",
        "dtype": BY_NUMPY[_kind],
        "_kind": _kind,
    }
    PUBLIC[f"{_name}Tensor"] = _OfDtype(f"{_name}Tensor", (), _body)


@method
def as_subclass(self: Tensor, cls: Any) -> Any:
    """The tensor as an instance of a subclass of Tensor, with memory and history."""
    from gradfn.ops.override import as_class

    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            f"as_subclass(): cls must be a subclass of Tensor, got {cls!r} of type "
            f"{type(cls).__name__}"
        )
    return as_class(self, cls)


def _function(name: str) -> Any:
    def write(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return getattr(input, name)(*args, **kwargs)  # type: ignore[no-any-return]

    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"`Tensor.{name}` as a function."
    return write


for _name in IN_PLACE.split():
    PUBLIC[f"{_name}_"] = _function(f"{_name}_")
