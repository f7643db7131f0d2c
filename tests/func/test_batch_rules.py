"""Every sample under vmap: as one call after the other, and without loops but for a few."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import FOLDER, inputs, names_in

import gradfn as torch
from gradfn.func import dispatch, grad, vmap

BASE = inputs()
FILES = sorted(path.stem for path in FOLDER.glob("*.txt"))
KNOWN = [
    line.split(maxsplit=2)
    for line in Path(__file__).with_name("batches.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


def turned(name: str) -> Any:
    """Another array for an input: a second sample."""
    a = BASE[name]
    if a.ndim:
        return a[..., ::-1].copy()
    return a * 0.7 if a.dtype.kind in "fc" else a


def flat(value: Any) -> list[Any]:
    """The tensors in a result."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    return []


def called(expression: str, names: list[str]) -> Callable[..., tuple[Any, ...]]:
    """The sample as a function of its inputs."""
    code = compile(expression, "<sample>", "eval")

    def call(*args: Any) -> tuple[Any, ...]:
        values = dict(zip(names, args, strict=True))
        return tuple(flat(eval(code, {"torch": torch, **values})))

    return call


def loss(call: Any) -> Callable[..., Any]:
    """The sum of squares of all floating results."""

    def number(*args: Any) -> Any:
        return sum((t * t).sum() for t in call(*args) if t.is_floating_point())

    return number


def by_turns(function: Any, args: Any) -> list[Any] | None:
    """What single calls give; None where the second sample cannot be computed."""
    try:
        return [function(*some) for some in args]
    except Exception:
        return None


def compared(function: Any, args: Any, stacked: Any) -> str:
    """'' if vmap gives what single calls do; 'refused' or 'differs'."""
    single = by_turns(function, args)
    if not single or not single[0]:
        return ""
    try:
        together = vmap(function)(*stacked)
    except (RuntimeError, IndexError) as error:
        return "refused" if "vmap" in str(error) else f"differs: {error}"
    for t, *each in zip(together, *single, strict=True):
        want = np.stack([e.detach().numpy() for e in each])
        got = t.detach().numpy()
        same = got.dtype == want.dtype and got.shape == want.shape
        if not (same and np.allclose(got, want, equal_nan=True)):
            return "differs"
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", FILES)
def test_samples_run_in_batches(file: str) -> None:
    found: set[tuple[str, str]] = set()
    for line in (FOLDER / f"{file}.txt").read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if not text or not (names := names_in(text)):
            continue
        args = [
            [torch.tensor(BASE[n]) for n in names],
            [torch.tensor(turned(n)) for n in names],
        ]
        stacked = [torch.stack(list(pair)) for pair in zip(*args, strict=True)]
        call = called(text, names)
        places = tuple(i for i, n in enumerate(names) if BASE[n].dtype.kind == "f")
        runs = [call, grad(loss(call), places)] if places else [call]
        dispatch.LOOPED.clear()
        for run in runs:
            said = compared(run, args, stacked)
            assert not said.startswith("differs"), f"{text}: {said}"
            if said:
                found.add(("refused", text))
        found |= {("looped", row) for row in dispatch.LOOPED}
    known = {(what, which) for what, where, which in KNOWN if where == file}
    assert found == known, "keep batches.txt in step; a rule is better than a loop"


def test_a_loop_warns_once() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    dispatch.LOOPED.discard("masked_scatter")

    def scattered(row: Any) -> Any:
        return row.masked_scatter(row > 1, row * 2)

    with pytest.warns(UserWarning, match="performance drop.*masked_scatter"):
        first = vmap(scattered)(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(vmap(scattered)(x), first)
    assert torch.equal(first, torch.stack([scattered(row) for row in x]))
