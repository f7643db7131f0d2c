"""Runs the audits on a Function and gathers their verdicts."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from gradfn.check.audit import Audit, Finding
from gradfn.check.audits import AUDITS
from gradfn.check.errors import raised
from gradfn.check.examples import collect, works
from gradfn.check.shrink import smallest, written
from gradfn.check.subject import Example, Subject, random_state
from gradfn.check.verdict import FAIL, PASS, SKIP, Report, Verdict

Progress = Callable[[str], None]  # is told the name of each audit before it runs


def library_of(cls: Any) -> Any:
    """The module, gradfn or torch, whose Function a class derives from.

    TypeError if it is neither's.
    """
    for name in ("gradfn", "torch"):
        module = sys.modules.get(name)
        base = getattr(getattr(module, "autograd", None), "Function", None)
        if inspect.isclass(base) and inspect.isclass(cls) and issubclass(cls, base):
            return module
    raise TypeError(
        f"check takes a subclass of autograd.Function, not {cls!r}. Of an ordinary function, "
        "gradcheck compares the gradients."
    )


def check(
    function: Any,
    *examples: Any,
    skip: Collection[str] = (),
    only: Collection[str] = (),
    progress: Progress = lambda name: None,
) -> Report:
    """Audits a custom Function: are its derivatives right, and does it behave?

    `function` is a subclass of gradfn's or of PyTorch's `autograd.Function`. Each example
    is a tuple of arguments for `apply`, or a tensor if there is one argument. If a tensor
    in it requires grad, only those that do are differentiated; else all floating ones are.
    Without examples, those of a static method `examples()` are taken; without that,
    arguments are found by trying, the same ones in each run.

    `skip` and `only` name audits to leave out or to run alone; a Function can leave out
    some of its own accord with a class attribute `check_skip`, as those with a gradient
    that is not a derivative (a straight-through estimator) must.

    Returns a Report, which is true if no audit failed and prints a line an audit. Raises
    TypeError for what is no Function and for examples with too few arguments, ValueError
    for names of audits that there are not.
    """
    left_out = {*skip, *getattr(function, "check_skip", ())}
    for name in (*left_out, *only):
        if name not in [a.name for a in AUDITS]:
            known = ", ".join(a.name for a in AUDITS)
            raise ValueError(f"there is no audit {name!r}; there are: {known}")
    torch = library_of(function)
    subject = Subject(torch, function)
    began = time.perf_counter()
    with random_state(torch), warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("ignore")
        verdicts = _verdicts(subject, examples, left_out, only, progress)
    return Report(
        function.__qualname__,
        subject.library,
        *_source(function),
        [written(subject, e) for e in subject.examples],
        verdicts,
        time.perf_counter() - began,
    )


def _source(function: Any) -> tuple[str, int]:
    try:
        return inspect.getsourcefile(function) or "", inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        return "", 0


def _verdicts(
    subject: Subject, given: Sequence[Any], left_out: Any, only: Any, progress: Progress
) -> list[Verdict]:
    found = prepare(subject, given)
    if found:
        return [found]
    verdicts: list[Verdict] = []
    for audit in AUDITS:
        if (only and audit.name not in only) or audit.name in left_out:
            if audit.name in left_out:
                verdicts.append(Verdict(audit.name, SKIP, "left out"))
            continue
        progress(audit.name)
        failed = [v.audit for v in verdicts if v.level == FAIL]
        waits = [name for name in audit.after if name in failed]
        waits += [n for n in audit.after if n in left_out and n == "first order"]
        if waits:
            verdicts.append(Verdict(audit.name, SKIP, f"after {waits[0]}"))
            continue
        verdicts.append(verdict(subject, audit))
    return verdicts


def prepare(subject: Subject, given: Sequence[Any]) -> Verdict | None:
    """Finds the examples; a failing verdict if there are none, or forward raises."""
    examples = collect(subject, given)
    if not examples and subject.problem:
        found = raised(subject.problem, "forward")
        return Verdict("examples", FAIL, found.text, found.cause)
    if not examples:
        return Verdict(
            "examples",
            FAIL,
            "no arguments were found that forward takes: give examples, or a static method "
            "examples() that returns a list of tuples of arguments",
            "no example",
        )
    for example in examples:
        usual = usable(subject, example)
        if isinstance(usual, Finding):
            return Verdict(
                "examples", FAIL, usual.text, usual.cause, written(subject, example)
            )
        subject.examples.append(usual)
    return None


def usable(subject: Subject, example: Example) -> Example | Finding:
    """The example in double precision if forward takes that; what it raises if not."""
    double = subject.double(example)
    for other in (double, example):
        try:
            subject.call(other)
        except Exception as error:
            problem = error
        else:
            return other
        if "leaf" in str(problem) and not subject.writes:
            subject.writes = True
            return usable(subject, example)
    return raised(problem, "forward", "forward raises")


def verdict(subject: Subject, audit: Audit) -> Verdict:
    """The worst that an audit finds with any example, with the smallest that shows it."""
    worst: Verdict | None = None
    for example in subject.examples[: 1 if audit.once else None]:
        found = finding(subject, audit, example)
        shown = ""
        if found.level == FAIL:
            cause = found.cause

            def shows(other: Example, cause: str = cause) -> bool:
                if not works(subject, other):
                    return False
                again = finding(subject, audit, other)
                return again.level == FAIL and again.cause == cause

            least = smallest(subject, example, shows)
            found, shown = finding(subject, audit, least), written(subject, least)
        now = Verdict(audit.name, found.level, found.text, found.cause, shown)
        if worst is None or now.rank > worst.rank:
            worst = now
        if found.level == FAIL:
            break
    return worst or Verdict(audit.name, PASS)


def finding(subject: Subject, audit: Audit, example: Example) -> Finding:
    """What an audit finds with an example, where the Function may raise at any time."""
    try:
        with np.errstate(all="ignore"):
            return audit.run(subject, example)
    except Exception as error:
        if audit.name != "gradients" and not reached(subject, example):
            return Finding(SKIP, "", "the call itself raises")
        return raised(error, audit.name)


def reached(subject: Subject, example: Example) -> bool:
    """Does the example run forward and backward?"""
    try:
        call = subject.call(example)
        subject.gradients(call, subject.seeds(call.live))
    except Exception:
        return False
    return True
