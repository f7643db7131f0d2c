"""New tensors, from data or filled.

Note [The dtype of data]
    Each number in nested sequences votes: Python's float for the default dtype, int for
    int64, NumPy's numbers and 0-d tensors for their own; the votes are promoted as if all
    were tensors with dimensions. So [1.5, np.float64(2)] is float64, and [1.5, 2] is the
    default dtype.
"""

from __future__ import annotations

import sys
import warnings
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np

from gradfn import _dtypes
from gradfn._device import check_device, contiguous_format
from gradfn._dtypes import BOOL, default_dtype, number_dtype, to_numpy
from gradfn._state import INFERENCE, mode, quiet
from gradfn.ops.fill import cast as cast_array
from gradfn.ops.fill import number_array
from gradfn.ops.outs import into
from gradfn.ops.rare import mark_inference
from gradfn.ops.sizes import sizes
from gradfn.ops.world import PUBLIC, RAW, RECORDED, public
from gradfn.tensor import LEAF, Size, Tensor, from_array, made_for, method, wrap

_OPTIONS = {
    "device",
    "out",
    "layout",
    "pin_memory",
    "memory_format",
    "names",
    "generator",
}


def finished(array: Any, requires_grad: Any = False, **options: Any) -> Tensor:
    """The tensor around a new array, with the options that all these functions have."""
    t = wrap(array)
    if mode() & INFERENCE:
        mark_inference(t)
    if options:
        for name in options.keys() - _OPTIONS:
            caller = sys._getframe(1).f_code.co_name
            raise TypeError(f"{caller}() got an unexpected keyword argument '{name}'")
        check_device(options.get("device"))
        out = options.get("out")
        if out is not None:
            t = into("out", out, wrap(cast_array(array, out._array.dtype)))
    if requires_grad:
        if array.dtype.kind not in "fc":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        t._grad_fn = LEAF
    return t


def kind_of(dtype: Any) -> Any:
    """NumPy's dtype for an argument `dtype`, in which `float` means float64."""
    return np.dtype(dtype) if dtype is float or dtype is complex else to_numpy(dtype)


def wanted(dtype: Any) -> Any:
    """NumPy's dtype for the argument `dtype`; the default one for None."""
    return default_dtype() if dtype is None else kind_of(dtype)


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

    For its dtype see Note [The dtype of data]. ValueError for ragged sequences and integers
    above int64, RuntimeError for what holds no numbers or some that `dtype` can't hold.
    """
    if isinstance(data, Tensor):
        data = _untaped(data)
    array = values(data, dtype)
    check_device(device)
    return finished(array, requires_grad)


def _untaped(t: Tensor) -> Any:
    _warn(
        "To copy construct from a tensor, it is recommended to use t.detach().clone(), or "
        "t.detach().clone().requires_grad_(), rather than torch.tensor(t).",
        4,
    )
    return t._array


def _warn(text: str, level: int) -> None:
    warnings.warn(text, UserWarning, stacklevel=level)


def values(data: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """A new array for `data`, in torch's dtype."""
    kind: Any = type(data)
    if dtype is None:  # ways around for what is usual and small
        if kind in _OF_PYTHON and (kind is not int or -(2**63) <= data < 2**63):
            return quiet(np.array, data, number_dtype(kind, BOOL))
        kinds = set(map(type, data)) if kind is list else set()
        if kinds == {list} and len(set(map(len, data))) == 1:
            kinds = set(map(type, chain.from_iterable(data)))
        if kinds == {float}:
            return quiet(np.array, data, default_dtype())
    if isinstance(data, np.generic) or hasattr(kind, "__array__") or _is_stack(data):
        array = from_array(np.array(data))._array
        return array if dtype is None else cast_array(array, kind_of(dtype))
    flat, shape = spread(data)
    return from_numbers(flat, dtype).reshape(shape)


_OF_PYTHON = {k: k.__name__ for k in (complex, float, int, bool)}  # the widest first


def _is_stack(data: Any) -> bool:
    """Is this a list of ndarrays that can be stacked as they are?"""
    if not isinstance(data, (list, tuple)) or not data:
        return False
    if type(data[0]) is not np.ndarray or not data[0].ndim:
        return False
    return len({(type(x), np.shape(x), getattr(x, "dtype", 0)) for x in data}) == 1


def is_sequence(x: Any) -> bool:
    """Does torch look for numbers inside of `x`?"""
    if type(x) in _OF_PYTHON or isinstance(x, (Tensor, str, bytes, dict)):
        return False
    if isinstance(x, np.ndarray):
        return x.ndim > 0
    kind = type(x)
    return kind is list or (hasattr(kind, "__getitem__") and hasattr(kind, "__len__"))


def spread(data: Any) -> tuple[list[Any], tuple[int, ...]]:
    """The numbers in nested sequences in one list, and the shape they had.

    Raises ValueError and TypeError if the nesting is uneven.
    """
    shape: list[int] = []
    first = data
    while is_sequence(first) and 0 not in shape:
        shape.append(len(first))
        first = first[0] if shape[-1] else None
    flat = [data]
    for dim, n in enumerate(shape):
        if not set(map(type, flat)) <= {list, tuple}:
            for x in flat:
                if not is_sequence(x):
                    raise TypeError(f"not a sequence at dim {dim}: {x!r}")
        for m in set(map(len, flat)) - {n}:
            raise ValueError(
                f"expected sequence of length {n} at dim {dim} (got {m}): a tensor has no "
                "ragged rows"
            )
        flat = list(chain.from_iterable(flat))
    return flat, tuple(shape)


def from_numbers(flat: list[Any], dtype: Any) -> Any:
    """Numbers (and 0-d tensors) as a 1-d array: Note [The dtype of data]."""
    kinds: Any = set(map(type, flat))
    if kinds <= _OF_PYTHON.keys():
        natural = number_dtype(next((k for k in _OF_PYTHON if k in kinds), float), BOOL)
    else:
        natural = BOOL
        for kind in {_kind(x) if hasattr(x, "dtype") else type(x) for x in flat}:
            natural = _dtypes.result_dtype(natural, False, _vote(kind), False)
        flat = [_plain(x) for x in flat]
    target = None if dtype is None else kind_of(dtype)
    if target is not None and natural.kind in "fc":  # nothing is rounded on the way
        natural = np.dtype(natural.kind + ("16" if natural.kind == "c" else "8"))
    try:
        array = quiet(np.array, flat, natural)
    except OverflowError as error:
        if target is None:
            raise ValueError(
                f"Overflow when unpacking long long: {error}; float64 holds larger numbers"
            ) from None
        array = np.array(flat)
    return array if target is None else cast(array, target)


def _vote(kind: Any) -> Any:
    """The dtype for which a type of numbers votes; an error if it is none."""
    if isinstance(kind, np.dtype):
        return from_array(np.empty(0, kind))._array.dtype
    if issubclass(kind, np.generic):
        return _vote(np.dtype(kind))
    for python in (bool, int, float, complex):
        if issubclass(kind, python):
            return number_dtype(python, BOOL)
    name = kind.__name__
    if issubclass(kind, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{name}'")
    if issubclass(kind, (list, tuple)):
        raise TypeError(f"'{name}' object cannot be interpreted as a number")
    raise RuntimeError(f"Could not infer dtype of {name}, which holds no numbers")


def cast(array: Any, target: Any) -> Any:
    """`array` in the dtype asked for.

    RuntimeError if an integer dtype can't hold a number; negative ones wrap if it is
    unsigned, as in torch.
    """
    if array.dtype.kind == "c" != target.kind:
        raise TypeError(f"must be real number, not complex, for dtype {target.name}")
    if target.kind in "iu" and array.size and array.dtype.kind != "b":
        most = np.iinfo(target).max
        least = -most - (target.kind == "i")
        low, high = array.min(), array.max()
        if not (isfinite(low) and isfinite(high) and least <= int(low) and high <= most):
            raise RuntimeError(
                f"value cannot be converted to type {target} without overflow"
            )
    return quiet(lambda: array.astype(target, copy=False))


def _plain(x: Any) -> Any:
    """A number for a tensor or array with one element; `x` itself if it is neither."""
    if type(x) in _OF_PYTHON:
        return x
    if isinstance(x, Tensor):
        if x._array.size != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars, not those of "
                f"shape {list(x.shape)}; torch.stack joins tensors"
            )
        return x._array.item()
    return x.item() if isinstance(x, (np.generic, np.ndarray)) else x


@public
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor for `data` that shares its memory where that is possible."""
    check_device(device)
    if isinstance(data, np.ndarray):
        data = from_numpy(data)
    if not isinstance(data, Tensor):
        return tensor(data, dtype=dtype)
    return data if dtype is None else data.to(wrap(np.empty(0, kind_of(dtype))).dtype)


@public
def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    copy: Any = None,
    requires_grad: Any = None,
    **more: Any,
) -> Tensor:
    """A tensor for `obj`: a tensor, an array that knows DLPack, numbers.

    It shares memory with `obj` unless `copy=True`, or the dtype or the kind of `obj`
    forbids it, which is a ValueError with `copy=False`. With `requires_grad=False` it is
    detached; else it keeps the history of a tensor.
    """
    shared = obj if isinstance(obj, Tensor) else None
    if isinstance(obj, np.ndarray):
        shared = from_numpy(obj)
    elif shared is None and hasattr(obj, "__dlpack__"):
        shared = from_dlpack(obj)
    t = as_tensor(obj if shared is None else shared, dtype, **more)
    if copy is False and t is not shared:
        what = f"a {type(obj).__name__}" if shared is None else shared.dtype
        raise ValueError(f"can't alias {what} into a tensor of {t.dtype} without a copy")
    if copy and t is shared:
        t = t.clone()
    if requires_grad is False or (requires_grad and not t.requires_grad):
        return finished(t._array, requires_grad)
    return t


@public
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor over the memory of an ndarray. TypeError for anything else."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if not ndarray.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order"
        )
    if any(s < 0 for s in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with "
            "negative strides are not currently supported: pass array.copy()"
        )
    if not ndarray.flags.writeable:
        _warn(_READONLY.format("NumPy array"), 3)
    return from_array(ndarray)


_READONLY = (
    "The given {} is not writable: what is written to this tensor goes to a copy of its "
    "memory. Copy it before to have memory that can be written."
)


@public
def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor over the memory of another library's array, through DLPack."""
    return from_array(np.from_dlpack(ext_tensor))


@public
def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, **options: Any
) -> Tensor:
    """A 1-d tensor over the memory of a bytes-like object.

    ValueError if it does not hold `count` elements after `offset` bytes, or (without
    `count`) not a whole number of them.
    """
    if memoryview(buffer).readonly:
        _warn(_READONLY.format("buffer"), 3)
    return finished(np.frombuffer(buffer, kind_of(dtype), count, offset), **options)


@public
def scalar_tensor(s: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A 0-d tensor, of the default dtype."""
    return finished(number_array(_plain(s), wanted(dtype)), **options)


# -- filled ----------------------------------------------------------------------------


def checked(args: Any) -> tuple[int, ...]:
    """Sizes; RuntimeError for negative ones."""
    shape = sizes(args)
    if shape and min(shape) < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}"
        )
    return shape


def shape_of(name: str, size: Any, options: dict[str, Any]) -> tuple[int, ...]:
    """The shape that a function was given as ints, as one sequence or as `size=`."""
    if not size and "size" not in options:
        raise TypeError(f"{name}() missing 1 required positional argument: 'size'")
    return checked(size or (options.pop("size"),))


def named(function: Any, name: str, doc: str) -> Any:
    """A function that was made for `name`, also as tracebacks and errors show it."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    return function


def like(t: Any, name: str, fill: Any, options: dict[str, Any]) -> Any:
    """`fill(shape, dtype)` in the shape of `t`, its dims in the same order in memory."""
    if not isinstance(t, Tensor):
        raise TypeError(f"{name}() must be given a Tensor, not {type(t).__name__}")
    a, kind = t._array, _kind(t, options.pop("dtype", None))
    form = options.pop("memory_format", None)
    if a.ndim < 2 or form is contiguous_format or a.flags.c_contiguous:
        return made_for(t, fill, a.shape, kind)
    order = np.argsort([-abs(n) for n in a.strides], stable=True)
    return fill(tuple(a.shape[d] for d in order), kind).transpose(np.argsort(order))


def _kind(t: Any, dtype: Any = None) -> Any:
    """NumPy's dtype of a tensor or array, or that asked for."""
    return getattr(t, "_array", t).dtype if dtype is None else kind_of(dtype)


def _fillers(name: str, fill: Any, doc: str) -> None:
    def make(*size: Any, dtype: Any = None, **options: Any) -> Tensor:
        shape = shape_of(name, size, options)
        return finished(fill(shape, wanted(dtype)), **options)

    def make_like(input: Tensor, **options: Any) -> Tensor:
        return finished(like(input, f"{name}_like", fill, options), **options)

    def make_new(self: Tensor, *size: Any, dtype: Any = None, **options: Any) -> Tensor:
        shape = shape_of(f"new_{name}", size, options)
        return finished(made_for(self, fill, shape, _kind(self, dtype)), **options)

    given = "of a shape given as ints or one sequence"
    public(named(make, name, f"{doc}, {given}; of the default dtype."))
    public(named(make_like, f"{name}_like", f"{doc}, of the tensor's shape and dtype."))
    method(named(make_new, f"new_{name}", f"{doc}, {given}; of this tensor's dtype."))


_fillers("zeros", np.zeros, "Zeros")
_fillers("ones", np.ones, "Ones")
_fillers("empty", np.empty, "A tensor that is not initialised")
RAW.zeros_like, RECORDED.zeros_like = np.zeros_like, PUBLIC["zeros_like"]
RAW.ones_like, RECORDED.ones_like = np.ones_like, PUBLIC["ones_like"]


def _filler(name: str, fill_value: Any) -> Any:
    """What makes arrays of one value. TypeError if that is no number."""
    value = _plain(fill_value)
    if not isinstance(value, (int, float, complex)):
        raise TypeError(
            f"{name}(): argument 'fill_value' must be Number, not {type(value).__name__}"
        )
    return lambda shape, kind: np.full(shape, number_array(value, kind))


@public
def full(size: Any, fill_value: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """One value everywhere; the dtype is that of the value unless it is given."""
    fill = _filler("full", fill_value)
    kind = _vote(type(_plain(fill_value))) if dtype is None else kind_of(dtype)
    return finished(fill(checked((size,)), kind), **options)


@public
def full_like(input: Tensor, fill_value: Any, **options: Any) -> Tensor:
    """One value in the tensor's shape and dtype."""
    fill = _filler("full_like", fill_value)
    return finished(like(input, "full_like", fill, options), **options)


@method
def new_full(
    self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, **options: Any
) -> Tensor:
    """One value in another shape, of this tensor's dtype."""
    fill, shape = _filler("new_full", fill_value), checked((size,))
    return finished(made_for(self, fill, shape, _kind(self, dtype)), **options)


@method
def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor from data, of this tensor's dtype."""
    data = _untaped(data) if isinstance(data, Tensor) else data
    return finished(values(data, _kind(self, dtype)), **options)


@method
def new(self: Tensor, *args: Any) -> Tensor:
    """Legacy: a tensor of this dtype, from sizes or data."""
    if len(args) == 1 and not isinstance(args[0], (int, Size)):
        return new_tensor(self, args[0])
    return self.new_empty(*(args or (0,)))


@public
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor with given strides that is not initialised. RuntimeError for bad ones."""
    shape, kind = checked((size,)), wanted(dtype)
    if len(shape) != len(stride) or any(s < 0 for s in stride):
        raise RuntimeError(
            f"dimensionality of sizes must match dimensionality of strides, and none be "
            f"negative: {list(shape)}, {list(stride)}"
        )
    length = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride))
    strides = tuple(s * kind.itemsize for s in stride)
    memory = np.empty(length, kind)
    return finished(np.ndarray(shape, kind, memory, 0, strides), **options)


@public
def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: Any = None, **options: Any
) -> Tensor:
    """A tensor that is not initialised, its dims in a given order in memory."""
    shape, order = checked((size,)), sizes((physical_layout,))
    if len(shape) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the "
            f"physical_layout; i.e. len(size) = {len(shape)} is not equal to "
            f"len(physical_layout) = {len(order)}"
        )
    for i, d in enumerate(order):
        if not 0 <= d < len(shape):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, "
                f"but got {d} at index {i})"
            )
        if d in order[:i]:
            raise RuntimeError(f"Duplicate dim not allowed: {d} in {list(order)}")
    memory = np.empty([shape[d] for d in order], wanted(dtype))
    return finished(memory.transpose(np.argsort(order)), **options)


@method
def new_empty_strided(
    self: Tensor, size: Any, stride: Any, *, dtype: Any = None, **options: Any
) -> Tensor:
    """A tensor with given strides that is not initialised, of this tensor's dtype."""
    return empty_strided(size, stride, dtype=_kind(self, dtype), **options)
