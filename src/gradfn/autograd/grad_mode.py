"""Whether ops record: no_grad, enable_grad, set_grad_enabled, and inference_mode.

Each works as a context manager and as a decorator of functions, generators and
coroutines. The setting is the thread's own (Note [One integer for every mode]).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from gradfn._state import GRAD, INFERENCE, MODE, mode
from gradfn.tensor import Tensor


def is_grad_enabled() -> bool:
    """Do ops record at present, in this thread?"""
    return bool(mode() & GRAD)


def is_inference_mode_enabled() -> bool:
    """Are results inference tensors at present, in this thread?"""
    return bool(mode() & INFERENCE)


def is_inference(input: Tensor) -> bool:
    """Was a tensor made in inference mode?"""
    return bool(input.is_inference())


class Guard:
    """Sets bits of the mode for a block, or for each run of a decorated function."""

    _on = 0
    _off = 0

    def __init__(self) -> None:
        self._before: list[int] = []

    def clone(self) -> Guard:
        """Another guard that does the same; each call of a decorated function has one."""
        return type(self)()

    def __enter__(self) -> Any:
        flags = MODE.get()
        self._before.append(flags)
        MODE.set(flags & ~self._off | self._on)
        return None

    def __exit__(self, *error: object) -> None:
        back = self._before.pop()
        bits = self._on | self._off
        MODE.set(MODE.get() & ~bits | back & bits)

    def __call__(self, function: Callable[..., Any]) -> Any:
        """Decorates a function, generator function, coroutine function or class."""
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. "
                "You should only decorate functions or methods. To preserve the current "
                "behavior of class decoration, you can directly decorate the `__init__` "
                "method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            function.__init__ = self(function.__init__)  # type: ignore[method-assign]
            return function
        if inspect.isgeneratorfunction(function):
            return _generator(self, function)
        if inspect.isasyncgenfunction(function):
            return _async_generator(self, function)
        if inspect.iscoroutinefunction(function):
            return _coroutine(self, function)

        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapper


class _BareDecorator(Guard):
    """A guard that may decorate without parentheses: `@no_grad`."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        self = super().__new__(cls)
        if function is None:
            return self
        Guard.__init__(self)
        return self(function)

    def __init__(self, function: Any = None) -> None:
        Guard.__init__(self)


class no_grad(_BareDecorator):
    """Within it ops do not record, and results do not require grad."""

    _off = GRAD


class enable_grad(_BareDecorator):
    """Within it ops record, also inside no_grad."""

    _on = GRAD


class set_grad_enabled(Guard):
    """Turns recording on or off: at once, and until the end of a `with` block."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self._on, self._off = (GRAD, 0) if mode else (0, GRAD)
        self.prev = is_grad_enabled()
        self._at_once = MODE.get()
        MODE.set(self._at_once & ~self._off | self._on)

    def clone(self) -> Guard:
        """Another guard that does the same."""
        return type(self)(self.mode)

    def __call__(self, function: Callable[..., Any]) -> Any:
        """Decorates; the setting made when the guard was built is taken back."""
        MODE.set(MODE.get() & ~GRAD | self._at_once & GRAD)
        return super().__call__(function)

    def __enter__(self) -> None:
        MODE.set(MODE.get() & ~self._off | self._on)
        self._before.append(self._at_once)

    def __str__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"

    __repr__ = __str__


class inference_mode(_BareDecorator):
    """Within it nothing is recorded, now or later: results are inference tensors."""

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):
            return cls()(mode)
        return object.__new__(cls)

    def __init__(self, mode: Any = True) -> None:
        Guard.__init__(self)
        self.mode = bool(mode)
        self._on, self._off = (INFERENCE, GRAD) if mode else (GRAD, INFERENCE)

    def clone(self) -> Guard:
        """Another guard that does the same."""
        return type(self)(self.mode)


def _generator(guard: Guard, function: Callable[..., Any]) -> Any:
    """Runs the generator's own code under the guard, the caller's code without it."""

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with guard.clone():
            inner = function(*args, **kwargs)
        step: Callable[..., Any] = inner.send
        value: Any = None
        while True:
            try:
                with guard.clone():
                    got = step(value)
            except StopIteration as stop:
                return stop.value
            try:
                value = yield got
                step = inner.send
            except GeneratorExit:
                with guard.clone():
                    inner.close()
                raise
            except BaseException as error:
                value, step = error, inner.throw

    return wrapper


def _coroutine(guard: Guard, function: Callable[..., Any]) -> Any:
    @wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        with guard.clone():
            return await function(*args, **kwargs)

    return wrapper


def _async_generator(guard: Guard, function: Callable[..., Any]) -> Any:
    @wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        step: Callable[..., Any] = inner.asend
        value: Any = None
        while True:
            try:
                with guard.clone():
                    got = await step(value)
            except StopAsyncIteration:
                return
            try:
                value = yield got
                step = inner.asend
            except GeneratorExit:
                with guard.clone():
                    await inner.aclose()
                raise
            except BaseException as error:
                value, step = error, inner.athrow

    return wrapper
