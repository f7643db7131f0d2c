"""Packed saved tensors: what a node keeps while hooks hold its tensors."""

from __future__ import annotations

from typing import Any

import pytest
from support import function, leaf

import gradfn as torch
from gradfn.autograd.graph import saved_tensors_hooks


def counting(notes: list[str]) -> Any:
    """Hooks that note each call."""
    return saved_tensors_hooks(
        lambda t: (notes.append("pack"), t)[1], lambda t: (notes.append("unpack"), t)[1]
    )


def test_a_tensor_is_packed_when_it_is_saved() -> None:
    notes: list[str] = []
    with counting(notes):
        leaf().exp()
    assert notes == ["pack"]


def test_a_tensor_is_unpacked_in_each_pass() -> None:
    notes: list[str] = []
    with counting(notes):
        y = leaf(0).exp()
    y.backward(retain_graph=True)
    y.backward()
    assert notes == ["pack", "unpack", "unpack"]


def test_each_argument_is_packed() -> None:
    notes: list[str] = []
    with counting(notes):
        leaf() * leaf()
    assert notes == ["pack", "pack"]


def test_numbers_are_not_packed() -> None:
    notes: list[str] = []
    with counting(notes):
        leaf() * 5
    assert notes == []


def test_what_no_gradient_needs_is_not_packed() -> None:
    notes: list[str] = []
    with counting(notes):
        torch.ones(2) * torch.ones(2)
        leaf() + leaf()
    assert notes == []


def test_the_gradient_is_the_same_as_without_hooks() -> None:
    x, w = leaf(1, 2), leaf(3, 4)
    with counting([]):
        y = (x * w).exp().view(2, 1).squeeze().unbind()[0] ** 2
    (got,) = torch.autograd.grad(y, x, retain_graph=True)
    (want,) = torch.autograd.grad((x * w).exp()[0] ** 2, x)
    assert got.tolist() == want.tolist()


def test_packed_tensors_keep_their_history_for_second_derivatives() -> None:
    x = leaf(3)
    with saved_tensors_hooks(lambda t: t.detach().numpy(), torch.tensor):
        y = x * x * x
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert torch.autograd.grad(g, x)[0].item() == 18


def test_a_packed_result_keeps_its_history_for_second_derivatives() -> None:
    x = leaf(0)
    with saved_tensors_hooks(lambda t: t.detach().numpy(), torch.tensor):
        y = x.exp()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert torch.autograd.grad(g, x)[0].item() == 1


def test_what_was_packed_as_a_copy_may_be_overwritten() -> None:
    x = leaf(3)
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = x * 1
        z = y * y
    y.zero_()
    z.backward()
    assert x.grad.item() == 6


def test_a_functions_saved_tensors_are_unpacked_when_they_are_read() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    notes: list[str] = []
    with counting(notes):
        y = function(forward, lambda ctx, g: g * 2).apply(leaf(1))
    y.backward()
    assert notes == ["pack"]


def test_packed_tensors_are_gone_after_backward() -> None:
    with counting([]):
        y = leaf(0).exp()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_what_unpack_records_is_not_recorded() -> None:
    seen = []

    def unpack(t: Any) -> Any:
        seen.append(torch.is_grad_enabled())
        return t

    with saved_tensors_hooks(lambda t: t, unpack):
        y = leaf(0).exp()
    y.backward()
    assert seen == [False]


# -- one tensor of one node ------------------------------------------------------------


def test_hooks_can_be_put_on_one_saved_tensor() -> None:
    x = leaf(0)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t * 5)
    y.backward()
    assert x.grad.item() == 5


def test_hooks_cannot_be_put_on_it_twice() -> None:
    raw = leaf(0).exp().grad_fn._raw_saved_result
    raw.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        raw.register_hooks(lambda t: t, lambda t: t)


def test_hooks_cannot_be_put_on_what_is_gone() -> None:
    y = leaf(0).exp()
    raw = y.grad_fn._raw_saved_result
    y.backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        raw.register_hooks(lambda t: t, lambda t: t)
