"""Function: its forms, its ctx, and what forward and backward may be."""

from __future__ import annotations

from typing import Any

import pytest
from support import function, leaf

import gradfn as torch
from gradfn.autograd import Function
from gradfn.autograd.function import FunctionCtx
from gradfn.autograd.graph import Node


class Scale(Function):
    """x * factor, in the usual form."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float = 3.0) -> Any:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.factor, None


class SplitScale(Function):
    """The same with a forward that knows nothing of ctx."""

    @staticmethod
    def forward(x: Any, factor: float = 3.0) -> Any:
        return x * factor

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, ctx.factor = inputs

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.factor, None


class Product(Function):
    """a * b, both saved."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return g * b, g * a


def identity(ctx: Any, g: Any) -> Any:
    return g


# -- forms -----------------------------------------------------------------------------

both_forms = pytest.mark.parametrize("scale", [Scale, SplitScale])


@both_forms
def test_apply_returns_what_forward_computes(scale: Any) -> None:
    assert scale.apply(leaf(1, 2), 5.0).tolist() == [5, 10]


@both_forms
def test_backward_gives_the_gradient(scale: Any) -> None:
    x = leaf(1, 2)
    scale.apply(x, 5.0).sum().backward()
    assert x.grad.tolist() == [5, 5]


@both_forms
def test_an_argument_may_be_left_to_its_default(scale: Any) -> None:
    x = leaf(1, 2)
    scale.apply(x).sum().backward()
    assert x.grad.tolist() == [3, 3]


@both_forms
def test_an_argument_may_be_given_by_name(scale: Any) -> None:
    x = leaf(1, 2)
    scale.apply(x, factor=4.0).sum().backward()
    assert x.grad.tolist() == [4, 4]


@both_forms
def test_a_tensor_may_be_given_by_name(scale: Any) -> None:
    x = leaf(1, 2)
    scale.apply(factor=4.0, x=x).sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_setup_context_sees_defaults_among_the_inputs() -> None:
    seen = []
    split = function(
        lambda x, factor=3.0: x * factor,
        identity,
        setup_context=lambda ctx, inputs, output: seen.append(inputs),
    )
    x = leaf()
    split.apply(x)
    assert seen == [(x, 3.0)]


def test_setup_context_sees_the_output() -> None:
    seen = []
    split = function(
        lambda x: x * 2,
        identity,
        setup_context=lambda ctx, inputs, output: seen.append(output.tolist()),
    )
    split.apply(leaf(1, 2))
    assert seen == [[2, 4]]


def test_forward_takes_any_number_of_arguments() -> None:
    total = function(lambda ctx, *xs: sum(xs), lambda ctx, g: (g, g * 2, g * 3))
    xs = leaf(1), leaf(2), leaf(3)
    total.apply(*xs).backward()
    assert [x.grad.item() for x in xs] == [1, 2, 3]


def test_forward_may_have_keyword_only_arguments() -> None:
    def forward(ctx: Any, x: Any, *, factor: float) -> Any:
        ctx.factor = factor
        return x * factor

    scale = function(forward, lambda ctx, g: g * ctx.factor)
    x = leaf(1, 2)
    scale.apply(x, factor=4.0).sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_an_unknown_name_is_refused_with_the_functions_name() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'f'.*Scale\.forw"):
        Scale.apply(leaf(), f=2)


def test_a_missing_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="missing"):
        SplitScale.apply()


def test_vjp_is_another_name_of_backward() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def vjp(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(1, 2)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_tensor_attributes_of_the_class_are_no_arguments() -> None:
    class Shift(Function):
        by = leaf(10.0)

        @classmethod
        def forward(cls, ctx: Any, x: Any) -> Any:
            return x + cls.by

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    Shift.apply(leaf(1)).backward()
    assert Shift.by.grad is None


# -- classes ---------------------------------------------------------------------------


def test_forward_and_backward_may_be_classmethods() -> None:
    class Scaled(Function):
        factor = 7.0

        @classmethod
        def forward(cls, ctx: Any, x: Any) -> Any:
            return x * cls.factor

        @classmethod
        def backward(cls, ctx: Any, g: Any) -> Any:
            return g * cls.factor

    x = leaf(1, 2)
    Scaled.apply(x).sum().backward()
    assert x.grad.tolist() == [7, 7]


def test_a_subclass_inherits_what_it_does_not_override() -> None:
    class Straight(Scale):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    x = leaf(1, 2)
    y = Straight.apply(x)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([3, 6], [1, 1])


def test_a_subclass_has_a_node_name_of_its_own() -> None:
    class Straight(Scale):
        pass

    assert Straight.apply(leaf()).grad_fn.name() == "StraightBackward"


def test_a_factory_makes_functions_that_differ() -> None:
    def times(factor: float) -> Any:
        return function(lambda ctx, x: x * factor, lambda ctx, g: g * factor)

    two, three = times(2), times(3)
    x = leaf(1)
    three.apply(two.apply(x)).backward()
    assert x.grad.item() == 6


def test_forward_may_be_replaced_later() -> None:
    double = function(lambda ctx, x: x * 2, identity)
    double.apply(leaf(1))
    double.forward = staticmethod(lambda ctx, x: x * 3)
    assert double.apply(leaf(1)).item() == 3


def test_making_an_instance_warns() -> None:
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        Scale()


def test_calling_an_instance_is_refused() -> None:
    with pytest.warns(DeprecationWarning, match="instantiated"):
        instance = Scale()
    with pytest.raises(RuntimeError, match=r"Legacy autograd function.*Scale\.apply"):
        instance(leaf())


# -- recording -------------------------------------------------------------------------


def test_ops_in_forward_are_not_recorded() -> None:
    seen = []
    spy = function(
        lambda ctx, x: (seen.append((x * 2).requires_grad), x * 1)[1], identity
    )
    spy.apply(leaf())
    assert seen == [False]


def test_forward_gets_the_arguments_themselves() -> None:
    seen = []
    spy = function(lambda ctx, x: (seen.append(x), x * 1)[1], identity)
    x = leaf() * 2
    spy.apply(x)
    assert seen[0] is x


def test_nothing_is_recorded_under_no_grad() -> None:
    with torch.no_grad():
        y = Scale.apply(leaf())
    assert (y.requires_grad, y.grad_fn) == (False, None)


def test_nothing_is_recorded_if_no_argument_requires_grad() -> None:
    y = Scale.apply(torch.ones(2))
    assert (y.requires_grad, y.grad_fn) == (False, None)


def test_grad_mode_is_off_in_backward() -> None:
    seen = []
    spy = function(lambda ctx, x: x * 1, lambda ctx, g: (seen.append(g * 2), g)[1])
    spy.apply(leaf()).sum().backward()
    assert not seen[0].requires_grad


def test_grad_mode_is_on_in_backward_with_create_graph() -> None:
    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(torch.is_grad_enabled())
        return g

    function(lambda ctx, x: x * 1, backward).apply(leaf()).sum().backward(
        create_graph=True
    )
    assert seen == [True]


def test_an_error_in_forward_is_the_users_own() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        function(forward, identity).apply(leaf())


# -- ctx -------------------------------------------------------------------------------


def test_ctx_is_the_same_object_in_forward_and_backward() -> None:
    seen = []
    spy = function(
        lambda ctx, x: (seen.append(ctx), x * 1)[1],
        lambda ctx, g: (seen.append(ctx), g)[1],
    )
    spy.apply(leaf()).sum().backward()
    assert seen[0] is seen[1]


def test_ctx_is_the_grad_fn() -> None:
    seen = []
    y = function(lambda ctx, x: (seen.append(ctx), x * 1)[1], identity).apply(leaf())
    assert y.grad_fn is seen[0]


def test_ctx_is_a_function_ctx_and_a_node() -> None:
    node = Scale.apply(leaf()).grad_fn
    assert isinstance(node, FunctionCtx)
    assert isinstance(node, Node)


def test_grad_fn_has_the_attributes_that_forward_set() -> None:
    assert Scale.apply(leaf(), 8.0).grad_fn.factor == 8.0


def test_grad_fn_has_the_functions_name() -> None:
    assert Scale.apply(leaf()).grad_fn.name() == "ScaleBackward"


def test_a_tensor_is_printed_with_its_function() -> None:
    assert repr(Scale.apply(leaf(1))).endswith("grad_fn=<ScaleBackward>)")


def test_next_functions_has_an_entry_for_each_tensor_argument() -> None:
    x = leaf() * 2
    node = Product.apply(x, torch.ones(2)).grad_fn
    assert node.next_functions == ((x.grad_fn, 0), (None, 0))


def test_next_functions_shows_a_leaf_by_its_accumulator() -> None:
    x = leaf()
    ((node, number),) = Scale.apply(x).grad_fn.next_functions
    assert (node.variable, number) == (x, 0)


def test_metadata_is_the_users_own() -> None:
    y = Scale.apply(leaf())
    y.grad_fn.metadata["place"] = "here"
    assert y.grad_fn.metadata == {"place": "here"}


def test_each_call_has_a_ctx_of_its_own() -> None:
    assert Scale.apply(leaf(), 2.0).grad_fn.factor == 2.0
    assert not hasattr(Product.apply(leaf(), leaf()).grad_fn, "factor")


def test_the_node_can_be_called_by_hand() -> None:
    y = Scale.apply(leaf(1, 2), 4.0)
    assert y.grad_fn(torch.ones(2)).tolist() == [4, 4]


# -- saved tensors ---------------------------------------------------------------------


def saving(*what: Any) -> Any:
    """A Function that saves `what(x, y)` of its input and output, and does 2x."""

    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.save_for_backward(*(f(x, y) for f in what))
        return y

    return function(forward, lambda ctx, g: (ctx.saved_tensors, g * 2)[1])


def test_a_saved_input_comes_back_as_itself() -> None:
    x = leaf()
    assert saving(lambda x, y: x).apply(x).grad_fn.saved_tensors == (x,)


def test_a_saved_output_comes_back_with_its_history() -> None:
    y = saving(lambda x, y: y).apply(leaf(1, 2))
    (back,) = y.grad_fn.saved_tensors
    assert (back.tolist(), back.grad_fn) == ([2, 4], y.grad_fn)


def test_a_saved_intermediate_comes_back_with_its_values() -> None:
    y = saving(lambda x, y: x + 1).apply(leaf(1, 2))
    assert y.grad_fn.saved_tensors[0].tolist() == [2, 3]


def test_none_can_be_saved() -> None:
    x = leaf()
    node = saving(lambda x, y: None, lambda x, y: x).apply(x).grad_fn
    assert node.saved_tensors == (None, x)


def test_nothing_saved_is_an_empty_tuple() -> None:
    assert Scale.apply(leaf()).grad_fn.saved_tensors == ()


def test_the_last_call_of_save_for_backward_counts() -> None:
    def forward(ctx: Any, x: Any, z: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_backward(z)
        return x * z

    x, z = leaf(), leaf()
    assert function(forward, identity).apply(x, z).grad_fn.saved_tensors == (z,)


def test_only_tensors_can_be_saved() -> None:
    with pytest.raises(TypeError, match="save_for_backward can only save variables"):
        saving(lambda x, y: 3.0).apply(leaf())


def test_saved_tensors_are_gone_after_backward() -> None:
    y = saving(lambda x, y: x).apply(leaf())
    y.sum().backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they"):
        y.grad_fn.saved_tensors


def test_a_second_backward_through_saved_tensors_is_refused() -> None:
    y = saving(lambda x, y: x).apply(leaf()).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_a_second_backward_is_fine_where_nothing_was_saved() -> None:
    x = leaf()
    y = Scale.apply(x)
    y.backward(torch.ones(2))
    y.backward(torch.ones(2))
    assert x.grad.tolist() == [6, 6]


def test_retain_graph_keeps_saved_tensors() -> None:
    x = leaf()
    y = saving(lambda x, y: x).apply(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 4]


def test_a_saved_input_that_was_overwritten_is_noticed() -> None:
    x = leaf() * 1
    y = saving(lambda x, y: x).apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*MineBack"):
        y.sum().backward()


def test_a_saved_output_that_was_overwritten_is_noticed() -> None:
    y = saving(lambda x, y: y).apply(leaf())
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_attributes_are_not_checked_for_writes() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x = x
        return x * 1

    x = leaf(1, 2) * 1
    y = function(forward, lambda ctx, g: g * ctx.x).apply(x)
    x.add_(1)
    assert torch.autograd.grad(y.sum(), x, allow_unused=True) == (None,)


# -- needs_input_grad ------------------------------------------------------------------


def needs(*args: Any, wanted: Any = None) -> Any:
    """needs_input_grad in the backward of f(*args) with respect to `wanted`."""
    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return (g,) * len(args)

    y = function(lambda ctx, *args: args[0] * 1, backward).apply(*args).sum()
    if wanted is None:
        y.backward()
    else:
        torch.autograd.grad(y, wanted)
    return seen[0]


def test_needs_input_grad_has_an_entry_for_each_argument() -> None:
    assert needs(leaf(), torch.ones(2), 5) == (True, False, False)


def test_needs_input_grad_is_known_in_forward() -> None:
    seen = []
    spy = function(lambda ctx, x, n: (seen.append(ctx.needs_input_grad), x * n)[1], None)
    spy.apply(leaf(), 2)
    assert seen == [(True, False)]


def test_needs_input_grad_in_a_partial_backward_is_of_what_was_asked_for() -> None:
    a, b = leaf(), leaf()
    assert needs(a, b, wanted=[b]) == (False, True)


def test_needs_input_grad_counts_what_leads_to_the_tensor_asked_for() -> None:
    a, b = leaf(), leaf()
    assert needs(a * 2, b * 2, wanted=[b]) == (False, True)


def test_needs_input_grad_is_back_after_a_partial_backward() -> None:
    a, b = leaf(), leaf()
    y = Product.apply(a, b)
    torch.autograd.grad(y.sum(), a, retain_graph=True)
    assert y.grad_fn.needs_input_grad == (True, True)


FREE = [
    "name",
    "shape",
    "dtype",
    "needs",
    "next",
    "seq",
    "extra",
    "versions",
    "raw",
    "recorded",
    "release",
    "argument",
    "arity",
    "takes_none",
    "index",
    "count",
    "op",
    "gradient",
    "plain",
]


@pytest.mark.parametrize("name", FREE)
def test_ctx_takes_attributes_of_any_name(name: str) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        setattr(ctx, name, ("mine", x.shape))
        return x.reshape(-1) * 2

    def backward(ctx: Any, g: Any) -> Any:
        mine, shape = getattr(ctx, name)
        assert mine == "mine"
        return (g * 2).reshape(shape)

    x = torch.ones(2, 3, requires_grad=True)
    y = function(forward, backward).apply(x * 1)
    (y * y).sum().backward(retain_graph=True)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert x.grad.tolist() == [[8.0] * 3] * 2
    assert g.tolist() == [[2.0] * 3] * 2
