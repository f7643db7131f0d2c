"""Places in the graph that a user can name: tensors, nodes' outputs, GradientEdges."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradfn.graph.node import AccumulateGrad, Node, Output, form_of, target_of
from gradfn.tensor import LEAF, Tensor


class GradientEdge(NamedTuple):
    """An output of a node, to start a backward from or to ask the gradient of."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which the gradient of `tensor` arrives.

    Raises RuntimeError if the tensor does not require grad.
    """
    from gradfn.graph.node import public_edge

    target = target_of(tensor)
    if target is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not "
            "require gradients"
        )
    node, number = public_edge(target)
    return GradientEdge(node, number, target)


def target_and_shape(x: Any) -> tuple[Any, Any, Any]:
    """Where gradients for `x` go (or None), and the shape and dtype they must have."""
    if isinstance(x, Tensor):
        e = x._grad_fn if x._view is None else target_of(x)
        array = x._array
        return x if e is LEAF else e, array.shape, array.dtype
    if isinstance(x, Node):
        x = GradientEdge(x, 0)
    if not isinstance(x, GradientEdge):
        raise TypeError(f"expected a Tensor or a GradientEdge, got {type(x).__name__}")
    target = x.ownership_token
    if target is None:
        target = _find(x.node, x.output_nr)
    return target, *form_of(target)


def _find(node: Node, output_nr: int) -> Any:
    if isinstance(node, AccumulateGrad):
        return node.variable
    if isinstance(node, Output) or node._out_shape is not None:
        return node
    for made in node._output_nodes:
        output = made and made()
        if output is not None and output.index == output_nr:
            return output
    raise RuntimeError(
        f"output {output_nr} of {node._name()} can't be found from the node alone; use "
        "get_gradient_edge(tensor)"
    )
