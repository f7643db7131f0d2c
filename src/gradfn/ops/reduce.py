"""Reductions: sums, products, extremes, truth; and what their derivatives share."""

from __future__ import annotations

from functools import cache, lru_cache
from math import isfinite
from typing import Any, TypeAlias

import numpy as np

from gradfn._dtypes import INT64, to_numpy, torch_dtype
from gradfn.graph.saved import legacy_type
from gradfn.ops.outs import into
from gradfn.ops.rare import dim_error
from gradfn.ops.rule import Op, _result_type, op
from gradfn.ops.sizes import as_dim, sizes
from gradfn.ops.world import RAW, public
from gradfn.tensor import Tensor, method

add_reduce: Any = np.add.reduce
_HALF = np.dtype("float16")
_BIG = 4096  # from here on a broadcast view costs less than an array full of one value
_STEP = 256  # as many numbers may be added one after the other

# -- arguments -------------------------------------------------------------------------


def kind_name(dtype: Any) -> str:
    """torch's old name of a dtype, which its errors use: Long for int64."""
    return legacy_type(torch_dtype(dtype).name)[6:-6]


def refuse(a: Any, kinds: str, kernel: str) -> None:
    """NotImplementedError for dtypes of these kinds, as torch's `kernel` raises it."""
    if a.dtype.kind in kinds:
        name = kind_name(a.dtype)
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")


def not_empty(name: str, a: Any, dims: Any) -> None:
    """IndexError if one of the dims has no elements."""
    for d in dims:
        if not a.shape[d]:
            raise IndexError(f"{name}: Expected reduction dim {d} to have non-zero size.")


def line(a: Any, dim: Any) -> int:
    """`dim` from 0 on; IndexError if there is no such dim, TypeError if it is no int."""
    dim, n = as_dim(dim), max(a.ndim, 1)
    if not -n <= dim < n:
        raise dim_error(dim, a.ndim)
    return dim % n


def axes(a: Any, dim: Any) -> Any:
    """`dim` as NumPy wants it: None or () is all, a list is a tuple, 0-d has dims 0, -1."""
    kind = type(dim)
    if kind is int:
        if a.ndim:
            return dim
        line(a, dim)
        return None
    if dim is None:
        return None
    if not isinstance(dim, (tuple, list)):
        return axes(a, as_dim(dim))
    seen: list[int] = []
    for d in dim:
        if (place := line(a, d)) in seen:
            raise RuntimeError(f"dim {place} appears multiple times in the list of dims")
        seen.append(place)
    return tuple(seen) if seen and a.ndim else None


def reduced_dims(shape: Any, dim: Any) -> tuple[int, ...]:
    """The dims over which a reduction goes, from 0 on."""
    n = len(shape)
    if dim is None or dim == () or dim == [] or not n:
        return tuple(range(n))
    return tuple(int(d) % n for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))


def count(shape: Any, dim: Any) -> int:
    """How many elements come together in one."""
    n = 1
    for d in reduced_dims(shape, dim):
        n *= shape[d]
    return n


def lifted(x: Any, shape: Any, dim: Any, keepdim: bool = False) -> Any:
    """A reduced result with dims of size 1 where it was reduced."""
    if keepdim or not shape:
        return x
    dims = reduced_dims(shape, dim)
    return x.reshape(tuple(1 if i in dims else n for i, n in enumerate(shape)))


def spread_like(a: Any, shape: Any) -> Any:
    """`a` repeated to fill `shape`: an array of its own, or a read-only view if large."""
    size = 1
    for n in shape:
        size *= n
    if size >= _BIG:
        if a.ndim:
            return np.broadcast_to(a, shape)
        # The same view in a fifth of the time.
        view = np.ndarray(shape, a.dtype, np.asarray(a), 0, (0,) * len(shape))
        view.setflags(write=False)
        return view
    out = np.empty(shape, a.dtype)
    out[...] = a
    return out


def _spread(g: Any, shape: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return spread_like(g if dim is None else lifted(g, shape, dim, keepdim), shape)


# The gradient of a sum: the same at each place that was added. What was only broadcast
# (dim is None) the engine sums by itself.
op(
    "_spread(self, shape, dim=None, keepdim=False)",
    _spread,
    function=False,
    method=False,
    node="Expand",
    linear=True,
    self=lambda g, xp, dim, keepdim: g if dim is None else xp.sum(g, dim, keepdim),
)

# -- sums ------------------------------------------------------------------------------


def _sum(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        a = a.astype(to_numpy(dtype), copy=False)
    kind = a.dtype.kind
    if dim is not None:
        dim = axes(a, dim)
    if kind in "fc" and a.dtype is not _HALF:
        if a.size >= _BIG:
            return _large_sum(a, dim, keepdim)
        return add_reduce(a, dim, None, None, keepdim) if keepdim else add_reduce(a, dim)
    if kind in "biu":
        wanted = INT64 if dtype is None else a.dtype
        return add_reduce(a, dim, wanted, None, keepdim)
    return add_reduce(a, dim, np.float32, None, keepdim).astype(_HALF)


_ONES = {d: np.ones(1024, d) for d in (np.dtype("float32"), np.dtype("float64"))}


def _large_sum(a: Any, dim: Any, keepdim: bool) -> Any:
    """The sum of many elements: of all by BLAS, which is faster, along dims in steps.

    NumPy adds pairwise along the last dim only; along others one by one, so that the
    error grows with the length. Here few are added so, and then few of their sums.
    """
    if dim is None:
        ones = _ONES.get(a.dtype)
        if keepdim or ones is None or a.size < 8 * _BIG or not a.flags.c_contiguous:
            return add_reduce(a, None, None, None, keepdim)
        flat = a.reshape(-1)
        rows = flat.size // ones.size
        most = flat[: rows * ones.size].reshape(rows, -1).dot(ones)
        return add_reduce(most) + add_reduce(flat[rows * ones.size :])
    dims = dim if type(dim) is tuple else (dim,)
    if len(dims) > 1 and dims == tuple(range(a.ndim)):
        return _large_sum(a, None, keepdim)
    for d in sorted((d % a.ndim for d in dims), reverse=True):
        while a.shape[d] > 2 * _STEP and a.strides[d] != a.itemsize:
            a = _shortened(a, d)
        a = add_reduce(a, d, None, None, keepdim)
    return a


def _shortened(a: Any, d: int) -> Any:
    """The sums of _STEP elements at a time along a dim; what is left over stays."""
    n = a.shape[d] // _STEP
    before, after = a.shape[:d], a.shape[d + 1 :]
    place = (slice(None),) * d
    most = a[(*place, slice(n * _STEP))].reshape((*before, _STEP, n, *after))
    left = a[(*place, slice(n * _STEP, None))]
    out = np.empty((*before, n + left.shape[d], *after), a.dtype)
    add_reduce(most, d, None, out[(*place, slice(n))])
    out[(*place, slice(n, None))] = left
    return out


op(
    "sum(self, dim=None, keepdim=False, *, dtype=None)",
    _sum,
    overload="dim is not None",
    linear=True,
    self=lambda g, xp, self_shape, dim, keepdim: xp._spread(g, self_shape, dim, keepdim),
)


def _mean(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        a = a.astype(to_numpy(dtype), copy=False)
    if a.dtype.kind in "biu":
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating "
            f"point or complex dtype. Got: {kind_name(a.dtype)}"
        )
    n = a.size if dim is None else count(a.shape, dim)
    if a.dtype is _HALF:
        return (_sum(a.astype(np.float32), dim, keepdim) / n).astype(_HALF)
    return _sum(a, dim, keepdim) / (n or np.nan)


op(
    "mean(self, dim=None, keepdim=False, *, dtype=None)",
    _mean,
    overload="dim is not None",
    linear=True,
    self=lambda g, xp, self_shape, dim, keepdim: xp._spread(
        g / max(count(self_shape, dim), 1), self_shape, dim, keepdim
    ),
)


@method
def sum_to_size(self: Tensor, *size: Any) -> Any:
    """The sum over the dims in which `size` has 1 or nothing, in the shape `size`.

    RuntimeError if a tensor of that size would not broadcast to this one's.
    """
    wanted, shape = sizes(size), self._array.shape
    extra = len(shape) - len(wanted)
    pairs = list(zip(wanted, shape[max(extra, 0) :], strict=False))
    if extra < 0 or any(n not in (1, have) for n, have in pairs):
        raise RuntimeError(
            f"size {{{list(wanted)}}} is not expandable to size {{{list(shape)}}}."
        )
    x: Any = self
    if shape and not wanted:
        return x.sum()
    dims = [extra + i for i, (n, have) in enumerate(pairs) if n != have]
    dims = [*range(extra), *dims]
    out = x.sum(dims, True) if dims else x
    return out.view(wanted) if extra else out


# -- products --------------------------------------------------------------------------


def _prod(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if isinstance(dim, (tuple, list)):
        raise TypeError(f"prod(): argument 'dim' must be int, not {type(dim).__name__}")
    if dtype is not None:
        a = a.astype(to_numpy(dtype), copy=False)
    wanted = INT64 if a.dtype.kind in "biu" and dtype is None else None
    return np.multiply.reduce(a, axes(a, dim), wanted, None, keepdim)


def _others(x: Any, xp: Any, dim: int) -> Any:
    """For each element the product of all others along `dim`, right also for zeros."""
    before = xp._shift(xp.cumprod(x, dim), dim, 1)
    after = xp.flip(xp._shift(xp.cumprod(xp.flip(x, (dim,)), dim), dim, 1), (dim,))
    return before * after


def _prod_grad(g: Any, xp: Any, self: Any, dim: Any, keepdim: Any) -> Any:
    shape = self.shape
    if not shape:
        return g
    if dim is None:
        others = _others(self.reshape((-1,)), xp, 0).reshape(shape)
    else:
        others = _others(self, xp, dim)
    return lifted(g, shape, dim, keepdim) * others.conj()


def _prod_raw(g: Any, self: Any, result: Any, dim: Any, keepdim: Any) -> Any:
    if not self.ndim or not self.all():
        return _prod_grad(g, RAW, self, dim, keepdim)
    return lifted(g * result.conj(), self.shape, dim, keepdim) / self.conj()


op(
    "prod(self, dim=None, keepdim=False, *, dtype=None)",
    _prod,
    overload="dim is not None",
    self=_prod_grad,
    raw={"self": _prod_raw},
)

# -- extremes --------------------------------------------------------------------------

_NO_DIM = (
    "Expected reduction dim to be specified for input.numel() == 0. Specify the "
    "reduction dim with the 'dim' argument."
)


def _evenly(g: Any, xp: Any, self: Any, result: Any, dim: Any, keepdim: Any) -> Any:
    """The gradient of an extreme along dims, shared by all elements that attain it."""
    mask = self == lifted(result, self.shape, dim, keepdim)
    return mask * (lifted(g, self.shape, dim, keepdim) / xp.sum(mask, dim, True))


def _evenly_raw(g: Any, self: Any, result: Any, dim: Any, keepdim: Any) -> Any:
    mask = self == lifted(result, self.shape, dim, keepdim)
    n = add_reduce(mask, axes(self, dim), g.dtype, None, True)
    return mask * (lifted(g, self.shape, dim, keepdim) / n)


def among_equals(g: Any, xp: Any, self: Any, result: Any, dim: Any, keepdim: Any) -> Any:
    """The gradient of one of all elements, shared by those equal to it, or nan as it."""
    r = lifted(result, self.shape, dim, keepdim)
    mask = (self == r) | ((self != self) & (r != r))
    return xp._keep(lifted(g, self.shape, dim, keepdim) / xp.sum(mask, dim, True), mask)


def among_equals_raw(g: Any, self: Any, result: Any, dim: Any, keepdim: Any) -> Any:
    """The same for arrays."""
    if dim is not None:
        return among_equals(g, RAW, self, result, dim, keepdim)
    mask = np.isnan(self) if result != result else self == result
    share = g / np.count_nonzero(mask)
    if isfinite(share):
        return mask * share  # in a tenth of np.where's time
    return np.where(mask, share, share.dtype.type(0))


def _extreme(name: str, ufunc: Any, kind: str) -> Any:
    def kernel(a: Any, dim: Any = (), keepdim: bool = False) -> Any:
        refuse(a, "c", kind)
        dims = axes(a, dim)
        if not a.size:
            if dims is None:
                raise RuntimeError(f"{name}(): {_NO_DIM}")
            not_empty(f"{name}()", a, reduced_dims(a.shape, dims))
        return ufunc.reduce(a, dims, None, None, keepdim)

    return kernel


for _name, _ufunc in (("amax", np.maximum), ("amin", np.minimum)):
    op(
        f"{_name}(self, dim=(), keepdim=False)",
        _extreme(_name, _ufunc, f"{_name[1:]}_values_cpu"),
        self=_evenly,
        raw={"self": _evenly_raw},
    )


@lru_cache(maxsize=64)
def _grid(shape: Any, dim: int, keepdim: bool) -> Any:
    """For each dim but one its indices, in the shape of an index with one a line."""
    n = len(shape) if keepdim else len(shape) - 1
    found = []
    for d, size in enumerate(shape):
        if d != dim:
            place = d if keepdim or d < dim else d - 1
            found.append(np.arange(size).reshape((size,) + (1,) * (n - place - 1)))
    return found[:dim], found[dim:]


def _places(at: Any, dim: int, shape: Any, keepdim: bool) -> Any:
    """A full index for an array of `shape` from `at`, the places along `dim`."""
    dim %= len(shape)
    make = _grid if sum(shape) < _BIG else _grid.__wrapped__  # keep small ones only
    before, after = make(shape, dim, keepdim)
    return (*before, at, *after)


def put_along(g: Any, index: Any, dim: int, shape: Any, keepdim: bool = True) -> Any:
    """Zeros of `shape` with `g` put at `index` along `dim`, one for each line."""
    if not shape:
        return g.copy()
    out = np.zeros(shape, g.dtype)
    out[_places(index, dim, shape, keepdim)] = g
    return out


def take_along(a: Any, index: Any, dim: int, keepdim: bool = True) -> Any:
    """What stands at `index` along `dim`, one for each line."""
    return a[_places(index, dim, a.shape, keepdim)] if a.ndim else a.copy()


op(
    "_put_along(self, index, dim, shape, keepdim)",
    put_along,
    takes="index",
    linear=True,
    function=False,
    method=False,
    self=lambda g, xp, index, dim, keepdim: xp._take_along(g, index, dim, keepdim),
)
op(
    "_take_along(self, index, dim, keepdim)",
    take_along,
    takes="index",
    linear=True,
    function=False,
    method=False,
    self=lambda g, xp, self_shape, index, dim, keepdim: xp._put_along(
        g, index, dim, self_shape, keepdim
    ),
)


def picked_grad(
    g: Any, xp: Any, self_shape: Any, indices: Any, dim: Any, keepdim: Any
) -> Any:
    """The gradient of an op that picks one element from each line along `dim`."""
    return xp._put_along(g, indices, dim, self_shape, keepdim)


def picked(a: Any, at: Any, dim: int, keepdim: bool) -> Any:
    """(values, indices) for `at`, the index of one element in each line."""
    values = np.asarray(take_along(a, at, dim, False))
    if not keepdim:
        return values, at
    shape = (*a.shape[:dim], 1, *a.shape[dim + 1 :])
    return values.reshape(shape), np.reshape(at, shape)


def picking(name: str, kernel: Any, **options: Any) -> Any:
    """The function of a row that gives values and indices, in a tuple of that name."""
    function = op(
        f"_{name}_dim(self, dim, keepdim=False)",
        kernel,
        outputs="values indices",
        function=False,
        method=False,
        node=name.capitalize(),
        self=picked_grad,
        **options,
    ).function
    return lambda *args: result_type(name, "values indices")(*function(*args))


@cache
def result_type(name: str, outputs: str) -> Any:
    """A named tuple as rows make for several results; it is made when it is needed."""
    row = Op(f"{name}(self)", np.asarray, rules={}, outputs=outputs)
    return _result_type(row)


def _with_index(name: str, arg: Any) -> Any:
    def kernel(a: Any, dim: Any, keepdim: bool = False) -> Any:
        dim = line(a, dim)
        if a.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        if not a.ndim:
            return a.copy(), np.asarray(0)
        not_empty(f"{name}()", a, (dim,))
        return picked(a, arg(a, dim), dim, keepdim)

    return kernel


def _argmax(a: Any, dim: Any = None) -> Any:
    return a.argmax(dim)


def _argmin(a: Any, dim: Any = None) -> Any:
    if a.dtype.kind == "b":
        a = a.view(np.uint8)
    return a.argmin(dim)


DimOrTensor: TypeAlias = Any  # what stands behind the first argument of max and min


def _choose(name: str, ufunc: Any, arg: Any, doc: str) -> None:
    one = op(
        f"_{name}_all(self, dim=None, keepdim=False)",
        _extreme(name, ufunc, f"{name}_all"),
        function=False,
        method=False,
        node=name.capitalize(),
        overload="True",
        self=among_equals,
        raw={"self": among_equals_raw},
    ).function
    each = picking(name, _with_index(name, arg))

    def choose(
        input: Tensor,
        dim: DimOrTensor = None,
        keepdim: bool = False,
        *,
        other: Any = None,
        axis: Any = None,
        keepdims: bool = False,
        out: Any = None,
    ) -> Any:
        if isinstance(dim, Tensor) and other is None:
            dim, other = None, dim
        if dim is None:
            dim = axis
        if other is not None:
            result = getattr(input, ufunc.__name__)(other)
        elif dim is None:
            result = one(input)
        else:
            result = each(input, dim, keepdim or keepdims)
        return result if out is None else into(name, out, result)

    choose.__name__ = choose.__qualname__ = name
    choose.__doc__ = doc
    public(method(choose))


_OF = "element; `(values, indices)` along `dim`; or of two tensors."
_choose("max", np.maximum, _argmax, f"The largest {_OF}")
_choose("min", np.minimum, _argmin, f"The smallest {_OF}")


def _arg(name: str, function: Any) -> Any:
    def kernel(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if a.dtype.kind in "bc":
            kind = "bool" if a.dtype.kind == "b" else "complex"
            raise RuntimeError(f"{name}(): does not support {kind} input")
        if dim is not None:
            dim = line(a, dim)
            if not a.ndim:
                dim = None
        if not a.size:
            if dim is None:
                raise IndexError(f"{name}(): {_NO_DIM}")
            not_empty(f"{name}()", a, (dim,))
        found = function(a, dim)
        if not keepdim:
            return found
        if dim is None:
            return np.reshape(found, (1,) * a.ndim)
        return np.expand_dims(found, dim)

    return kernel


op("argmax(self, dim=None, keepdim=False)", _arg("argmax", _argmax), takes="self")
op("argmin(self, dim=None, keepdim=False)", _arg("argmin", _argmin), takes="self")


def _aminmax(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
    refuse(a, "c", "aminmax_cpu")
    dims = axes(a, dim)
    if not a.size:
        if dims is None:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the "
                "operation has no identity."
            )
        not_empty("aminmax", a, reduced_dims(a.shape, dims))
    return [u.reduce(a, dims, None, None, keepdim) for u in (np.minimum, np.maximum)]


def _aminmax_grad(
    gs: Any, xp: Any, self: Any, min: Any, max: Any, dim: Any, keepdim: Any
) -> Any:
    pairs = [(g, r) for g, r in zip(gs, (min, max), strict=True) if g is not None]
    parts = [_evenly(g, xp, self, r, dim, keepdim) for g, r in pairs]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


op(
    "aminmax(self, *, dim=None, keepdim=False)",
    _aminmax,
    outputs="min max",
    differentiable=2,
    self=_aminmax_grad,
)

# -- truth -----------------------------------------------------------------------------


def _truth(ufunc: Any) -> Any:
    def kernel(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
        none = isinstance(dim, (tuple, list)) and not dim  # here () is no dim, not all
        out = ufunc.reduce(a, () if none else axes(a, dim), np.bool_, None, keepdim)
        return out.astype(np.uint8) if a.dtype == np.uint8 else out

    return kernel


op("all(self, dim=None, keepdim=False)", _truth(np.logical_and), takes="self")
op("any(self, dim=None, keepdim=False)", _truth(np.logical_or), takes="self")
op(
    "count_nonzero(self, dim=None)",
    lambda a, dim=None: np.count_nonzero(a, axes(a, dim)),
    takes="self",
)
