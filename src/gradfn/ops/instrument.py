"""Puts other code around functions while somebody measures, and takes it away again.

Note [Nothing to test]
    A profiler that ops had to ask for would cost each of them a test. Instead the
    functions themselves change: their code object is exchanged for one that calls the
    measuring code, and put back afterwards. So it does not matter under which names, or
    bound to what, a program holds them; and while nobody measures, they are what they
    were. The exchange is seen by all threads: whoever is called around an op must look
    whether the present context is being measured.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from gradfn.ops import rule
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

# Called with a name, the function to run, and its arguments; must return what that does.
Around = Callable[[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

_lock = threading.RLock()
_users = 0
_before: dict[FunctionType, tuple[CodeType, Any, Any]] = {}
_MODULES = ("gradfn.nn.functional",)  # whose functions are measured, too


def surround(
    around: Around, more: Callable[[], Iterator[tuple[FunctionType, Around]]]
) -> None:
    """Has each op call `around`, and each of the functions `more()` what stands by it.

    Calls of this are counted: as many of `restore` undo it.
    """
    global _users
    with _lock:
        _users += 1
        if _users > 1:
            return

        def tell(row: rule.Op, name: str, function: FunctionType) -> None:
            with _lock:
                if _users:
                    _exchange(function, op_name(row, name), around)

        for row, name, function in list(rule.READY):
            tell(row, name, function)
        rule.TELL_READY.append(tell)
        rows = {row.function for row in rule.TABLE.values()}
        for name, function in list(_composed()):  # the exchange adds globals
            if function not in rows:
                _exchange(function, f"aten::{name}", around)
        for function, other in more():
            _exchange(function, function.__name__, other)


def restore() -> None:
    """Undoes `surround`."""
    global _users
    with _lock:
        _users -= 1
        if _users:
            return
        rule.TELL_READY.pop()
        for function, (code, defaults, keywords) in _before.items():
            function.__code__ = code
            function.__defaults__ = defaults
            function.__kwdefaults__ = keywords
            del function.__globals__[_hook_name(function)]
        _before.clear()


def op_name(row: Any, name: str) -> str:
    """PyTorch's name of an op: aten::mul, of a row's in-place form aten::mul_."""
    base = plain_name(row)
    return f"aten::{base}_" if name == f"{row.name}_" else f"aten::{base}"


def plain_name(row: Any) -> str:
    """The name of a row; for one of gradfn's own, that of the op it belongs to."""
    name = str(row.name).lstrip("_")
    if name == row.name or name in PUBLIC or hasattr(Tensor, f"{name}_"):
        return name
    node = re.sub(r"Backward\d*$", "", row.node.rpartition("::")[2])
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node).lower()


def _composed() -> Iterator[tuple[str, FunctionType]]:
    """The functions that are no rows themselves."""
    for name, function in PUBLIC.items():
        if isinstance(function, FunctionType) and not name.startswith("is_"):
            yield name, function
    for module in _MODULES:
        for name, function in vars(importlib.import_module(module)).items():
            if isinstance(function, FunctionType) and not name.startswith("_"):
                yield name, function


def _hook_name(function: FunctionType) -> str:
    return f"_measured_{id(function)}"


def _call_hook(*args: Any, **kwargs: Any) -> Any:
    return _hook(args, kwargs)  # type: ignore[name-defined]  # noqa: F821 - renamed


def _exchange(function: FunctionType, name: str, around: Around) -> None:
    """Gives `function` code that calls `around`, with a copy of it as it was.

    Of one behind a guard, which changes its own code, it is the function that is changed.
    """
    if hasattr(function, "is_guard"):
        function = function.__wrapped__  # type: ignore[attr-defined]
    if function in _before:
        return
    code = function.__code__
    copy = FunctionType(
        code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    _before[function] = code, function.__defaults__, function.__kwdefaults__
    hook = _hook_name(function)
    function.__globals__[hook] = lambda args, kwargs: around(name, copy, args, kwargs)
    function.__code__ = _call_hook.__code__.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_names=(hook,),
        co_freevars=code.co_freevars,
    )
    function.__defaults__ = function.__kwdefaults__ = None
