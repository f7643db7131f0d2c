"""New tensors with regular values: ranges, grids, identity matrices."""

from __future__ import annotations

from math import ceil, isfinite
from typing import Any

import numpy as np

from gradfn._dtypes import INT64, complex_dtype
from gradfn._state import quiet
from gradfn.ops.create import (
    _plain,
    _warn,
    checked,
    finished,
    kind_of,
    named,
    wanted,
)
from gradfn.ops.sizes import sizes
from gradfn.ops.world import PUBLIC, public
from gradfn.tensor import Tensor


@public
def eye(n: int, m: Any = None, *, dtype: Any = None, **options: Any) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    rows, columns = checked((n, n if m is None else m))
    return finished(np.eye(rows, columns, dtype=wanted(dtype)), **options)


def _must_be(kinds: str, kind: Any, name: str) -> Any:
    """`kind` if it is one of NumPy's `kinds`, else NotImplementedError."""
    if kind.kind not in kinds:
        raise NotImplementedError(f'"{name}" not implemented for {kind}')
    return kind


@public
def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    **options: Any,
) -> Tensor:
    """Numbers from `start` to before `end` in steps: int64 if all three are ints.

    RuntimeError if the step is 0 or leads away from `end`, or if a bound is infinite.
    """
    start, end, step = _ends("arange", start, end, step)
    if dtype is None and isinstance(options.get("out"), Tensor):
        dtype = options["out"].dtype
    whole = all(isinstance(x, int) for x in (start, end, step))
    kind = INT64 if dtype is None and whole else wanted(dtype)
    n: Any = None if whole else ceil((end - start) / step)
    if _must_be("iuf", kind, "arange_cpu").kind != "f":
        start, end, step = _ends("arange", int(start), int(end), int(step))
    if whole or kind == INT64:  # of other integers, torch counts before it cuts off
        return finished(np.arange(start, end, step).astype(kind, copy=False), **options)
    return finished((start + np.arange(n) * step).astype(kind), **options)


def _ends(name: str, start: Any, end: Any, step: Any) -> Any:
    """Numbers for what begins and ends a range; an error if they make none."""
    start, end, step = _plain(start), _plain(end), _plain(step)
    start, end = (0, start) if end is None else (0 if start is None else start, end)
    for x in (start, end, step):
        if not isinstance(x, (int, float)):
            raise TypeError(f"{name}(): start, end and step must be Number, not {x!r}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not isfinite(end - start):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return start, end, step


@public
def range(start: Any, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    """Deprecated: like `arange`, but `end` is included and the dtype the default one."""
    _warn("torch.range is deprecated, as it includes its end: use torch.arange", 3)
    start, end, step = _ends("range", start, end, step)
    kind = wanted(options.pop("dtype", None))
    n = int((end - start) / step) + 1
    return finished((start + np.arange(n) * step).astype(kind), **options)


def _evenly(name: str, start: Any, end: Any, steps: Any, dtype: Any) -> Any:
    """Numbers at equal distances, and the dtype that is wanted.

    They are counted from the nearer end, as in torch, so that both ends are exact.
    """
    start, end, n = _plain(start), _plain(end), sizes((steps,))[0]
    if n < 0:
        raise RuntimeError(f"number of steps must be non-negative, not {n}")
    kind = _must_be("iufc", wanted(dtype), f"{name}_cpu")
    if isinstance(start, complex) or isinstance(end, complex):
        if dtype is not None and kind.kind != "c":
            raise RuntimeError(f"{name}: complex numbers can't be safely cast to {kind}")
        kind = complex_dtype(kind)
    if kind.kind in "iu":
        start, end = int(start), int(end)
    step = (end - start) / (n - 1) if n > 1 else 0
    at = np.arange(n)
    half = 1 if n == 1 else n // 2
    return np.where(at < half, start + step * at, end - step * at[::-1]), kind


@public
def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, **options: Any
) -> Tensor:
    """`steps` numbers at equal distances from `start` to `end`, both included."""
    numbers, kind = _evenly("linspace", start, end, steps, dtype)
    return finished(numbers.astype(kind), **options)


@public
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, **options: Any
) -> Tensor:
    """`base` to the powers of `linspace`."""
    dtype = options.pop("dtype", None)
    powers, kind = _evenly("logspace", start, end, steps, dtype)
    return finished(quiet(lambda: np.power(base, powers).astype(kind)), **options)


def _triangle_indices(name: str, find: Any) -> None:
    def indices(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, **options: Any
    ) -> Tensor:
        kind = _must_be("iu", INT64 if dtype is None else kind_of(dtype), name)
        rows, columns = checked((row, col))
        return finished(np.stack(find(rows, offset, columns)).astype(kind), **options)

    public(named(indices, name, "The indices of a triangle: a row of rows, of columns."))


_triangle_indices("tril_indices", np.tril_indices)
_triangle_indices("triu_indices", np.triu_indices)


@public
def vander(x: Tensor, N: Any = None, increasing: bool = False) -> Any:
    """Powers of a vector as the columns of a matrix, the highest first."""
    if x._array.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, not {list(x.shape)}")
    (n,) = checked((len(x) if N is None else N,))
    powers = np.arange(n) if increasing else np.arange(n)[::-1]
    columns = [x**k for k in powers.tolist()]
    return PUBLIC["stack"](columns, -1) if columns else x.new_empty((*x.shape, 0))
