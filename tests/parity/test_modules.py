"""Every module goes the same way as PyTorch's over twenty steps of training."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gradfn
import gradfn.nn
import gradfn.optim

STEPS = 20
TEXT = (Path(__file__).parent / "modules.txt").read_text(encoding="utf-8")
LINES = [line for line in TEXT.splitlines() if not line.startswith("#")]


def numbers(seed: int) -> dict[str, Any]:
    """The makers of arrays that lines name."""
    rng = np.random.default_rng(seed)
    return {
        "R": lambda *shape: rng.standard_normal(shape),
        "P": lambda *shape: rng.uniform(0.1, 0.9, shape),
        "I": lambda n, *shape: rng.integers(0, n, shape),
        "A": np.arange,
        "LP": lambda *shape: np.log(rng.dirichlet(np.ones(shape[-1]), shape[:-1])),
    }


def tensors(library: Any, x: Any) -> Any:
    """The arrays in `x` as tensors, those of floats as leaves that require grad."""
    if isinstance(x, (tuple, list)):
        return type(x)(tensors(library, v) for v in x)
    t = library.tensor(x)
    return t.requires_grad_() if t.is_floating_point() else t


def flat(x: Any) -> list[Any]:
    """All tensors in nested sequences."""
    if isinstance(x, (tuple, list)):
        return [t for v in x for t in flat(v)]
    return [] if x is None else [x]


def made(library: Any, text: str) -> Any:
    """The module of a line, in float64."""
    space = {k: lambda *s, f=f: library.tensor(f(*s)) for k, f in numbers(1).items()}
    found = eval(text, {**vars(library.nn), **space})
    return found.double()


def array(t: Any) -> Any:
    return t.detach().numpy().copy()


def trained(library: Any, module: Any, arguments: Any) -> list[Any]:
    """What there is to compare after each step, and in evaluation."""
    inputs = tensors(library, arguments)
    leaves = [t for t in flat(inputs) if t.requires_grad]
    optimizer = library.optim.SGD([*module.parameters(), *leaves], lr=0.02)
    seen = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        outs = flat(module(*inputs))
        loss = sum((t * t + t.cos()).mean() for t in outs if t.requires_grad)
        loss.backward()
        optimizer.step()
        seen += [array(t) for t in [loss, *outs, *leaves, *module.parameters()]]
        for t in leaves:  # what has to stay within bounds does
            if "P(" in module._line:
                t.data.clamp_(0.1, 0.9)
    seen += [array(t) for t in module.state_dict().values()]
    module.eval()
    return seen + [array(t) for t in flat(module(*inputs))]


@pytest.mark.parametrize("line", LINES)
def test_twenty_steps(line: str) -> None:
    text, _, given = line.partition(" | ")
    arguments = eval(f"({given},)", numbers(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, mine = made(torch, text), made(gradfn, text)
        assert repr(mine) == repr(theirs)
        state = {k: gradfn.tensor(array(v)) for k, v in theirs.state_dict().items()}
        assert list(mine.state_dict()) == list(state)
        mine.load_state_dict(state)
        mine._line = theirs._line = line
        expected = trained(torch, theirs, arguments)
        found = trained(gradfn, mine, arguments)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_every_module_is_compared() -> None:
    random = {"RReLU", "Dropout", "FractionalMaxPool2d", "FractionalMaxPool3d"}
    elsewhere = {"Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList"}
    elsewhere |= {"ParameterDict", "RNNBase", "RNNCellBase", "DataParallel", *random}
    elsewhere |= {"TransformerEncoder", "TransformerDecoder"}  # parts of Transformer
    elsewhere |= {
        name for name in vars(gradfn.nn) if name.startswith("Lazy")
    }  # test_lazy
    named = {line.lstrip("# ").partition("(")[0] for line in TEXT.splitlines()}
    shown = {
        name
        for name, value in vars(gradfn.nn).items()
        if isinstance(value, type) and issubclass(value, gradfn.nn.Module)
    }
    assert shown - elsewhere - named == set()
