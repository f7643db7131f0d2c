"""What an error of the engine, or of a Function's method, says of the Function."""

from __future__ import annotations

import re

from gradfn.check.audit import Finding, fail

# A piece of the message, the cause. The first that is found counts; both libraries have
# these phrases in common.
_PHRASES = {
    r"incorrect number of gradients": "number of gradients",
    r"gradient different than None": "gradient for a non-tensor",
    r"expected (Variable|Tensor) or None": "gradient type",
    r"invalid gradient at index \d+ - (got|expected)": "gradient shape",
    r"incorrect number of forward gradients|number of forward gradients": "number of tangents",
    r"view size is not compatible|is not compatible with input tensor's size and stride|"
    r"\.contiguous\(\)": "needs contiguous",
    r"modified by an inplace operation": "overwrites what it saved",
    r"marked as dirty during the forward": "mark_dirty",
    r"mark_dirty takes inputs": "mark_dirty",
    r"leaf Variable that requires grad": "mark_dirty",
    r"save_for_backward can only save": "save_for_backward",
    r"must override the setup_context": "needs setup_context",
    r"implement (either )?the backward": "no backward",
    r"uses a value that was computed inside its forward": "saved intermediate",
}


def cause_of(error: BaseException) -> str:
    """A short name of what an error is about; "raises" if it is unknown."""
    text = str(error)
    for phrase, cause in _PHRASES.items():
        if re.search(phrase, text):
            return cause
    return "raises"


def words(error: BaseException) -> str:
    """The type and the first line of an error, not too long."""
    first = (str(error).strip().splitlines() or [""])[0]
    short = first if len(first) <= 160 else first[:157] + "..."
    return f"{type(error).__name__}: {short}"


def raised(error: BaseException, where: str, cause: str = "") -> Finding:
    """The Finding for an error in `where`; `cause` if the error itself tells none."""
    found = cause_of(error)
    named = cause if cause and found == "raises" else found
    return fail(named, f"{where} raises {words(error)}")
