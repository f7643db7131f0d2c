"""What all functions on matrices share: their checks, `out=`, named results.

Note [Checks of matrices]
    A function of torch.linalg says what it was given before LAPACK sees it. Kernels call
    `check_matrix` or `check_square` under the function's public name; what only shows in
    the factorisation (a zero pivot) is an `info` for each matrix, and `check_info` turns
    the first that is not 0 into a LinAlgError.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

from gradfn.graph.batched import all_of
from gradfn.ops.outs import into
from gradfn.ops.reduce import kind_name
from gradfn.ops.rule import _result_repr
from gradfn.tensor import Tensor, from_array


class LinAlgError(RuntimeError):
    """A matrix for which the result does not exist."""


# -- checks ------------------------------------------------------------------------------


def check_floating(name: str, a: Any) -> None:
    """RuntimeError for integers and for half precision, which LAPACK has not."""
    if a.dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{kind_name(a.dtype)}"
        )
    if a.dtype.itemsize < 4:
        raise RuntimeError(
            f"{name}: Low precision dtypes not supported. Got {kind_name(a.dtype)}"
        )


def check_matrix(name: str, a: Any, floating: bool = True) -> None:
    """RuntimeError unless `a` is a matrix of floating-point numbers, or many of them."""
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if floating:
        check_floating(name, a)


def check_square(name: str, a: Any, floating: bool = True) -> None:
    """The same for square matrices."""
    check_matrix(name, a, floating)
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are "
            f"{a.shape[-2]} by {a.shape[-1]} matrices"
        )


def check_same_dtype(name: str, a: Any, b: Any) -> None:
    """RuntimeError unless both sides of an equation have one dtype."""
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{_short(a)} and B of type {_short(b)} instead"
        )


def _short(a: Any) -> str:
    return kind_name(a.dtype)


def check_info(name: str, info: Any, text: str) -> None:
    """LinAlgError for the first matrix whose info is not 0; `{k}` in the text is it."""
    info = all_of(info)
    bad = np.flatnonzero(info)
    if bad.size:
        where = f"(Batch element {bad[0]}): " if np.ndim(info) else ""
        k = int(np.reshape(info, -1)[bad[0]])
        raise LinAlgError(f"{name}: {where}{text.format(k=k)}")


# -- helpers of formulas -----------------------------------------------------------------


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return x.mT.conj()


def each(function: Callable[..., Any], *arrays: Any) -> Any:
    """A function of single matrices, for all in a batch; it returns a tuple of arrays."""
    lead = arrays[0].shape[:-2]
    flat = [a.reshape((-1, *a.shape[len(lead) :])) for a in arrays]
    found = [function(*one) for one in zip(*flat, strict=True)]
    return tuple(
        np.stack(part).reshape((*lead, *np.shape(part[0])))
        for part in zip(*found, strict=True)
    )


# -- public functions --------------------------------------------------------------------


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch.linalg: what must be a tensor is one, and it takes `out=`."""
    name = f"linalg_{function.__name__}"
    places = [
        (place, p.name)
        for place, p in enumerate(signature(function).parameters.values())
        if p.annotation == "Tensor"
    ]

    @wraps(function)
    def call(*args: Any, out: Any = None, **more: Any) -> Any:
        for place, key in places:
            x = args[place] if place < len(args) else more.get(key, function)
            if isinstance(x, Tensor) or x is function:
                continue
            if not isinstance(x, np.ndarray):
                raise TypeError(
                    f"{name}(): argument '{key}' (position {place + 1}) must be Tensor, "
                    f"not {type(x).__name__}"
                )
            if place < len(args):
                args = (*args[:place], from_array(x), *args[place + 1 :])
            else:
                more[key] = from_array(x)
        result = function(*args, **more)
        return result if out is None else into(name, out, result, args)

    call.__signature__ = _with_out(signature(function))  # type: ignore[attr-defined]
    return call


def _with_out(plain: Signature) -> Signature:
    """The signature of a function that takes `out=` too."""
    out = Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation="Any")
    given = [p for p in plain.parameters.values() if p.name != "out"]
    last = [p for p in given if p.kind is p.VAR_KEYWORD]
    return plain.replace(parameters=[p for p in given if p not in last] + [out, *last])


_KINDS: dict[tuple[str, str], Any] = {}


def named(name: str, fields: str, *values: Any) -> Any:
    """Results in a named tuple that prints as torch's `return_types.<name>` does."""
    kind: Any = _KINDS.get((name, fields))
    if kind is None:
        kind = _KINDS[name, fields] = namedtuple(name, fields)  # type: ignore[misc]
        kind.__module__ = "torch.return_types"
        kind.__repr__ = _result_repr
    return kind(*values)
