"""Looks over the shoulder of a Function: what its methods are given and give back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from gradfn.check.subject import Subject


class Seen(NamedTuple):
    """A call of one of the Function's methods."""

    method: str
    args: tuple[Any, ...]  # ctx among them
    result: Any


Notice = Callable[[str, tuple[Any, ...]], Callable[[Any], None]]


def spied(subject: Subject, notice: Notice) -> Any:
    """A subclass whose methods tell `notice(method, args)` before they run.

    What `notice` returns is called with the method's result.
    """
    methods = ["forward", subject.backward_name]
    methods += [m for m in ("setup_context", "jvp") if subject.overrides(m)]
    body = {m: staticmethod(_told(subject.cls, m, notice)) for m in methods}
    return type(subject.cls)(subject.cls.__name__, (subject.cls,), body)


def _told(cls: Any, method: str, notice: Notice) -> Any:
    function = getattr(cls, method)

    @functools.wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        done = notice(method, args)
        result = function(*args, **kwargs)
        done(result)
        return result

    return told


def log(subject: Subject) -> tuple[Any, list[Seen]]:
    """Such a subclass, and the list in which it notes all calls."""
    calls: list[Seen] = []

    def notice(method: str, args: tuple[Any, ...]) -> Callable[[Any], None]:
        return lambda result: calls.append(Seen(method, args, result))

    return spied(subject, notice), calls
