"""Views of views, made in every way and order: is a write refused, and in which words?"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

import gradfn

WAYS = [
    w
    for n in (1, 2, 3)
    for w in product(["plain", "many", "no_grad", "inference", "function"], repeat=n)
]


def step(library: Any, t: Any, way: str) -> Any:
    """A view of `t`."""
    if way == "plain":
        return t.view(t.shape)
    if way == "many":
        return t.unbind(0)[0]
    if way == "function":
        return function(library).apply(t)
    with library.no_grad() if way == "no_grad" else library.inference_mode():
        return t.view(t.shape)


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


def refusals(library: Any, ways: tuple[str, ...]) -> list[str]:
    """What is said of a view whose base was written: asked for its history, written, used."""
    leaf = library.ones(2, 2, 2, 2, requires_grad=True)
    base = leaf * 1
    view = base
    for way in ways:
        view = step(library, view, way)
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


@pytest.mark.parametrize("ways", WAYS, ids="-".join)
def test_refused_in_the_same_words(ways: tuple[str, ...]) -> None:
    assert refusals(gradfn, ways) == refusals(torch, ways)
