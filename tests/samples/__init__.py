"""Calls of every op, one a line, that all tests of ops share.

A line in a `.txt` file here is an expression over `torch` and the inputs below. It is
evaluated with gradfn (tests/ops) and with PyTorch (tests/parity). A `#` starts a comment;
`# not smooth` says that differences of its values would not approach the derivative.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent


def inputs() -> dict[str, np.ndarray[Any, Any]]:
    """The arrays by the names that samples use; float64 and complex128 ones differ."""
    rng = np.random.default_rng(7)
    q = rng.normal(size=(4, 4))

    def cplx(*shape: int) -> Any:
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    return {
        "x": rng.normal(size=(3, 4)),
        "y": rng.normal(size=(3, 4)),
        "p": rng.uniform(0.5, 2, size=(3, 4)),  # positive
        "u": rng.uniform(0.1, 0.9, size=(3, 4)),  # inside (0, 1)
        "r": rng.normal(size=4),  # broadcasts as a row
        "c": rng.normal(size=(3, 1)),  # as a column
        "s": rng.normal(size=()),  # 0-d
        "t": rng.normal(size=(2, 3, 4)),
        "m": rng.normal(size=(4, 5)),
        "B": rng.normal(size=(2, 4, 5)),  # a batch of matrices
        "q": q,
        "h": q @ q.T + 4 * np.eye(4),  # symmetric, positive definite
        "z": cplx(3, 4),
        "w": cplx(3, 4),
        "i": rng.integers(-5, 6, size=(3, 4)),
        "k": rng.integers(1, 6, size=(3, 4)),
        "j": rng.integers(0, 3, size=(3, 4)),  # indices into the first axis of x
        "l": np.array([2, 0, 1, 2]),  # indices into it, one twice
        "b": rng.random((3, 4)) > 0.5,
        "g": rng.random(4) > 0.3,
        "e": np.empty((0, 4)),
        "f": rng.normal(size=(3, 4)).astype(np.float32),
        "o": np.array([0.0, 1.0, -1.0, 2.0, 0.5]),  # zeros and ones
        "n": np.array([np.nan, np.inf, -np.inf, 0.0, 1.0]),
    }


def lines() -> list[tuple[str, str]]:
    """Every expression and its comment."""
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            text, _, comment = line.partition("#")
            if text.strip():
                found.append((text.strip(), comment.strip()))
    return found


def samples() -> list[str]:
    """Every expression."""
    return [text for text, _ in lines()]


def smooth_samples() -> list[str]:
    """Those whose derivatives can be compared with differences, in double precision."""
    single = ("f", "float", "float32", "half", "complex64")
    return [
        text
        for text, comment in lines()
        if comment != "not smooth" and not any(n in names_of(text) for n in single)
    ]


def names_of(expression: str) -> tuple[str, ...]:
    """All names in an expression."""
    return compile(expression, "<sample>", "eval").co_names


def names_in(expression: str) -> list[str]:
    """The inputs that an expression uses, in the order of the code's names."""
    known = inputs()
    return [name for name in names_of(expression) if name in known]
