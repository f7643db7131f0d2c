"""Function: what backward may return, and what becomes of it."""

from __future__ import annotations

import re
from collections import namedtuple
from typing import Any

import pytest
from support import function, leaf

import gradfn as torch


def gradient_of(returned: Any, *more: Any) -> Any:
    """x.grad, x = [1, 2], when the backward of f(x, *more) returns something."""
    x = leaf(1, 2)
    made = function(lambda ctx, x, *more: x * 1, lambda ctx, g: returned)
    made.apply(x, *more).sum().backward()
    return x.grad


def refused(kind: Any, text: str, returned: Any, *more: Any) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        gradient_of(returned, *more)


def test_one_argument_one_bare_gradient() -> None:
    assert gradient_of(torch.tensor([5.0, 6.0])).tolist() == [5, 6]


def test_one_argument_a_tuple_of_one() -> None:
    assert gradient_of((torch.tensor([5.0, 6.0]),)).tolist() == [5, 6]


def test_none_is_no_gradient() -> None:
    assert gradient_of(None) is None


def test_fewer_gradients_than_arguments_are_refused() -> None:
    text = "MineBackward returned an incorrect number of gradients (expected 2, got 1)"
    refused(RuntimeError, text, torch.ones(2), 3)


def test_more_gradients_than_arguments_are_refused() -> None:
    text = "returned an incorrect number of gradients (expected 1, got 2)"
    refused(RuntimeError, text, (torch.ones(2), torch.ones(2)))


def test_more_gradients_are_fine_if_they_are_none() -> None:
    assert gradient_of((torch.ones(2), None, None)).tolist() == [1, 1]


def test_a_gradient_for_a_number_is_dropped() -> None:
    assert gradient_of((torch.ones(2), torch.ones(2)), 3).tolist() == [1, 1]


@pytest.mark.parametrize("flag", [True, "text", None])
def test_a_gradient_for_anything_else_is_refused(flag: Any) -> None:
    text = "returned a gradient different than None at position 2"
    refused(RuntimeError, text, (torch.ones(2), torch.ones(2)), flag)


def test_that_refusal_has_pytorchs_words() -> None:
    text = (
        "function MineBackward returned a gradient different than None at position 2, "
        "but the corresponding forward input was not a Variable"
    )
    refused(RuntimeError, text, (torch.ones(2), torch.ones(2)), True)


def test_a_gradient_for_a_tensor_that_wants_none_is_dropped() -> None:
    t = torch.ones(3)
    assert gradient_of((torch.ones(2), torch.ones(5)), t).tolist() == [1, 1]
    assert t.grad is None


@pytest.mark.parametrize("wrong", [5, "text", [1.0], {}])
def test_a_gradient_that_is_no_tensor_is_refused(wrong: Any) -> None:
    text = f"expected Variable or None (got {type(wrong).__name__})"
    refused(RuntimeError, text, wrong)


def test_a_gradient_of_a_wrong_shape_is_refused() -> None:
    text = "invalid gradient at index 0 - got [3] but expected shape compatible with [2]"
    refused(RuntimeError, text, torch.ones(3))


def test_the_refusal_names_the_argument_not_the_edge() -> None:
    x = leaf()
    made = function(lambda ctx, n, x: x * n, lambda ctx, g: (None, torch.ones(3)))
    with pytest.raises(RuntimeError, match="invalid gradient at index 1"):
        made.apply(2, x).sum().backward()


def test_a_gradient_of_a_broadcast_shape_is_summed() -> None:
    assert gradient_of(torch.ones(4, 2)).tolist() == [4, 4]


def test_a_gradient_is_summed_where_the_argument_has_one_element() -> None:
    x = leaf(1)
    made = function(lambda ctx, x: x.expand(3) * 1, lambda ctx, g: g)
    made.apply(x).sum().backward()
    assert x.grad.tolist() == [3]


def test_a_gradient_gets_the_dtype_of_the_argument() -> None:
    assert gradient_of(torch.ones(2, dtype=torch.float64)).dtype is torch.float32


def test_a_complex_gradient_of_a_real_argument_loses_its_imaginary_part() -> None:
    assert gradient_of(torch.tensor([1 + 2j, 3 + 4j])).tolist() == [1, 3]


def test_an_integer_gradient_is_cast() -> None:
    assert gradient_of(torch.tensor([1, 2])).tolist() == [1, 2]


def test_a_namedtuple_of_gradients_is_a_tuple() -> None:
    pair = namedtuple("pair", "x n")
    assert gradient_of(pair(torch.ones(2), None), 3).tolist() == [1, 1]


def test_the_same_tensor_twice_gets_both_gradients() -> None:
    x = leaf(3)
    made = function(lambda ctx, a, b: a + 2 * b, lambda ctx, g: (g, 2 * g))
    made.apply(x, x).backward()
    assert x.grad.item() == 3


def test_two_arguments_may_get_the_same_gradient_object() -> None:
    a, b = leaf(), leaf()
    function(lambda ctx, a, b: a + b, lambda ctx, g: (g, g)).apply(a, b).sum().backward()
    a.grad.add_(1)
    assert (a.grad.tolist(), b.grad.tolist()) == ([2, 2], [1, 1])
