"""softmax and its kin, along one dimension or several.

Note [Lines of only -inf]
    Where a mask left nothing, softmax is 0/0. Its value is NaN, as in PyTorch, but its
    derivative is 0: the line depends on nothing, and what comes back to it (often through
    a `where` that threw the line away) must not spoil the rest. A formula sees only the
    saved result, and a NaN that came with the input has to stay an alarm. So the NaNs
    of such lines carry a mark in their bits, which no arithmetic sees, and the
    formulas look for it. All this is done only in a process where some kernel has met an
    invalid operation (`trouble.met`), as -inf - -inf is; NaNs of other lines are then
    written anew too, for they could have the mark from an earlier softmax.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import default_dtype, to_numpy
from gradfn._state import trouble
from gradfn.ops.reduce import axes, lifted, line, refuse
from gradfn.ops.rule import op

# -- the mark --------------------------------------------------------------------------

# For each dtype: that of its bits, and a quiet NaN with the mark in its lowest bits.
_MARKED = {
    np.dtype(f"float{n}"): (np.dtype(f"uint{n}"), nan | 0x5A)
    for n, nan in ((16, 0x7E00), (32, 0x7FC00000), (64, 0x7FF8000000000000))
}


def _mark_empty(out: Any, top: Any, total: Any) -> Any:
    """Marks the lines of `out` whose largest element, `top`, is -inf, if total is NaN."""
    if np.isnan(total).any():
        bits, mark = _MARKED[out.dtype]
        marked = np.array(mark, bits).view(out.dtype)
        nans = np.where(np.isneginf(top), marked, out.dtype.type(np.nan))
        np.copyto(out, nans, where=np.isnan(out))
    return out


def _keep_unmarked(a: Any, marks: Any) -> Any:
    bits, mark = _MARKED[marks.dtype]
    return np.where(marks.view(bits) == bits.type(mark), a.dtype.type(0), a)


# `self` where the NaNs of `marks` have no mark, and 0 elsewhere.
op(
    "_keep_unmarked(self, marks)",
    _keep_unmarked,
    takes="marks",
    function=False,
    method=False,
    self=lambda g, xp, marks: xp._keep_unmarked(g, marks),
)

# -- softmax ---------------------------------------------------------------------------


_HALF = np.dtype("float16")
_PLAIN = (np.dtype("float32"), np.dtype("float64"))


def _scores(a: Any, dim: Any, dtype: Any, name: str) -> tuple[Any, Any, Any]:
    """What softmax works on (half precision as single), its axis, the result's dtype."""
    if dtype is None and type(dim) is int and a.ndim and a.dtype in _PLAIN:
        return a, dim, a.dtype
    if dtype is not None:
        a = a.astype(to_numpy(dtype), copy=False)
    axis: Any = line(a, dim)
    if a.dtype.kind != "f":
        last = "_lastdim" if axis == max(a.ndim, 1) - 1 else ""
        refuse(a, "biuc", f"{name}{last}_kernel_impl")
    work = a.astype(np.float32) if a.dtype is _HALF else a
    return work, axis if a.ndim else None, a.dtype


def _softmax(a: Any, dim: int, dtype: Any = None) -> Any:
    a, axis, final = _scores(a, dim, dtype, "softmax")
    if not a.size:
        return a.astype(final)
    top = np.maximum.reduce(a, axis, None, None, True)
    e = np.asarray(a - top)
    np.exp(e, e)
    total = np.add.reduce(e, axis, None, None, True)
    np.divide(e, total, e)
    if final is not e.dtype:
        e = e.astype(final)
    return _mark_empty(e, top, total) if trouble.met else e


def _safe_softmax(a: Any, dim: int, dtype: Any = None) -> Any:
    out = _softmax(a, dim, dtype)
    return _keep_unmarked(out, out) if trouble.met else out


def _log_softmax(a: Any, dim: int, dtype: Any = None) -> Any:
    a, axis, final = _scores(a, dim, dtype, "log_softmax")
    if not a.size:
        return a.astype(final)
    top = np.maximum.reduce(a, axis, None, None, True)
    low = np.asarray(a - top)
    total = np.add.reduce(np.exp(low), axis, None, None, True)
    np.subtract(low, np.log(total), low)
    if final is not low.dtype:
        low = low.astype(final)
    return _mark_empty(low, top, total) if trouble.met else low


def _softmax_grad(g: Any, xp: Any, result: Any, dim: int) -> Any:
    if trouble.met:
        g, result = xp._keep_unmarked(g, result), xp._keep_unmarked(result, result)
    return result * (g - xp.sum(g * result, dim, True))


def _softmax_raw(g: Any, result: Any, dim: int) -> Any:
    if trouble.met and np.isnan(np.vdot(result, result)):
        g, result = _keep_unmarked(g, result), _keep_unmarked(result, result)
    out = np.asarray(g * result)
    total = np.add.reduce(out, axes(out, dim), None, None, True)
    np.subtract(g, total, out)
    return np.multiply(out, result, out)


def _log_softmax_grad(g: Any, xp: Any, result: Any, dim: int) -> Any:
    if trouble.met:
        g, result = xp._keep_unmarked(g, result), xp._keep_unmarked(result, result)
    return g - xp.exp(result) * xp.sum(g, dim, True)


def _log_softmax_raw(g: Any, result: Any, dim: int) -> Any:
    if trouble.met and np.isnan(np.vdot(result, result)):
        g, result = _keep_unmarked(g, result), _keep_unmarked(result, result)
    out = np.asarray(np.exp(result))
    np.multiply(out, np.add.reduce(g, axes(g, dim), None, None, True), out)
    return np.subtract(g, out, out)


op(
    "softmax(self, dim, dtype=None)",
    _softmax,
    self=_softmax_grad,
    raw={"self": _softmax_raw},
)
# Lines of only -inf become zeros: what attention takes.
op(
    "_safe_softmax(self, dim, dtype=None)",
    _safe_softmax,
    method=False,
    node="SafeSoftmax",
    self=_softmax_grad,
    raw={"self": _softmax_raw},
)
op(
    "log_softmax(self, dim, dtype=None)",
    _log_softmax,
    self=_log_softmax_grad,
    raw={"self": _log_softmax_raw},
)

# -- logsumexp -------------------------------------------------------------------------


def _top(a: Any, dim: Any) -> Any:
    """The largest of each line, 0 where that is infinite or there is none."""
    if not a.size:
        return 0
    top = np.maximum.reduce(a.real, dim, None, None, True)
    finite = np.isfinite(top)
    return top if finite.all() else np.where(finite, top, top.dtype.type(0))


def _logsumexp(a: Any, dim: Any, keepdim: bool = False) -> Any:
    if a.dtype.kind in "biu":
        a = a.astype(default_dtype())
    dim = axes(a, dim)
    top = _top(a, dim)
    total = np.log(np.add.reduce(np.exp(a - top), dim, None, None, keepdim))
    if a.size and not keepdim:
        top = np.reshape(top, np.shape(total))
    return total + top


def _logsumexp_grad(
    g: Any, xp: Any, self: Any, self_shape: Any, result: Any, dim: Any, keepdim: Any
) -> Any:
    # A line of -inf only has the result -inf; -inf - -inf would be nan.
    bottom = xp._keep(result, result != -np.inf)
    share = xp.exp(self - lifted(bottom, self_shape, dim, keepdim))
    return lifted(g, self_shape, dim, keepdim) * share.conj()


op("logsumexp(self, dim, keepdim=False)", _logsumexp, self=_logsumexp_grad)
