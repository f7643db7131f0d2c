"""Errors that name the function and the argument, for functions written in Python.

Note [Guards]
    A guarded function is the function behind a thin one that is compiled when it is first
    called. It looks at flags and integers (Note [Kinds of arguments]), and when something
    fails inside it asks `explain` for a clearer error. Errors that gradfn raised on
    purpose pass as they are, and so do those that come out of the user's own code.
"""

from __future__ import annotations

import dis
import inspect
import linecache
from collections.abc import Callable, Iterable
from types import FunctionType, TracebackType
from typing import Any, TypeVar

import numpy as np

from gradfn._kinds import MISSING, first_wrong, fits, given, kind_of, wrong_kind

F = TypeVar("F", bound=Callable[..., Any])

OURS = ("gradfn", "numpy", "scipy")  # what fails in these is explained
_RAISE = dis.opmap["RAISE_VARARGS"]
_SPACE = "gradfn.guards"  # the module in which guards run

# To these the guard adds `out=`.
_TEXT = """
    addbmm addmm addmv addr baddbmm bucketize column_stack cross diag dstack ger histc
    histogramdd hstack inner kron matmul msort multinomial nonzero renorm row_stack
    searchsorted take_along_dim vstack where
"""
_WITH_OUT = frozenset(_TEXT.split())


# -- where an error comes from ---------------------------------------------------------


def innermost(trace: TracebackType | None) -> TracebackType | None:
    """The frame in which an error was raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def module_of(trace: TracebackType) -> str:
    """The first part of the name of the module in which a frame runs."""
    return str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]


def on_purpose(trace: TracebackType) -> bool:
    """Was it raised by a `raise` of gradfn's, not by what it called?"""
    code = trace.tb_frame.f_code
    if module_of(trace) != "gradfn" or code.co_name == "__bool__":
        return False  # a tensor that stands where a flag or a number should
    return code.co_code[trace.tb_lasti] == _RAISE


def explain(title: str, kinds: dict[str, str], error: Exception, values: Any) -> None:
    """Raises a clearer error, if there is one, for `error`, raised inside a function.

    title: what the user called. kinds: of its arguments. values: the arguments by name.
    """
    trace = innermost(error.__traceback__)
    if trace is None or module_of(trace) not in OURS:
        return
    meant = on_purpose(trace)
    if meant and isinstance(error, TypeError):
        return
    better = first_wrong(title, kinds, values)
    if better is None and not meant:
        better = translated(title, error, values.values())
    if better is None:
        return
    try:
        raise better from None
    finally:
        del better, trace, error  # else they and this frame hold each other


def translated(title: str, error: Exception, values: Any) -> Any:
    """PyTorch's kind of error for one that Python or NumPy raised; None: it is that."""
    text = str(error) or type(error).__name__
    if isinstance(error, OverflowError) and "too large" in text:
        return ValueError(f"{title}(): Overflow when unpacking long long: {text}")
    if isinstance(error, TypeError) and text.startswith("ufunc "):
        return not_implemented(title, values)
    if isinstance(error, (TypeError, AttributeError)) or text.startswith("Boolean value"):
        return TypeError(
            f"{title}() received an invalid combination of arguments - got "
            f"({given(values)}): {text}"
        )
    if isinstance(error, IndexError):  # NumPy's AxisError among them
        return IndexError(f"{title}(): {text}")
    if isinstance(error, MemoryError):
        return RuntimeError(f"{title}(): you tried to allocate too much memory. {text}")
    if isinstance(
        error,
        (ValueError, ArithmeticError, LookupError, AssertionError, np.linalg.LinAlgError),
    ):
        return RuntimeError(f"{title}(): {text}")
    return None


def not_implemented(title: str, values: Any) -> NotImplementedError:
    """The error where there is no kernel for the dtypes of the arguments."""
    from gradfn._dtypes import torch_dtype
    from gradfn.graph.saved import legacy_type

    arrays = [getattr(x, "_array", x) for x in values]
    kinds = [
        legacy_type(torch_dtype(a.dtype).name)[6:-6]
        for a in arrays
        if isinstance(a, np.ndarray)
    ]
    shown = " and ".join(f"'{k}'" for k in dict.fromkeys(kinds))
    return NotImplementedError(
        f'"{title}" not implemented for {shown or "these arguments"}'
    )


# -- the guard -------------------------------------------------------------------------


def check(title: str, place: int, name: str, kind: str, x: Any) -> None:
    """TypeError unless an argument is of its kind."""
    if not fits(kind, x):
        raise wrong_kind(title, place, name, kind, x)


# What tells most arguments that are not of a kind, in few nanoseconds.
_QUICK = {
    "Number": "type({0}) is not float and type({0}) is not int",
    "Tensor": "type({0}) is not Tensor",
    "bool": "{0} is not False and {0} is not True",
    "int": "type({0}) is not int",
}


def checks(
    title: str, place: int, name: str, kind: str, kinds: Any = _QUICK
) -> list[str]:
    """The line of a function's text that looks at an argument, if one must."""
    test = _QUICK.get(kind.rstrip("?"))
    if test is None or kind.rstrip("?") not in kinds:
        return []
    none = f"{name} is not None and " if kind.endswith("?") else ""
    return [
        f"    if {none}{test.format(name)}: "
        f"check({title!r}, {place}, {name!r}, {kind!r}, {name})"
    ]


def guard_all(space: dict[str, Any], names: Iterable[str], prefix: str = "") -> None:
    """Puts guards before those of a module's functions that are no ops.

    `prefix` stands before their names in messages.
    """
    for name in names:
        function: Any = space.get(name)
        if needs_guard(function):
            space[name] = guarded(function, f"{prefix}{name}", space["__name__"])


def needs_guard(function: Any) -> bool:
    """Ops need none, nor does what is guarded, loads others, or is no function."""
    return (
        isinstance(function, FunctionType)
        and not hasattr(function, "is_guard")
        and function.__module__ not in ("gradfn", "gradfn.ops.late")
    )


def guarded(function: F, title: str, module: str = "gradfn") -> F:
    """The function behind a guard, compiled on the first call.

    `title` is its name in messages, `module` is where users find it.
    """
    name = function.__name__
    space: dict[str, Any] = {"__name__": _SPACE, "guarded": function}
    made = FunctionType(_first_call.__code__.replace(co_name=name), space, name)

    def ready() -> None:
        text, names = _source(function, title)
        space.update(names)
        filename = f"<gradfn guard of {title}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        exec(compile(text, filename, "exec"), space)
        made.__code__ = space.pop(name).__code__
        made.__defaults__, made.__kwdefaults__ = _defaults(function)

    space["ready"], space["me"] = ready, made
    made.__wrapped__, made.is_guard = function, True  # type: ignore[attr-defined]
    made.__doc__, made.__qualname__ = function.__doc__, function.__qualname__
    made.__module__, made.__annotations__ = module, function.__annotations__
    return made  # type: ignore[return-value]


def _defaults(function: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The defaults of arguments by place, and of those by name; `out` may be a new one."""
    given = inspect.signature(function).parameters.values()
    values = [p for p in given if p.default is not p.empty]
    named = {p.name: p.default for p in values if p.kind is p.KEYWORD_ONLY}
    placed = tuple(p.default for p in values if p.kind is not p.KEYWORD_ONLY)
    return placed, {"out": None, **named}


def _first_call(*args: Any, **kwargs: Any) -> Any:
    ready()  # type: ignore[name-defined]  # noqa: F821 - see guarded
    return me(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


def _source(function: Any, title: str) -> tuple[str, dict[str, Any]]:
    """The text of a guard, and what it mentions."""
    from gradfn.ops.outs import into
    from gradfn.tensor import Tensor

    writer = _Writer(title)
    for place, p in enumerate(inspect.signature(function).parameters.values()):
        writer.add(place, p)
    text = writer.text(function.__name__)
    common = {"Tensor": Tensor, "check": check, "explain": explain, "into": into}
    return text, {"KINDS": writer.kinds, **common}


class _Writer:
    """Writes the text of a guard, parameter by parameter."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.kinds: dict[str, str] = {}
        self.head: list[str] = []
        self.call: list[str] = []
        self.checks: list[str] = []

    def add(self, place: int, p: inspect.Parameter) -> None:
        """One more parameter."""
        name, bare = p.name, p.default is p.empty
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            stars = "*" if p.kind is p.VAR_POSITIONAL else "**"
            self.head.append(f"{stars}{name}")
            self.kinds[name] = ""
            self.call.append(f"{stars}{name}")
            return
        named = p.kind is p.KEYWORD_ONLY
        if named and not self.starred():
            self.head.append("*")
        self.head.append(name if bare else f"{name}=None")  # see `ready`
        self.call.append(f"{name}={name}" if named else name)
        kind = kind_of(name, p.annotation, MISSING if bare else p.default)
        self.kinds[name] = kind
        self.checks += checks(self.title, place, name, kind)

    def text(self, name: str) -> str:
        """The whole function."""
        values = ", ".join(f"{n!r}: {n}" for n in self.kinds)
        call, end = f"return guarded({', '.join(self.call)})", []
        if self.title in _WITH_OUT and "out" not in self.kinds:
            given = "".join(f"{n}, " for n in self.kinds)
            self.head += ["out=None"] if self.starred() else ["*", "out=None"]
            call = call.replace("return", "result =")
            end = [
                "    if out is None: return result",
                f"    return into({self.title!r}, out, result, ({given}))",
            ]
        lines = [
            f"def {name}({', '.join(self.head)}):",
            *self.checks,
            f"    try: {call}",
            "    except Exception as error:",
            f"        explain({self.title!r}, KINDS, error, {{{values}}})",
            "        raise",
            *end,
        ]
        return "\n".join(lines) + "\n"

    def starred(self) -> bool:
        """Is there a star already, after which arguments go by name?"""
        return any(h.startswith("*") for h in self.head)
