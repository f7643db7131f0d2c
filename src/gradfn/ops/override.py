"""Subclasses of Tensor: `__torch_function__`, and results that keep the class."""

from __future__ import annotations

from typing import Any

from gradfn.tensor import Tensor, wrap

PLAIN: set[type] = {Tensor}  # types that need no care, once they have been let in


def overriding(args: Any) -> list[type]:
    """The classes of subclass instances among the arguments, subclasses first."""
    found: list[type] = []
    for x in args:
        if isinstance(x, (list, tuple)):
            found += [c for c in overriding(x) if c not in found]
        elif isinstance(x, Tensor) and type(x) not in PLAIN and type(x) not in found:
            found.append(type(x))
    return found if len(found) < 2 else sorted(found, key=lambda c: -len(c.__mro__))


def call_override(op: Any, args: tuple[Any, ...]) -> tuple[Any] | None:
    """The result of the first `__torch_function__` that wants the op; None if none."""
    types = overriding(args)
    for cls in types:
        if hasattr(cls, "_take_op"):  # gradfn's own, for which the row itself matters
            return (cls._take_op(op, args),)
    positional, named = by_name(op, args)
    for cls in types:
        handler = getattr(cls, "__torch_function__", None)
        if handler is None or getattr(handler, "__func__", None) is _default:
            continue
        got = handler(op.function, types, positional, named)
        if got is not NotImplemented:
            return (got,)
    if not types or getattr(types[0], "__torch_function__", None) is None:
        return None
    if op.writes:
        return (_written(op, positional, named),)
    plain = op.function(*_plain(positional), **_plain(named))
    return (_classed(plain, types[0]),)


def by_name(op: Any, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as they are passed: those behind the star by name, if not default."""
    n = op.names.index("*") if "*" in op.names else len(args)
    rest = dict(zip(op.params[n:], args[n:], strict=True))
    defaults = dict(zip(op.plain, op.plain_values(), strict=True))
    return args[:n], {k: v for k, v in rest.items() if v is not defaults.get(k, op)}


def _written(op: Any, args: Any, named: Any) -> Any:
    """An in-place op on a subclass instance, which is returned."""
    t = args[0]
    plain = _plain(args)
    op.function(*plain, **_plain(named))
    if plain[0] is not t:
        t._array, t._cell = plain[0]._array, plain[0]._cell
        t._grad_fn, t._view = plain[0]._grad_fn, plain[0]._view
    return t


def _plain(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_plain(v) for v in x)
    if isinstance(x, dict):
        return {k: _plain(v) for k, v in x.items()}
    return as_class(x, Tensor) if isinstance(x, Tensor) else x


def _classed(x: Any, cls: type) -> Any:
    if type(x) is tuple or type(x) is list:
        return type(x)(_classed(v, cls) for v in x)
    return as_class(x, cls) if type(x) is Tensor else x


def as_class(t: Tensor, cls: type) -> Tensor:
    """The same tensor (memory, history, version counter) as an instance of `cls`."""
    from gradfn.tensor import LEAF

    out = wrap(t._array, cls)
    out._cell, out._view, out._extra = t._cell, t._view, t._extra
    out._grad_fn = t.view_as(t)._grad_fn if t._grad_fn is LEAF else t._grad_fn
    return out


def _default(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Calls an op on plain tensors; its results are instances of `cls`."""
    kwargs = kwargs or {}
    return _classed(func(*_plain(tuple(args)), **kwargs), cls)


Tensor.__torch_function__ = classmethod(_default)  # type: ignore[attr-defined]
