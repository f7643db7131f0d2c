"""New tensors, from data or filled."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradfn._device import check_device
from gradfn._dtypes import INT64, complex_dtype, default_dtype, number_dtype, to_numpy
from gradfn._state import INFERENCE, mode
from gradfn.ops.rare import mark_inference
from gradfn.ops.sizes import sizes
from gradfn.ops.world import PUBLIC, RAW, RECORDED, public
from gradfn.tensor import LEAF, Tensor, from_array, method, wrap

BOOL = np.dtype(bool)


def finished(
    array: Any,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
    out: Any = None,
    names: Any = None,
    generator: Any = None,
) -> Tensor:
    """The tensor around a new array, with the options that all these functions have."""
    if device is not None:
        check_device(device)
    t = wrap(array)
    if mode() & INFERENCE:
        mark_inference(t)
    if out is not None:
        from gradfn.ops.names import into

        t = into("out", out, t)
    if requires_grad:
        if array.dtype.kind not in "fc":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        t._grad_fn = LEAF
    return t


def wanted(dtype: Any) -> Any:
    """NumPy's dtype for the argument `dtype`; the default one for None."""
    return default_dtype() if dtype is None else to_numpy(dtype)


# -- from data -------------------------------------------------------------------------


@public
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor with a copy of `data`: a number, nested sequences of them, an ndarray.

    The dtype is that of an ndarray or NumPy number; int64, bool, the default dtype or
    its complex companion for Python's numbers. ValueError for ragged sequences,
    TypeError for what holds no numbers.
    """
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or sourceTensor.detach().clone()."
            "requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        data = data._array
    array = values(data, dtype)
    return finished(array, requires_grad, device)


def values(data: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """A new array for `data`, in torch's dtype."""
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.array(data, None if dtype is None else to_numpy(dtype))
        return from_array(array)._array
    if isinstance(data, (list, tuple)):
        data = unwrapped(data)
    try:
        array = np.array(data)
    except ValueError:
        check_ragged(data)
        raise
    if array.dtype.kind in "OUS":
        check_ragged(data)
        raise unfit(data)
    if dtype is not None:
        return cast(array, to_numpy(dtype))
    kind = array.dtype.kind
    if kind == "f" and not holds_numpy(data):
        return array.astype(default_dtype(), copy=False)
    if kind == "c" and not holds_numpy(data):
        return array.astype(complex_dtype(default_dtype()), copy=False)
    return from_array(array)._array


def cast(array: Any, target: Any) -> Any:
    """`array` in the dtype asked for; RuntimeError if an integer does not fit."""
    if target.kind == array.dtype.kind == "u" or (
        target.kind in "iu" and array.dtype.kind == "i"
    ):
        info = np.iinfo(target)
        if array.size and (
            array.max() > info.max or (target.kind == "i" and array.min() < info.min)
        ):
            raise RuntimeError(
                f"value cannot be converted to type {target} without overflow"
            )
    if array.dtype.kind == "c" and target.kind != "c":
        raise TypeError("a complex number can't be converted to a real dtype")
    return array.astype(target, copy=False)


def holds_numpy(data: Any) -> bool:
    """Is the first number in nested sequences one of NumPy's, which keeps its dtype?"""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.generic, np.ndarray))


def unwrapped(data: Any) -> Any:
    """Nested sequences with tensors as arrays."""
    if isinstance(data, Tensor):
        return data._array
    if isinstance(data, (list, tuple)):
        if data and type(data[0]) in (int, float, bool):
            return data
        return [unwrapped(x) for x in data]
    return data


def unfit(data: Any) -> TypeError:
    """The error for data of which no tensor can be made."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    if isinstance(data, str):
        return TypeError(f"new(): invalid data type '{type(data).__name__}'")
    return TypeError(f"Could not infer dtype of {type(data).__name__}")


def check_ragged(data: Any, depth: int = 0) -> None:
    """ValueError if sequences at one depth have different lengths."""
    if not isinstance(data, (list, tuple)) or not data:
        return
    first = data[0]
    if isinstance(first, (list, tuple)):
        for x in data:
            if not isinstance(x, (list, tuple)):
                raise TypeError(f"not a sequence at dim {depth + 1}: {x!r}")
            if len(x) != len(first):
                raise ValueError(
                    f"expected sequence of length {len(first)} at dim {depth + 1} (got "
                    f"{len(x)})"
                )
            check_ragged(x, depth + 1)


@public
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor for `data` that shares its memory where that is possible."""
    if device is not None:
        check_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    if isinstance(data, np.ndarray):
        t = from_numpy(data)
        return t if dtype is None else t.to(dtype)
    return tensor(data, dtype=dtype)


@public
def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor for `obj`, which shares its memory unless `copy` or a cast forbid it."""
    t = as_tensor(obj, dtype, device)
    if copy:
        t = t.clone()
    return t.detach().requires_grad_() if requires_grad else t


@public
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor over the memory of an ndarray. TypeError for anything else."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if not ndarray.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    if any(s < 0 for s in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with "
            "negative strides are not currently supported. (You can probably work around "
            "this by making a copy of your array  with array.copy().)"
        )
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support "
            "non-writable tensors. This means writing to this tensor will result in "
            "undefined behavior; here it writes to a copy. You may want to copy the array "
            "to protect its data or make it writable before converting it to a tensor.",
            UserWarning,
            stacklevel=2,
        )
    return from_array(ndarray)


@public
def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor over the memory of another library's array, through DLPack."""
    return from_array(np.from_dlpack(ext_tensor))


@public
def frombuffer(
    buffer: Any,
    *,
    dtype: Any,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """A 1-d tensor over the memory of a bytes-like object."""
    return finished(np.frombuffer(buffer, to_numpy(dtype), count, offset), requires_grad)


@public
def scalar_tensor(s: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A 0-d tensor, of the default dtype."""
    return finished(np.array(s, wanted(dtype)), **options)


# -- filled ----------------------------------------------------------------------------


@public
def zeros(*size: Any, dtype: Any = None, **options: Any) -> Tensor:
    """Zeros of a shape, given as ints or one sequence; of the default dtype."""
    size = size or (options.pop("size"),)
    return finished(np.zeros(checked(size), wanted(dtype)), **options)


@public
def ones(*size: Any, dtype: Any = None, **options: Any) -> Tensor:
    """Ones of a shape, given as ints or one sequence; of the default dtype."""
    size = size or (options.pop("size"),)
    return finished(np.ones(checked(size), wanted(dtype)), **options)


@public
def empty(*size: Any, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor that is not initialised."""
    size = size or (options.pop("size"),)
    return finished(np.empty(checked(size), wanted(dtype)), **options)


def checked(args: Any) -> tuple[int, ...]:
    """Sizes; RuntimeError for negative ones."""
    shape = sizes(args)
    for n in shape:
        if n < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {list(shape)}"
            )
    return shape


@public
def full(size: Any, fill_value: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """One value everywhere; the dtype is that of the value unless it is given."""
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    if dtype is not None:
        kind = to_numpy(dtype)
    else:
        of: Any = type(value)
        kind = number_dtype(of, BOOL)
    return finished(np.full(checked((size,)), value, kind), **options)


@public
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor with given strides that is not initialised."""
    kind = wanted(dtype)
    length = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True) if n)
    strides = tuple(s * kind.itemsize for s in stride)
    memory = np.empty(max(length, 0), kind)
    return finished(np.lib.stride_tricks.as_strided(memory, size, strides), **options)


@public
def eye(n: int, m: Any = None, *, dtype: Any = None, **options: Any) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    return finished(np.eye(n, m, dtype=wanted(dtype)), **options)


def _plain(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


@public
def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, **options: Any
) -> Tensor:
    """Numbers from `start` to before `end` in steps: int64 if all three are ints.

    RuntimeError if the step is 0 or leads away from `end`.
    """
    start, end, step = (_plain(x) for x in (start, end, step))
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    whole = all(isinstance(x, int) for x in (start, end, step))
    kind = to_numpy(dtype) if dtype is not None else INT64 if whole else default_dtype()
    n = int(np.ceil((end - start) / step))
    numbers = start + np.arange(n) * step if not whole else np.arange(start, end, step)
    return finished(numbers.astype(kind, copy=False), **options)


@public
def range(start: Any, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    """Deprecated: like `arange`, but `end` is included and the dtype the default one."""
    start, end = (0, start) if end is None else (start, end)
    n = int(np.floor((end - start) / step)) + 1
    kind = wanted(options.pop("dtype", None))
    return finished((start + np.arange(n) * step).astype(kind), **options)


@public
def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, **options: Any
) -> Tensor:
    """`steps` numbers at equal distances from `start` to `end`, both included."""
    numbers = _evenly(_plain(start), _plain(end), steps, dtype)
    return finished(numbers, **options)


def _evenly(start: Any, end: Any, steps: int, dtype: Any) -> Any:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    kind = wanted(dtype)
    if dtype is None and (isinstance(start, complex) or isinstance(end, complex)):
        kind = complex_dtype(kind)
    return np.linspace(start, end, steps).astype(kind)


@public
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    **options: Any,
) -> Tensor:
    """`base` to the powers of `linspace`."""
    powers = np.linspace(_plain(start), _plain(end), steps)
    return finished(np.power(base, powers).astype(wanted(dtype)), **options)


def _triangle_indices(name: str) -> None:
    find = getattr(np, name)

    def indices(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, **options: Any
    ) -> Tensor:
        kind = INT64 if dtype is None else to_numpy(dtype)
        return finished(np.stack(find(row, offset, col)).astype(kind), **options)

    indices.__name__ = name
    indices.__doc__ = "The row and column indices of a triangle, as two rows."
    public(indices)


_triangle_indices("tril_indices")
_triangle_indices("triu_indices")


@public
def vander(x: Tensor, N: Any = None, increasing: bool = False) -> Any:
    """Powers of a vector as the columns of a matrix, the highest first."""
    n = x.shape[-1] if N is None else N
    powers = [x**k for k in (np.arange(n) if increasing else np.arange(n)[::-1]).tolist()]
    return PUBLIC["stack"](powers, -1)


# -- like another tensor ---------------------------------------------------------------


def _like(t: Tensor, dtype: Any, fill: Any) -> Any:
    kind = t._array.dtype if dtype is None else to_numpy(dtype)
    return fill(t._array.shape, kind)


@public
def zeros_like(input: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
    """Zeros of the tensor's shape and dtype."""
    return finished(_like(input, dtype, np.zeros), **options)


@public
def ones_like(input: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
    """Ones of the tensor's shape and dtype."""
    return finished(_like(input, dtype, np.ones), **options)


@public
def empty_like(input: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor of this shape and dtype that is not initialised."""
    return finished(_like(input, dtype, np.empty), **options)


@public
def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, **options: Any
) -> Tensor:
    """One value in the tensor's shape and dtype."""
    value = _plain(fill_value)
    return finished(_like(input, dtype, lambda s, k: np.full(s, value, k)), **options)


@method
def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor from data, of this tensor's dtype."""
    if isinstance(data, Tensor):
        data = data._array
    return finished(np.array(data, _kind(self, dtype)), **options)


def _kind(t: Tensor, dtype: Any) -> Any:
    return t._array.dtype if dtype is None else to_numpy(dtype)


@method
def new_zeros(self: Tensor, *size: Any, dtype: Any = None, **options: Any) -> Tensor:
    """Zeros of another shape, of this tensor's dtype."""
    size = size or (options.pop("size"),)
    return finished(np.zeros(checked(size), _kind(self, dtype)), **options)


@method
def new_ones(self: Tensor, *size: Any, dtype: Any = None, **options: Any) -> Tensor:
    """Ones of another shape, of this tensor's dtype."""
    size = size or (options.pop("size"),)
    return finished(np.ones(checked(size), _kind(self, dtype)), **options)


@method
def new_empty(self: Tensor, *size: Any, dtype: Any = None, **options: Any) -> Tensor:
    """An uninitialised tensor of another shape, of this tensor's dtype."""
    size = size or (options.pop("size"),)
    return finished(np.empty(checked(size), _kind(self, dtype)), **options)


@method
def new_full(
    self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, **options: Any
) -> Tensor:
    """One value in another shape, of this tensor's dtype."""
    value = _plain(fill_value)
    return finished(np.full(checked((size,)), value, _kind(self, dtype)), **options)


@method
def new(self: Tensor, *args: Any) -> Tensor:
    """Legacy: a tensor of this dtype, from sizes or data."""
    if len(args) == 1 and not isinstance(args[0], int):
        return new_tensor(self, args[0])
    return new_empty(self, *(args or (0,)))


for _world, _zeros, _ones in (
    (RAW, np.zeros_like, np.ones_like),
    (RECORDED, zeros_like, ones_like),
):
    _world.zeros_like, _world.ones_like = _zeros, _ones
