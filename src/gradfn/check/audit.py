"""What an audit is, and how it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from gradfn.check.subject import Example, Subject
from gradfn.check.verdict import FAIL, PASS, SKIP, WARN

__all__ = ["Audit", "Finding", "audit", "fail", "ok", "skip", "warn"]


class Finding(NamedTuple):
    """What an audit found with one example."""

    level: str
    cause: str = ""
    text: str = ""


def ok(text: str = "") -> Finding:
    """All is well."""
    return Finding(PASS, "", text)


def fail(cause: str, text: str) -> Finding:
    """Something is wrong."""
    return Finding(FAIL, cause, text)


def warn(cause: str, text: str) -> Finding:
    """Something may be wrong, or will be elsewhere."""
    return Finding(WARN, cause, text)


def skip(text: str) -> Finding:
    """There is nothing to look at."""
    return Finding(SKIP, "", text)


@dataclass(frozen=True)
class Audit:
    """One question to a Function."""

    name: str
    question: str
    run: Callable[[Subject, Example], Finding]
    after: tuple[str, ...]  # audits that must not have failed for this one to tell more
    once: bool  # is one example enough?

    def __call__(self, subject: Subject, example: Example) -> Finding:
        """What it finds with an example. Raises what the Function raises."""
        return self.run(subject, example)


def audit(
    name: str, *, after: tuple[str, ...] = (), once: bool = False
) -> Callable[[Callable[[Subject, Example], Finding]], Audit]:
    """Makes an Audit of a function. The first line of its docstring is its question."""

    def made(run: Callable[[Subject, Example], Finding]) -> Audit:
        question = " ".join((run.__doc__ or "").split("\n\n")[0].split())
        return Audit(name, question, run, after, once)

    return made
