"""Reductions: sums, products, extremes, truth; and what their derivatives share."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import INT64, to_numpy
from gradfn.ops.rare import dim_error
from gradfn.ops.rule import op
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method

add_reduce: Any = np.add.reduce
_HALF = np.dtype("float16")
_BIG = 4096  # from here on a broadcast view costs less than an array full of one value

# -- dimensions ------------------------------------------------------------------------


def axes(a: Any, dim: Any) -> Any:
    """`dim` as NumPy wants it: None or () is all, a list is a tuple, 0-d has dims 0, -1."""
    kind = type(dim)
    if kind is int:
        if not a.ndim:
            if dim not in (0, -1):
                raise dim_error(dim, 0)
            return None
        return dim
    if dim is None:
        return None
    if isinstance(dim, (tuple, list)):
        dims = tuple(int(d) for d in dim)
        if not a.ndim:
            return None
        if len({d % a.ndim for d in dims if -a.ndim <= d < a.ndim}) < len(dims):
            for d in dims:
                if not -a.ndim <= d < a.ndim:
                    raise dim_error(d, a.ndim)
            raise RuntimeError(
                f"dim {dims[-1]} appears multiple times in the list of dims"
            )
        return dims or None
    return axes(a, int(dim))


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
        return np.broadcast_to(a, shape)
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
        return add_reduce(a, dim, None, None, keepdim) if keepdim else add_reduce(a, dim)
    if kind in "biu":
        wanted = INT64 if dtype is None else a.dtype
        return add_reduce(a, dim, wanted, None, keepdim)
    return add_reduce(a, dim, np.float32, None, keepdim).astype(_HALF)


op(
    "sum(self, dim=None, keepdim=False, *, dtype=None)",
    _sum,
    overload="dim is not None",
    self=lambda g, xp, self_shape, dim, keepdim: xp._spread(g, self_shape, dim, keepdim),
)


def _mean(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if dtype is not None:
        a = a.astype(to_numpy(dtype), copy=False)
    if a.dtype.kind in "biu":
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating "
            f"point or complex dtype. Got: {a.dtype}"
        )
    n = a.size if dim is None else count(a.shape, dim)
    if a.dtype is _HALF:
        return (_sum(a.astype(np.float32), dim, keepdim) / n).astype(_HALF)
    return _sum(a, dim, keepdim) / (n or np.nan)


op(
    "mean(self, dim=None, keepdim=False, *, dtype=None)",
    _mean,
    overload="dim is not None",
    self=lambda g, xp, self_shape, dim, keepdim: xp._spread(
        g / max(count(self_shape, dim), 1), self_shape, dim, keepdim
    ),
)


def _nansum(a: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    clean = np.where(np.isnan(a), a.dtype.type(0), a) if a.dtype.kind == "f" else a
    return _sum(clean, dim, keepdim, dtype=dtype)


op(
    "nansum(self, dim=None, keepdim=False, *, dtype=None)",
    _nansum,
    self=lambda g, xp, self, self_shape, dim, keepdim: xp._keep(
        xp._spread(g, self_shape, dim, keepdim), ~xp.isnan(self)
    ),
)


@public
@method
def nanmean(
    self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The mean of what is not nan."""
    there = (~self.isnan()).sum(dim, keepdim)
    return self.nansum(dim, keepdim, dtype=dtype) / there


# -- products --------------------------------------------------------------------------


def _prod(a: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if dtype is not None:
        a = a.astype(to_numpy(dtype), copy=False)
    wanted = INT64 if a.dtype.kind in "biu" and dtype is None else None
    return np.multiply.reduce(a, axes(a, dim), wanted, None, keepdim)


def _others(x: Any, xp: Any, dim: int) -> Any:
    """For each element the product of all others along `dim`, right also for zeros."""
    before = xp._shift(xp.cumprod(x, dim), dim, 1)
    after = xp.flip(xp._shift(xp.cumprod(xp.flip(x, (dim,)), dim), dim, 1), (dim,))
    return before * after


def _prod_grad(
    g: Any, xp: Any, self: Any, self_shape: Any, result: Any, dim: Any, keepdim: Any
) -> Any:
    if not self_shape:
        return g
    if not xp._has_zero(self):
        whole = lifted(g * result.conj(), self_shape, dim, keepdim)
        return whole / self.conj()
    if dim is None:
        others = _others(self.reshape((-1,)), xp, 0).reshape(self_shape)
    else:
        others = _others(self, xp, dim)
    return lifted(g, self_shape, dim, keepdim) * others.conj()


op(
    "_has_zero(self)",
    lambda a: np.asarray(not a.all()),
    takes="self",
    function=False,
    method=False,
)
op(
    "prod(self, dim=None, keepdim=False, *, dtype=None)",
    _prod,
    overload="dim is not None",
    self=_prod_grad,
)

# -- extremes --------------------------------------------------------------------------


def _evenly(
    g: Any, xp: Any, self: Any, self_shape: Any, result: Any, dim: Any, keepdim: Any
) -> Any:
    """The gradient of an extreme, shared by all elements that attain it."""
    mask = self == lifted(result, self_shape, dim, keepdim)
    share = lifted(g, self_shape, dim, keepdim) / xp.sum(mask, dim, True)
    return xp._keep(share, mask)


def _extreme(ufunc: Any) -> Any:
    def kernel(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if not a.size and (dim is None or dim == ()):
            raise RuntimeError(
                "Expected reduction dim to be specified for input.numel() == 0. Specify "
                "the reduction dim with the 'dim' argument."
            )
        return ufunc.reduce(a, axes(a, dim), None, None, keepdim)

    return kernel


_amax, _amin = _extreme(np.maximum), _extreme(np.minimum)

op("amax(self, dim=(), keepdim=False)", _amax, self=_evenly)
op("amin(self, dim=(), keepdim=False)", _amin, self=_evenly)
_whole = {}
for _name, _kernel in (("max", _amax), ("min", _amin)):
    _whole[_name] = op(
        f"_{_name}_all(self, dim=None, keepdim=False)",
        _kernel,
        function=False,
        method=False,
        node=_name.capitalize(),
        overload="True",
        self=_evenly,
    ).function


def put_along(g: Any, index: Any, dim: int, shape: Any, keepdim: bool = True) -> Any:
    """Zeros of `shape` with `g` put at `index` along `dim`, one for each line."""
    if not shape:
        return g.copy()
    out = np.zeros(shape, g.dtype)
    if not keepdim:
        g, index = np.expand_dims(g, dim), np.expand_dims(index, dim)
    np.put_along_axis(out, index, g, dim)
    return out


def take_along(a: Any, index: Any, dim: int, keepdim: bool = True) -> Any:
    """What stands at `index` along `dim`, one for each line."""
    if not a.ndim:
        return a.copy()
    if keepdim:
        return np.take_along_axis(a, index, dim)
    return np.take_along_axis(a, np.expand_dims(index, dim), dim).squeeze(dim)


op(
    "_put_along(self, index, dim, shape, keepdim)",
    put_along,
    takes="index",
    function=False,
    method=False,
    self=lambda g, xp, index, dim, keepdim: xp._take_along(g, index, dim, keepdim),
)
op(
    "_take_along(self, index, dim, keepdim)",
    take_along,
    takes="index",
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


def _with_index(arg: Any) -> Any:
    def kernel(a: Any, dim: int, keepdim: bool = False) -> Any:
        if not a.ndim:
            axes(a, dim)
            return a.copy(), np.asarray(0)
        if not a.shape[dim]:
            raise IndexError(
                f"Expected reduction dim {dim} to have non-zero size, the shape is "
                f"{list(a.shape)}"
            )
        at = np.expand_dims(arg(a, dim), dim)
        values = np.take_along_axis(a, at, dim)
        return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))

    return kernel


def _argmax(a: Any, dim: Any = None) -> Any:
    return a.argmax(dim)


def _argmin(a: Any, dim: Any = None) -> Any:
    if a.dtype.kind == "b":
        a = a.view(np.uint8)
    return a.argmin(dim)


_along = {}
for _name, _find in (("max", _argmax), ("min", _argmin)):
    _along[_name] = op(
        f"_{_name}_dim(self, dim, keepdim=False)",
        _with_index(_find),
        outputs="values indices",
        function=False,
        method=False,
        node=_name.capitalize(),
        self=picked_grad,
    )


def _choose(name: str, doc: str) -> None:
    whole, along = _whole[name], _along[name].function
    two = {"max": "maximum", "min": "minimum"}[name]

    def choose(
        self: Tensor,
        dim: Any = None,
        keepdim: bool = False,
        *,
        other: Any = None,
        axis: Any = None,
        out: Any = None,
    ) -> Any:
        if isinstance(dim, Tensor):
            other = dim
        if other is not None:
            return getattr(self, two)(other)
        if dim is None:
            dim = axis
        return whole(self) if dim is None else along(self, dim, keepdim)

    choose.__name__, choose.__doc__ = name, doc
    public(method(choose))


_choose("max", "The largest element; `(values, indices)` along `dim`; or of two tensors.")
_choose(
    "min", "The smallest element; `(values, indices)` along `dim`; or of two tensors."
)


def _arg(function: Any) -> Any:
    def kernel(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if not a.size and dim is None:
            raise IndexError(
                "Expected reduction dim to be specified for input.numel() == 0. Specify "
                "the reduction dim with the 'dim' argument."
            )
        dim = axes(a, dim)
        found = function(a, dim)
        if not keepdim:
            return found
        if dim is None:
            return np.reshape(found, (1,) * a.ndim)
        return np.expand_dims(found, dim)

    return kernel


op("argmax(self, dim=None, keepdim=False)", _arg(_argmax), takes="self")
op("argmin(self, dim=None, keepdim=False)", _arg(_argmin), takes="self")


@public
@method
def aminmax(self: Tensor, *, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest and the largest element, over all or along `dim`."""
    dims = () if dim is None else dim
    return _MinMax(self.amin(dims, keepdim), self.amax(dims, keepdim))


class _MinMax(tuple[Any, Any]):
    """(min, max), also by name."""

    __slots__ = ()
    _fields = ("min", "max")
    min = property(lambda self: self[0])
    max = property(lambda self: self[1])

    def __new__(cls, *pair: Any) -> Any:
        return tuple.__new__(cls, pair)


# -- truth -----------------------------------------------------------------------------


def _truth(ufunc: Any) -> Any:
    def kernel(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
        out = ufunc.reduce(a, axes(a, dim), np.bool_, None, keepdim)
        return out.astype(np.uint8) if a.dtype == np.uint8 else out

    return kernel


op("all(self, dim=None, keepdim=False)", _truth(np.logical_and), takes="self")
op("any(self, dim=None, keepdim=False)", _truth(np.logical_or), takes="self")
op(
    "count_nonzero(self, dim=None)",
    lambda a, dim=None: np.count_nonzero(a, axes(a, dim)),
    takes="self",
)
