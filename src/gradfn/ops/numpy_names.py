"""What NumPy's functions are in ops: name, arguments and conventions."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

FUNCTIONS: dict[str, Callable[..., Any]] = {}
_MISSING: Any = np._NoValue


def _tensor(x: Any) -> Any:
    return x if isinstance(x, Tensor) else PUBLIC["as_tensor"](x)


def _given(**options: Any) -> dict[str, Any]:
    """The options that are not left out."""
    return {k: v for k, v in options.items() if v is not _MISSING and v is not None}


def named(*names: str) -> Callable[[Any], Any]:
    """Registers a function under names of NumPy's."""

    def register(function: Any) -> Any:
        for name in names:
            FUNCTIONS[name] = function
        return function

    return register


# -- the same, but for the names of arguments --------------------------------------------


def _same(numpy_name: str, name: str = "", path: str = "") -> None:
    def call(*args: Any, **kwargs: Any) -> Any:
        own = name or numpy_name.rpartition(".")[2]
        space = vars(import_module(f"gradfn.{path}")) if path else PUBLIC
        op = space.get(own) or getattr(Tensor, own, None)
        if op is None:
            return NotImplemented
        renamed = {"axis": "dim", "keepdims": "keepdim"}
        more = {renamed.get(k, k): v for k, v in kwargs.items() if v is not _MISSING}
        return op(*args, **more)

    FUNCTIONS[numpy_name] = call


for _name in """
    vstack hstack dstack column_stack tensordot outer kron inner vdot diag tril triu flipud
    fliplr rot90 zeros_like ones_like empty_like isclose allclose real angle atleast_1d
    atleast_2d atleast_3d count_nonzero nan_to_num broadcast_to stack searchsorted
    take_along_axis moveaxis swapaxes cross roll einsum isreal trapezoid where
""".split():  # noqa: SIM905
    _same(_name)
_same("concatenate", "cat")
_same("take_along_axis", "take_along_dim")
for _name in """
    inv det solve cholesky eigh eigvalsh eig eigvals qr slogdet pinv matrix_power multi_dot
    tensorsolve tensorinv matrix_rank svdvals
""".split():  # noqa: SIM905
    _same(f"linalg.{_name}", path="linalg")
for _name in """
    fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift
    ifftshift
""".split():  # noqa: SIM905
    _same(f"fft.{_name}", path="fft")


# -- reductions --------------------------------------------------------------------------


def _reduction(numpy_name: str, name: str, *others: str) -> None:
    def reduce(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        **more: Any,
    ) -> Any:
        if dtype is not None or out is not None or _given(**more):
            return NotImplemented
        x = _tensor(a)
        keep = keepdims is not _MISSING and bool(keepdims)
        if name == "prod" and axis is None:
            return x.prod() if not keep else x.prod().reshape([1] * x.dim())
        dims = tuple(range(x.dim())) if axis is None else axis
        return getattr(x, name)(dims, keepdim=keep)

    named(numpy_name, *others)(reduce)


_reduction("sum", "sum")
_reduction("mean", "mean")
_reduction("prod", "prod")
_reduction("nansum", "nansum")
_reduction("nanmean", "nanmean")


def _extreme(numpy_name: str, name: str, *others: str) -> None:
    def reduce(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any
    ) -> Any:
        if out is not None or _given(**more):
            return NotImplemented
        x = _tensor(a)
        keep = keepdims is not _MISSING and bool(keepdims)
        if axis is None and not keep and name in ("argmax", "argmin"):
            return getattr(x, name)()
        dims = tuple(range(x.dim())) if axis is None else axis
        return getattr(x, name)(dims, keepdim=keep)

    named(numpy_name, *others)(reduce)


for _name, _own, *_others in (
    ("max", "amax", "amax"),
    ("min", "amin", "amin"),
    ("all", "all"),
    ("any", "any"),
    ("argmax", "argmax"),
    ("argmin", "argmin"),
):
    _extreme(_name, _own, *_others)


def _spread(name: str) -> None:
    def reduce(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: Any = False,
        **more: Any,
    ) -> Any:
        if dtype is not None or out is not None or _given(**more):
            return NotImplemented
        keep = keepdims is not _MISSING and bool(keepdims)
        return getattr(_tensor(a), name)(axis, correction=ddof, keepdim=keep)

    FUNCTIONS[name] = reduce


_spread("std")
_spread("var")


@named("median")
def _median(a: Any, axis: Any = None, out: Any = None, **options: Any) -> Any:
    if out is not None or options or isinstance(axis, tuple):
        return NotImplemented
    return _tensor(a).quantile(0.5, axis)  # the mean of the two in the middle


def _scan(name: str) -> None:
    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if dtype is not None or out is not None:
            return NotImplemented
        x = _tensor(a)
        return getattr(x.flatten() if axis is None else x, name)(axis or 0)

    FUNCTIONS[name] = scan


_scan("cumsum")
_scan("cumprod")

# -- shapes ------------------------------------------------------------------------------

FUNCTIONS["shape"] = lambda a: tuple(a.shape)
FUNCTIONS["ndim"] = lambda a: a.dim()
FUNCTIONS["size"] = lambda a, axis=None: a.numel() if axis is None else a.shape[axis]
FUNCTIONS["ravel"] = lambda a, order="C": a.flatten() if order == "C" else NotImplemented
FUNCTIONS["copy"] = lambda a, order="K", subok=False: a.clone()
FUNCTIONS["imag"] = lambda a: a.imag if a.is_complex() else PUBLIC["zeros_like"](a)
FUNCTIONS["iscomplexobj"] = lambda a: a.is_complex()
FUNCTIONS["isrealobj"] = lambda a: not a.is_complex()
FUNCTIONS["expand_dims"] = lambda a, axis: _expanded(a, axis)
FUNCTIONS["array_equal"] = lambda a, b, equal_nan=False: (
    NotImplemented if equal_nan else PUBLIC["equal"](_tensor(a), _tensor(b))
)
FUNCTIONS["trace"] = lambda a, *args, **kw: (
    NotImplemented if args or kw or a.dim() != 2 else a.trace()
)


def _expanded(a: Any, axis: Any) -> Any:
    axes = axis if isinstance(axis, tuple) else (axis,)
    n = a.dim() + len(axes)
    for d in sorted(d % n for d in axes):
        a = a.unsqueeze(d)
    return a


@named("transpose", "permute_dims")
def _transposed(a: Any, axes: Any = None) -> Any:
    return a.permute(tuple(reversed(range(a.dim()))) if axes is None else tuple(axes))


FUNCTIONS["matrix_transpose"] = lambda a: a.mT
FUNCTIONS["linalg.matrix_transpose"] = lambda a: a.mT


@named("reshape")
def _reshape(a: Any, shape: Any = None, order: str = "C", **options: Any) -> Any:
    if order != "C" or options or shape is None:
        return NotImplemented
    return a.reshape(shape)


@named("squeeze")
def _squeeze(a: Any, axis: Any = None) -> Any:
    return a.squeeze() if axis is None else a.squeeze(axis)


@named("flip")
def _flip(m: Any, axis: Any = None) -> Any:
    dims = tuple(range(m.dim())) if axis is None else axis
    return m.flip(dims if isinstance(dims, tuple) else (dims,))


@named("tile")
def _tile(A: Any, reps: Any) -> Any:
    return _tensor(A).tile(reps if isinstance(reps, (tuple, list)) else (reps,))


@named("repeat")
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    return a.repeat_interleave(repeats, axis)


@named("split", "array_split")
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    at = indices_or_sections
    return list(ary.tensor_split(at if isinstance(at, int) else tuple(at), axis))


@named("diagonal")
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return a.diagonal(offset, axis1, axis2)


@named("take")
def _take(
    a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
) -> Any:
    if out is not None or mode != "raise":
        return NotImplemented
    index = _tensor(indices)
    if axis is None:
        return a.flatten()[index]
    return a[(*[slice(None)] * (axis % a.dim()), index)]


# -- the rest ----------------------------------------------------------------------------


@named("clip")
def _clip(
    a: Any, a_min: Any = _MISSING, a_max: Any = _MISSING, out: Any = None, **more: Any
) -> Any:
    low = more.pop("min", None if a_min is _MISSING else a_min)
    high = more.pop("max", None if a_max is _MISSING else a_max)
    return NotImplemented if out is not None or more else _tensor(a).clamp(low, high)


@named("dot")
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    x, y = _tensor(a), _tensor(b)
    if out is not None or y.dim() > 2:
        return NotImplemented
    return x * y if not x.dim() or not y.dim() else x @ y


@named("sort")
def _sort(a: Any, axis: Any = -1, **options: Any) -> Any:
    if _given(**options):
        return NotImplemented
    x = a.flatten() if axis is None else a
    return x.sort(-1 if axis is None else axis)[0]


@named("argsort")
def _argsort(a: Any, axis: Any = -1, **options: Any) -> Any:
    if _given(**options):
        return NotImplemented
    return a.flatten().argsort() if axis is None else a.argsort(axis)


@named("nonzero")
def _nonzero(a: Any) -> Any:
    return a.nonzero(as_tuple=True)


@named("full_like")
def _full_like(a: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    return NotImplemented if dtype or options else PUBLIC["full_like"](a, fill_value)


@named("linalg.norm")
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return import_module("gradfn.linalg").norm(x, ord, axis, keepdims)


@named("linalg.svd")
def _svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    linalg = import_module("gradfn.linalg")
    if not compute_uv:
        return linalg.svdvals(a)
    return linalg.svd(a, full_matrices=full_matrices)


@named("meshgrid")
def _meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> Any:
    if sparse:
        return NotImplemented
    return PUBLIC["meshgrid"](*map(_tensor, xi), indexing=indexing)
