"""From tensors to other things: numbers, lists, NumPy arrays, text, other dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn import printing
from gradfn._device import check_device, device
from gradfn._dtypes import (
    default_dtype,
    number_dtype,
    result_dtype,
    to_numpy,
    torch_dtype,
)
from gradfn._state import GRAD, mode
from gradfn.graph.tangent import levels, tangent
from gradfn.ops.rule import op
from gradfn.ops.world import public
from gradfn.tensor import LEAF, Tensor, cell_of, method, wrap


def _copy(a: Any, memory_format: Any = None) -> Any:
    return a.copy(order="K") if memory_format is None else a.copy(order="C")


op("clone(self, *, memory_format=None)", _copy, self=lambda g: g)


def _cast(a: Any, dtype: Any) -> Any:
    return a.real.astype(dtype) if a.dtype.kind == "c" != dtype.kind else a.astype(dtype)


# The engine casts gradients back, so the formula has nothing to do.
op("_to_copy(self, dtype)", _cast, function=False, node="ToCopy", self=lambda g: g)
# Integers have no gradient, nor have booleans.
op("_to_constant(self, dtype)", _cast, function=False, takes="self")


@method
def item(self: Tensor) -> Any:
    """The one element as a Python number; RuntimeError if there are more or none."""
    array = self._array
    if array.size != 1:
        raise RuntimeError(
            f"a Tensor with {array.size} elements cannot be converted to Scalar"
        )
    return array.item()


@method
def tolist(self: Tensor) -> Any:
    """Nested lists of Python numbers."""
    return self._array.tolist()


@method
def numpy(self: Tensor, *, force: bool = False) -> Any:
    """The values as an ndarray that shares the tensor's memory.

    RuntimeError in grad mode if the tensor requires grad, unless `force`.
    """
    if mode() & GRAD and not force and self.requires_grad:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use "
            "tensor.detach().numpy() instead."
        )
    return self.detach()._array


@method
def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """The values as an ndarray, for NumPy's functions."""
    array = self.numpy()
    if dtype is None and not copy:
        return array
    if dtype is not None and array.dtype != dtype and copy is False:
        raise ValueError("a copy is needed to change the dtype, and copy=False")
    return array.astype(dtype or array.dtype, copy=bool(copy))


@method
def __dlpack__(self: Tensor, **options: Any) -> Any:
    """The values for other array libraries (BufferError if grad is required)."""
    if self.requires_grad:
        raise BufferError(
            "Can't export tensors that require gradient, use tensor.detach()"
        )
    return self.detach()._array.__dlpack__(**options)


@method
def __dlpack_device__(self: Tensor) -> Any:
    """The CPU, as DLPack says it."""
    return self._array.__dlpack_device__()


# -- other dtypes ----------------------------------------------------------------------


def cast(t: Tensor, target: np.dtype[Any], copy: bool = False) -> Tensor:
    """`t` in another dtype; itself if it has that already and `copy` is not set."""
    if t._array.dtype != target:
        if target.kind not in "fc":
            return t._to_constant(target)  # type: ignore[no-any-return]
        return t._to_copy(target)  # type: ignore[no-any-return]
    return t.clone() if copy else t


@public
def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The dtype that arithmetic with both gives; either may be a Python number.

    0-d tensors and numbers count by their category only (bool, integer, real, complex)
    beside tensors that have dims. A number is weaker than any tensor.
    """
    found: list[Any] = []
    for x in sorted((tensor1, tensor2), key=lambda x: not isinstance(x, Tensor)):
        if isinstance(x, Tensor):
            found += [x._array.dtype, not x._array.ndim]
        else:
            kind: Any = type(x)
            found = [number_dtype(kind, found[0] if found else np.dtype(bool)), True]
    return torch_dtype(result_dtype(*found) if len(found) == 4 else found[0])


@method
def to(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """The tensor in another dtype: `to(dtype)`, `to(device, dtype)`, `to(other)`.

    Returns itself if nothing changes. RuntimeError for a device other than the CPU.
    """
    for x in args:
        if isinstance(x, Tensor):
            dtype = x.dtype
        elif isinstance(x, (str, _device_type)) or x is None:
            device = x
        elif isinstance(x, bool):
            copy = copy or (x and x is not args[min(1, len(args) - 1)])
        else:
            dtype = x
    if device is not None:
        check_device(device)
    target = self._array.dtype if dtype is None else to_numpy(dtype)
    return cast(self, target, copy)


_device_type = device


def _shorthand(name: str, target: str) -> None:
    wanted = np.dtype(target)

    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        return cast(self, wanted)

    convert.__name__ = name
    convert.__doc__ = f"The tensor as torch.{target}; itself if it is that already."
    method(convert)


for _name, _target in {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "cfloat": "complex64",
    "cdouble": "complex128",
}.items():
    _shorthand(_name, _target)


@method
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another."""
    return cast(self, other._array.dtype)


@method
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself: it is on the CPU."""
    return self


@method
def cuda(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Raises RuntimeError: there is only the CPU."""
    check_device("cuda")
    return self


# -- text ------------------------------------------------------------------------------


def grad_fn_text(t: Tensor) -> str | None:
    """What stands in `grad_fn=<…>`; None if the tensor was not computed."""
    try:
        node = t.grad_fn
    except RuntimeError:  # a view made in no_grad whose base was written
        return "Invalid"
    return type(node).__name__ if node is not None else None


def tangent_text(t: Tensor) -> str | None:
    """The text of the innermost tangent, if there is one."""
    found = [tangent(t, level) for level in levels()]
    return None if not found or found[-1] is None else f"{found[-1]}"


@method
def __repr__(self: Tensor, *, tensor_contents: Any = None) -> str:
    """The values and what is not obvious about them, as torch prints it."""
    return printing.tensor_repr(
        self._array,
        grad_fn=grad_fn_text(self),
        requires_grad=self._grad_fn is LEAF,
        tangent=tangent_text(self),
        class_name="tensor" if type(self) is Tensor else type(self).__name__,
        default_dtype=default_dtype(),
    )


# -- copies ----------------------------------------------------------------------------


def rebuild(cls: type, array: Any, requires_grad: bool, state: Any) -> Tensor:
    """A leaf from what pickling kept."""
    t = wrap(array, cls)
    t._grad_fn = LEAF if requires_grad else None
    t.__dict__.update(state)
    return t


@method
def __reduce_ex__(self: Tensor, protocol: Any) -> Any:
    """Pickles values, requires_grad and attributes; not the history."""
    state = dict(self.__dict__)
    return rebuild, (type(self), self._array, self.requires_grad, state)


@method
def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf of its own, with a copy of .grad; RuntimeError for computed tensors."""
    from copy import deepcopy

    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the "
            "deepcopy protocol at the moment. Use .detach().clone() for the values."
        )
    out = wrap(self._array.copy(), type(self))
    memo[id(self)] = out
    out._grad_fn = self._grad_fn
    if self._extra is not None and self._extra.grad is not None:
        out.grad = deepcopy(self._extra.grad, memo)
    out.__dict__.update(deepcopy(self.__dict__, memo))
    return out


@method
def __copy__(self: Tensor) -> Tensor:
    """A tensor over the same memory, with the same history."""
    out = wrap(self._array, type(self))
    out._cell, out._view = cell_of(self), self._view
    out._grad_fn = self._grad_fn
    out.__dict__.update(self.__dict__)
    return out


_TYPES = {
    f"torch.{name}Tensor": target
    for name, target in {
        "Float": "float32",
        "Double": "float64",
        "Half": "float16",
        "Int": "int32",
        "Long": "int64",
        "Short": "int16",
        "Char": "int8",
        "Byte": "uint8",
        "Bool": "bool",
    }.items()
}


def in_type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The legacy name of the dtype ('torch.FloatTensor'); or the tensor in `dtype`."""
    from gradfn.graph.saved import legacy_type

    if dtype is None:
        return legacy_type(self.dtype.name)
    if hasattr(dtype, "dtype"):  # torch.LongTensor and its like
        return cast(self, to_numpy(dtype.dtype))
    if isinstance(dtype, str):
        if dtype not in _TYPES:
            raise ValueError(f"invalid type: '{dtype}'")
        return cast(self, np.dtype(_TYPES[dtype]))
    return cast(self, to_numpy(dtype))


Tensor.type = in_type  # type: ignore[attr-defined]
in_type.__name__ = "type"
