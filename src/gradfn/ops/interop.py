"""NumPy's functions on tensors: they record, and hand back tensors.

Note [NumPy calls]
    `np.sin(t)` and `ndarray * t` come in by `__array_ufunc__`, other functions of NumPy's
    by `__array_function__`. Arrays among the arguments become tensors over their memory,
    then the op of the same meaning runs, so dtypes follow torch's rules. Where gradfn has
    no such op, NumPy computes on the arrays, and tensors that require grad are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.ops.admit import is_operand, number
from gradfn.ops.outs import into
from gradfn.ops.world import LATE, PUBLIC
from gradfn.tensor import Tensor, from_array, method

# NumPy's ufuncs whose op is called otherwise here.
_OPS = {
    "absolute": "abs",
    "conjugate": "conj",
    "degrees": "rad2deg",
    "divide": "true_divide",
    "equal": "eq",
    "expit": "sigmoid",
    "fabs": "abs",
    "gammaln": "lgamma",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "less": "lt",
    "less_equal": "le",
    "loggamma": "lgamma",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "power": "pow",
    "psi": "digamma",
    "radians": "deg2rad",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "subtract": "sub",
}
_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "amax",
    "minimum": "amin",
    "logical_and": "all",
    "logical_or": "any",
}
_SCANS = {"add": "cumsum", "multiply": "cumprod"}
_IGNORED = frozenset({"casting", "order", "subok", "signature"})


def as_operand(x: Any) -> Any:
    """An argument as ops take it: arrays as tensors, NumPy's numbers as Python's."""
    if isinstance(x, np.ndarray):
        return from_array(x)
    if isinstance(x, np.generic):
        return x.item()
    if type(x) in (list, tuple):
        return type(x)(as_operand(v) for v in x)
    return x


def as_array(x: Any, name: str) -> Any:
    """An argument as NumPy takes it. RuntimeError for a tensor that requires grad."""
    if isinstance(x, Tensor):
        if x.requires_grad:
            raise RuntimeError(
                f"numpy.{name}: gradfn has no such op, so nothing is recorded, and an argument "
                "requires grad. Pass tensor.detach() if no gradient is wanted."
            )
        return x.numpy()
    if type(x) in (list, tuple):
        return type(x)(as_array(v, name) for v in x)
    return x


def as_result(x: Any) -> Any:
    """What NumPy gave, its arrays as tensors."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "biufc":
        return from_array(x)
    if type(x) in (list, tuple):
        return type(x)(as_result(v) for v in x)
    return x


def _find(ufunc: Any) -> Any:
    """The op of a ufunc, NumPy's or SciPy's; None if there is none."""
    name = _OPS.get(ufunc.__name__, ufunc.__name__)
    if name in PUBLIC or name in LATE:
        return PUBLIC[name]
    if name == "positive":
        return lambda x: x
    from importlib.util import find_spec

    if find_spec("gradfn.special"):
        from importlib import import_module

        return getattr(import_module("gradfn.special"), name, None)
    return None


@method
def __array_ufunc__(
    self: Tensor, ufunc: Any, how: str, *inputs: Any, out: Any = None, **options: Any
) -> Any:
    """A ufunc of tensors and arrays."""
    name = ufunc.__name__
    options = {k: v for k, v in options.items() if k not in _IGNORED}
    run = {"__call__": _called, "reduce": _reduced, "accumulate": _scanned}.get(how)
    if how == "outer":
        run = _outer
    targets = out if out is not None else ()
    if run is None or any(isinstance(t, np.ndarray) for t in targets):
        return _by_numpy(getattr(ufunc, how), name, inputs, targets, options)
    dtype = options.pop("dtype", None)
    result = run(ufunc, [as_operand(x) for x in inputs], options)
    if result is NotImplemented:
        return _by_numpy(getattr(ufunc, how), name, inputs, targets, options)
    if dtype is not None:
        result = result.to(from_array(np.empty(0, dtype)).dtype)
    if targets:
        return into(name, targets[0] if len(targets) == 1 else targets, result)
    return result


def _called(ufunc: Any, inputs: list[Any], options: Any) -> Any:
    if options.pop("where", True) is not True:
        raise TypeError(
            f"numpy.{ufunc.__name__}: where= is not supported for tensors; use torch.where"
        )
    if ufunc is np.divmod:
        floor = PUBLIC["floor_divide"](*inputs)
        return floor, PUBLIC["remainder"](*inputs)
    op = _find(ufunc)
    if op is None:
        return NotImplemented
    return op(*_as_tensors(inputs))


def _as_tensors(inputs: list[Any]) -> list[Any]:
    """The operands, numbers and lists as tensors: some ops take no Python numbers."""
    like = next(x for x in inputs if isinstance(x, Tensor))._array.dtype
    return [
        x
        if isinstance(x, Tensor)
        else number(x, like)
        if is_operand(x)
        else PUBLIC["tensor"](x)
        for x in inputs
    ]


def _reduced(ufunc: Any, inputs: list[Any], options: Any) -> Any:
    name = _REDUCTIONS.get(ufunc.__name__)
    known = {"axis", "keepdims"}
    if name is None or any(v is not None for k, v in options.items() if k not in known):
        return NotImplemented
    (x,) = inputs[:1]
    axis = options.get("axis", 0)
    dims = tuple(range(x.dim())) if axis is None else axis
    if name == "prod" and isinstance(dims, tuple):
        return NotImplemented if len(dims) != x.dim() else x.prod()
    return getattr(x, name)(dims, bool(options.get("keepdims", False)))


def _scanned(ufunc: Any, inputs: list[Any], options: Any) -> Any:
    name = _SCANS.get(ufunc.__name__)
    if name is None:
        return NotImplemented
    return getattr(inputs[0], name)(options.get("axis", 0))


def _outer(ufunc: Any, inputs: list[Any], options: Any) -> Any:
    a, b = (x if isinstance(x, Tensor) else PUBLIC["tensor"](x) for x in inputs)
    return _called(ufunc, [a.reshape(*a.shape, *[1] * b.dim()), b], options)


def _by_numpy(run: Any, name: str, inputs: Any, out: Any, options: Any) -> Any:
    """NumPy on the arrays; into arrays if `out` has some."""
    plain = [as_array(x, name) for x in inputs]
    if not out:
        return as_result(run(*plain, **options))
    targets = tuple(t.detach().numpy() if isinstance(t, Tensor) else t for t in out)
    run(*plain, out=targets, **options)
    return out[0] if len(out) == 1 else out


@method
def __array_function__(
    self: Tensor, func: Any, types: Any, args: Any, kwargs: Any
) -> Any:
    """A function of NumPy's that is no ufunc."""
    from gradfn.ops.numpy_names import FUNCTIONS

    module = func.__module__.removeprefix("numpy").lstrip(".")
    name = f"{module}.{func.__name__}" if module else func.__name__
    found = FUNCTIONS.get(name)
    if found is not None:
        got = found(
            *(as_operand(x) for x in args),
            **{k: as_operand(v) for k, v in kwargs.items()},
        )
        if got is not NotImplemented:
            return got
    plain = [as_array(x, name) for x in args]
    named = {k: as_array(v, name) for k, v in kwargs.items()}
    return as_result(func(*plain, **named))
