"""Bad arguments of every op: PyTorch's kind of exception, and none taken in silence.

Not every one is. What PyTorch says depends on which of several checks comes first, and on
which dtypes a kernel was compiled for; so a share of them may differ, a small one.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import torch
from bad_input import some
from samples import inputs, samples

import gradfn

KINDS = (RuntimeError, TypeError, IndexError, ValueError)


def error_of(library: Any, call: str, arrays: Any) -> Exception | None:
    """What the call raises."""
    given = {k: library.tensor(v) for k, v in arrays.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, {"torch": library, **given})
    except Exception as error:
        return error
    return None


def test_as_pytorch() -> None:
    arrays, counts, examples = inputs(), Counter[str](), {}
    for sample in samples():
        for call in some(sample, 4, seed=1):
            theirs = error_of(torch, call, arrays)
            if theirs is None or not isinstance(theirs, KINDS) or "MKL" in str(theirs):
                continue  # right after all, or an accident of PyTorch's own
            mine = error_of(gradfn, call, arrays)
            if mine is None:
                found = "in silence"
            elif isinstance(mine, type(theirs)) or isinstance(theirs, type(mine)):
                found = "alike"
            else:
                found = "another kind"
            counts[found] += 1
            examples.setdefault(found, []).append(call)
    total = sum(counts.values())
    assert total > 2000
    assert counts["in silence"] <= 0.03 * total, examples["in silence"]
    assert counts["another kind"] <= 0.04 * total, examples["another kind"]
