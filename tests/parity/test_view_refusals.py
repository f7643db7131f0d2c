"""Views of views, made in every way and order: is a write refused, and in which words?"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

import gradfn

STEPS = [
    ("plain", "grad"),
    ("plain", "no_grad"),
    ("plain", "inference"),
    ("many", "grad"),
    ("many", "no_grad"),
    ("many", "inference"),
    ("function", "grad"),
]
WAYS = [way for n in (1, 2, 3) for way in product(STEPS, repeat=n)]


def step(library: Any, t: Any, how: str, mode: str) -> Any:
    """A view of `t`, made in a mode."""
    modes = {"grad": library.enable_grad, "no_grad": library.no_grad}
    with modes.get(mode, library.inference_mode)():
        if how == "plain":
            return t.view(t.shape)
        return t.unbind(0)[0] if how == "many" else function(library).apply(t)


def function(library: Any) -> Any:
    """A custom Function that gives a view of its input."""

    class Same(library.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view(x.shape)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    return Same


def refusals(library: Any, way: Any) -> list[str]:
    """What is said of a view whose base was written: asked for its history, written, used."""
    leaf = library.ones(2, 2, 2, 2, requires_grad=True)
    base = leaf * 1
    view = base
    for how, mode in way:
        view = step(library, view, how, mode)
    with library.no_grad():
        base.add_(0)
    said = []
    for use in (lambda: view.grad_fn, lambda: view.mul_(2), lambda: view + 1):
        try:
            use()
            said.append("no refusal")
        except RuntimeError as error:
            said.append(str(error)[:60])
    return said


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_refused_in_the_same_words(way: Any) -> None:
    assert refusals(gradfn, way) == refusals(torch, way)
