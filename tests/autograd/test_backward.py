"""backward and grad: roots, seeds, inputs, and what is kept for another pass."""

from __future__ import annotations

from typing import Any

import pytest
from support import leaf

import gradfn as torch
from gradfn.autograd import backward, grad
from gradfn.autograd.graph import get_gradient_edge

# -- roots -----------------------------------------------------------------------------


def test_a_scalar_needs_no_gradient() -> None:
    x = leaf(1, 2)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_element_of_any_shape_is_a_scalar(shape: Any) -> None:
    x = torch.ones(shape, requires_grad=True)
    (x * 3).backward()
    assert x.grad.item() == 3


def test_more_elements_need_a_gradient() -> None:
    with pytest.raises(RuntimeError, match=r"only for scalar outputs.*\[2\].*\.sum\(\)"):
        (leaf() * 2).backward()


def test_a_gradient_is_given_for_more_elements() -> None:
    x = leaf(1, 2)
    (x * 2).backward(torch.tensor([10.0, 20.0]))
    assert x.grad.tolist() == [20, 40]


def test_a_gradient_of_another_shape_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\]"):
        (leaf() * 2).backward(torch.ones(3))


def test_a_gradient_that_is_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="gradients can be either Tensors or None"):
        backward(leaf() * 2, [[1.0, 1.0]])


def test_a_complex_gradient_of_a_real_output_is_refused() -> None:
    with pytest.raises(RuntimeError, match="required to have the same dtype"):
        (leaf() * 2).backward(torch.tensor([1j, 1j]))


def test_a_complex_scalar_is_refused() -> None:
    with pytest.raises(RuntimeError, match="only for real scalar outputs"):
        (leaf(1) * 1j).backward()


def test_what_requires_no_grad_is_refused_with_its_place() -> None:
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
        backward([leaf(1) * 2, torch.ones(1)])


def test_several_roots_add_up() -> None:
    x = leaf(3)
    backward([x * 2, x * x])
    assert x.grad.item() == 8


def test_several_roots_take_a_gradient_each() -> None:
    x = leaf(3)
    backward([x * 2, x * x], [torch.tensor([10.0]), None])
    assert x.grad.item() == 26


def test_the_gradients_must_be_as_many_as_the_roots() -> None:
    with pytest.raises(RuntimeError, match="2 tensors and 1 gradients"):
        backward([leaf() * 2, leaf() * 2], [torch.ones(2)])


def test_the_same_root_twice_counts_twice() -> None:
    x = leaf(3)
    y = x * 2
    backward([y, y])
    assert x.grad.item() == 4


def test_a_root_may_stand_inside_the_graph_of_another() -> None:
    x = leaf(1)
    y = x * 2
    backward([y, y * 3])
    assert x.grad.item() == 8


def test_a_root_may_stand_inside_the_graph_of_one_named_earlier() -> None:
    x = leaf(1)
    y = x * 2
    backward([y * 3, y])
    assert x.grad.item() == 8


def test_a_leaf_can_be_a_root() -> None:
    x = leaf(5)
    x.backward()
    assert x.grad.item() == 1


def test_a_leaf_can_be_a_root_beside_what_was_made_of_it() -> None:
    x = leaf(5)
    backward([x, x * 2])
    assert x.grad.item() == 3


def test_a_gradient_edge_can_be_a_root() -> None:
    x = leaf(1, 2)
    backward([get_gradient_edge(x * 2)], [torch.ones(2)])
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("seed", [torch.ones(3), torch.tensor([1j, 1j])])
def test_a_gradient_that_does_not_fit_an_edge_is_refused(seed: Any) -> None:
    edge = get_gradient_edge(leaf(1, 2) * 2)
    with pytest.raises(RuntimeError, match=r"Mismatch in (shape|dtype)"):
        backward([edge], [seed])


def test_an_output_of_several_can_be_a_root_alone() -> None:
    x = leaf(1, 2)
    (x * 2).unbind()[1].backward()
    assert x.grad.tolist() == [0, 2]


def test_no_root_at_all_does_nothing() -> None:
    assert backward([]) is None


def test_the_seed_is_not_changed() -> None:
    x, seed = leaf(1, 2), torch.ones(2)
    backward([x * 2, x * 3], [seed, seed])
    (x * 2).backward(seed)
    assert seed.tolist() == [1, 1]


def test_the_seed_is_not_taken_for_grad() -> None:
    x, seed = leaf(1, 2), torch.ones(2)
    x.backward(seed)
    x.grad.add_(1)
    assert seed.tolist() == [1, 1]


def test_a_seed_of_another_dtype_is_cast() -> None:
    x = leaf(1, 2)
    (x * 2).backward(torch.ones(2, dtype=torch.float64))
    assert x.grad.dtype is torch.float32


def test_grad_variables_is_the_old_name_of_grad_tensors() -> None:
    x = leaf(1, 2)
    with pytest.warns(FutureWarning, match="Use `grad_tensors`"):
        backward(x * 2, grad_variables=torch.ones(2))
    assert x.grad.tolist() == [2, 2]


# -- accumulation ----------------------------------------------------------------------


def test_a_second_backward_adds() -> None:
    x = leaf(1, 2)
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_backward_returns_nothing() -> None:
    assert (leaf(1) * 2).backward() is None


def test_what_did_not_take_part_has_no_grad() -> None:
    x, other = leaf(1), leaf(1)
    (x * 2).backward()
    assert other.grad is None


def test_backward_works_under_no_grad() -> None:
    x = leaf(1)
    y = x * 2
    with torch.no_grad():
        y.backward()
    assert x.grad.item() == 2


# -- backward(inputs=…) ----------------------------------------------------------------


def test_inputs_restrict_backward_to_these_leaves() -> None:
    x, w = leaf(2), leaf(3)
    (x * w).backward(inputs=[x])
    assert (x.grad.item(), w.grad) == (3, None)


def test_a_single_input_needs_no_list() -> None:
    x, w = leaf(2), leaf(3)
    (x * w).backward(inputs=x)
    assert (x.grad.item(), w.grad) == (3, None)


def test_an_input_may_be_computed() -> None:
    x = leaf(2)
    y = x * 3
    (y * y).backward(inputs=[y])
    assert (y.grad.item(), x.grad) == (12, None)


def test_a_computed_input_and_the_leaf_behind_it_may_both_be_inputs() -> None:
    x = leaf(2)
    y = x * 3
    (y * y).backward(inputs=[y, x])
    assert (y.grad.item(), x.grad.item()) == (12, 36)


def test_an_input_that_was_not_used_gets_no_grad() -> None:
    x, w = leaf(2), leaf(3)
    (x * 2).backward(inputs=[w])
    assert w.grad is None


def test_inputs_must_not_be_empty() -> None:
    with pytest.raises(RuntimeError, match=r"argument to `backward.*cannot be empty"):
        (leaf(1) * 2).backward(inputs=[])


def test_an_input_must_require_grad() -> None:
    with pytest.raises(RuntimeError, match="does not require grad"):
        (leaf(1) * 2).backward(inputs=[torch.ones(1)])


# -- grad ------------------------------------------------------------------------------


def test_grad_returns_a_tuple() -> None:
    x = leaf(3)
    got = grad(x * x, x)
    assert (type(got), got[0].item()) == (tuple, 6)


def test_grad_leaves_dot_grad_alone() -> None:
    x = leaf(3)
    grad(x * x, x)
    assert x.grad is None


def test_grad_answers_in_the_order_of_the_inputs() -> None:
    x, w = leaf(2), leaf(3)
    assert [g.item() for g in grad(x * w, [w, x])] == [2, 3]


def test_grad_by_the_same_input_twice_gives_two_tensors() -> None:
    x = leaf(3)
    a, b = grad(x * x, [x, x])
    a.zero_()
    assert b.item() == 6


def test_grad_by_a_computed_tensor() -> None:
    y = leaf(2) * 3
    assert grad(y * y, y)[0].item() == 12


def test_grad_by_a_tensor_and_what_it_was_made_of() -> None:
    x = leaf(2)
    y = x * 3
    assert [g.item() for g in grad(y * y, [x, y])] == [36, 12]


def test_grad_of_a_tensor_by_itself_is_its_seed() -> None:
    x = leaf(2)
    y = x * 3
    assert (grad(y, y)[0].item(), grad(x, x)[0].item()) == (1, 1)


def test_grad_by_a_gradient_edge() -> None:
    y = leaf(2) * 3
    assert grad(y * y, get_gradient_edge(y))[0].item() == 12


def test_grad_by_one_output_of_several() -> None:
    a, b = (leaf(1, 2) * 2).unbind()
    assert [g.item() for g in grad(a * b, [b, a])] == [2, 4]


def test_grad_by_what_requires_no_grad_is_refused() -> None:
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not"):
        grad(leaf(1) * 2, torch.ones(1))


def test_grad_by_nothing_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"argument to `grad.*cannot be empty"):
        grad(leaf(1) * 2, [])


def test_nothing_depends_on_no_output() -> None:
    assert grad([], leaf(1), allow_unused=True) == (None,)


def test_grad_of_several_outputs_is_of_their_sum() -> None:
    x = leaf(3)
    assert grad([x * 2, x * x], x)[0].item() == 8


def test_an_unused_input_is_refused_with_its_place() -> None:
    x, w = leaf(1), leaf(1)
    with pytest.raises(RuntimeError, match=r"Tensor at index 1 appears to not have been"):
        grad(x * 2, [x, w])


def test_allow_unused_gives_none() -> None:
    x, w = leaf(1), leaf(1)
    assert grad(x * 2, [x, w], allow_unused=True)[1] is None


def test_materialize_grads_gives_zeros() -> None:
    x, w = leaf(1), leaf(1, 2)
    assert grad(x * 2, [x, w], materialize_grads=True)[1].tolist() == [0, 0]


def test_materialize_grads_contradicts_allow_unused_false() -> None:
    with pytest.raises(
        ValueError, match="Expected allow_unused to be True or not passed"
    ):
        grad(leaf(1) * 2, leaf(1), materialize_grads=True, allow_unused=False)


def test_an_input_behind_another_does_not_count_as_unused() -> None:
    x = leaf(2)
    y = x.detach().requires_grad_()
    assert grad(x * y, [x, y])[1].item() == 2


def test_what_grad_returns_may_be_written() -> None:
    x = leaf(1, 2)
    (g,) = grad((x + 1).sum(), x)
    g.add_(5)
    assert g.tolist() == [6, 6]


# -- another pass ----------------------------------------------------------------------


def test_a_second_pass_is_refused_where_something_was_saved() -> None:
    x = leaf(1)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="graph a second time"):
        y.backward()


def test_a_second_pass_is_fine_where_nothing_was_saved() -> None:
    x = leaf(1)
    y = x + 1
    y.backward()
    y.backward()
    assert x.grad.item() == 2


def test_retain_graph_allows_a_second_pass() -> None:
    x = leaf(1)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 4


def test_retain_graph_holds_for_one_pass_only() -> None:
    x = leaf(1)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="graph a second time"):
        y.backward()


def test_create_graph_retains_the_graph() -> None:
    x = leaf(1)
    y = x * x
    grad(y, x, create_graph=True)
    assert grad(y, x)[0].item() == 2


def test_retain_graph_false_overrules_create_graph() -> None:
    x = leaf(1)
    y = x * x
    grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match="graph a second time"):
        grad(y, x)


def test_a_partial_pass_frees_only_what_it_walked() -> None:
    x, w = leaf(2), leaf(3)
    a, b = x * x, w * w
    y = a + b
    grad(y, x)
    assert grad(y, w)[0].item() == 6


def test_two_results_share_the_part_that_both_need() -> None:
    x = leaf(2)
    y = x * x
    a, b = y + 1, y + 2
    a.backward()
    with pytest.raises(RuntimeError, match="graph a second time"):
        b.backward()


# -- create_graph ----------------------------------------------------------------------


def test_create_graph_gives_gradients_with_history() -> None:
    x = leaf(3)
    (g,) = grad(x * x * x, x, create_graph=True)
    assert grad(g, x)[0].item() == 18


def test_create_graph_gives_mixed_derivatives() -> None:
    x, w = leaf(2), leaf(3)
    (gx,) = grad(x * x * w, x, create_graph=True)
    assert grad(gx, w)[0].item() == 4


def test_create_graph_records_also_under_no_grad() -> None:
    x = leaf(3)
    y = x * x
    with torch.no_grad():
        (g,) = grad(y, x, create_graph=True)
    assert g.requires_grad


def test_a_constant_derivative_requires_no_grad() -> None:
    x = leaf(3)
    (g,) = grad(x * 2, x, create_graph=True)
    assert not g.requires_grad


def test_backward_with_create_graph_adds_out_of_place() -> None:
    x = leaf(3)
    (x * 2).backward()
    before = x.grad
    (x * x).backward(create_graph=True)
    assert (before.item(), x.grad.item(), x.grad is before) == (2, 8, False)


def test_grad_mode_is_as_before_afterwards() -> None:
    x = leaf(3)
    grad(x * x, x)
    assert torch.is_grad_enabled()


def test_a_hessian_by_two_passes() -> None:
    x = leaf(1, 2)
    (g,) = grad((x[0] ** 2 * x[1]), x, create_graph=True)
    rows = [grad(part, x, retain_graph=True)[0].tolist() for part in g.unbind()]
    assert rows == [[4, 2], [2, 0]]
