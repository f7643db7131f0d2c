"""autograd.backward, autograd.grad and Tensor.backward: the engine's front door."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gradfn._dtypes import BY_NUMPY
from gradfn._state import GRAD, mode
from gradfn.graph import engine
from gradfn.graph.edge import GradientEdge, target_and_shape
from gradfn.graph.node import Node
from gradfn.tensor import Size, Tensor, method, wrap


def _sequence(x: Any) -> list[Any]:
    if x is None:
        return []
    return [x] if isinstance(x, (Tensor, GradientEdge)) else list(x)


def _seeds(roots: list[Any], grads: Sequence[Any], create: bool) -> list[Tensor]:
    """A gradient for each root: as given, or 1 for a scalar. RuntimeErrors else."""
    if len(grads) != len(roots):
        raise RuntimeError(
            f"got {len(roots)} tensors and {len(grads)} gradients: give one gradient "
            "(or None) for each tensor"
        )
    return [_seed(r, g, i) for i, (r, g) in enumerate(zip(roots, grads, strict=True))]


def _seed(root: Any, grad: Any, place: int) -> Tensor:
    _, shape, dtype = target_and_shape(root)
    if grad is None:
        return _implicit(shape, dtype)
    if not isinstance(grad, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad)}")
    if grad._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{place}] has a shape of {grad.shape} and "
            f"output[{place}] has a shape of {Size(shape)}."
        )
    if (grad._array.dtype.kind == "c") != (dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the "
            f"same dtype. Mismatch in dtype: grad_output[{place}] has a dtype of "
            f"{grad.dtype} and output[{place}] has a dtype of {BY_NUMPY[dtype]}."
        )
    return grad


def _implicit(shape: Any, dtype: Any) -> Tensor:
    if shape != () and np.prod(shape) != 1:
        raise RuntimeError(
            "grad can be implicitly created only for scalar outputs; this one has "
            f"shape {list(shape)}. Call .sum() or .mean() first, or give its gradient."
        )
    if dtype.kind == "c":
        raise RuntimeError(
            "grad can be implicitly created only for real scalar outputs but got "
            f"torch.{dtype}. Take the real part or the absolute value first."
        )
    return wrap(np.ones(shape, dtype))


def _targets(roots: list[Any]) -> list[Any]:
    targets = []
    for i, root in enumerate(roots):
        target = target_and_shape(root)[0]
        if target is None:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a "
                "grad_fn. Nothing that requires grad took part in computing it, or it "
                "was computed under no_grad() or from .detach() or .data."
            )
        targets.append(target)
    return targets


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the derivative of `tensors` to `.grad` of the leaves they came from.

    `grad_tensors` has a gradient of the same shape for each of them, or None for a
    scalar. `create_graph` records the pass itself, for higher derivatives;
    `retain_graph` (by default the same) keeps what the graph saved, for another pass;
    `inputs` restricts the pass to these tensors.

    Raises RuntimeError for a non-scalar without a gradient, for gradients of the wrong
    shape, if nothing requires grad, and on a second pass through a freed graph.
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        grad_tensors = grad_variables
    wanted = None if inputs is None else _sequence(inputs)
    if wanted == []:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _sequence(tensors)
    given = _sequence(grad_tensors) if grad_tensors is not None else [None] * len(roots)
    targets = _targets(roots)
    seeds = _seeds(roots, given, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    captures = None if wanted is None else _accumulating(wanted)
    engine.backward(targets, seeds, keep, create_graph, captures)


def _accumulating(inputs: list[Any]) -> dict[Any, Any]:
    """What to capture for `backward(inputs=…)`; non-leaves retain their gradient."""
    captures: dict[Any, Any] = {}
    for t in inputs:
        target = target_and_shape(t)[0]
        if target is None:
            raise RuntimeError(
                "One of the differentiated Tensors given as 'inputs' does not require "
                "grad"
            )
        if isinstance(t, Tensor) and target is not t:
            t.retain_grad()
        captures[target] = None
    return captures


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The derivatives of `outputs` with respect to `inputs`; `.grad` is left alone.

    Returns a tuple with one gradient for each input, of its shape and dtype.
    `grad_outputs`, `retain_graph` and `create_graph` are as in `backward`. An input that
    the outputs do not depend on raises RuntimeError, or gives None with
    `allow_unused=True`, zeros with `materialize_grads=True`. With
    `is_grads_batched=True` grad_outputs have one more dimension in front, for which
    this returns a batch of gradients.
    """
    roots, wanted = _sequence(outputs), _sequence(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True,"
            " but got: allow_unused=False."
        )
    given = _sequence(grad_outputs) if grad_outputs is not None else [None] * len(roots)
    keep = create_graph if retain_graph is None else retain_graph
    derive = _for_each if is_grads_batched else _captured
    got = derive(roots, wanted, given, keep, create_graph)
    if materialize_grads:
        if any(g is None and not isinstance(t, Tensor) for g, t in zip(got, wanted)):
            raise RuntimeError(
                "materialize_grads cannot be used when the given input is a GradientEdge, "
                "whose tensor is not known"
            )
        return tuple(
            _zeros(t, create_graph) if g is None else g
            for g, t in zip(got, wanted, strict=True)
        )
    if not allow_unused and any(g is None for g in got):
        raise RuntimeError(
            f"The differentiated Tensor at index {got.index(None)} appears to not have been "
            "used in the graph. Set allow_unused=True if this is the desired behavior."
        )
    return _distinct(got, create_graph)


def _captured(
    roots: list[Any], wanted: list[Any], given: list[Any], keep: bool, create: bool
) -> list[Any]:
    """The gradients that reach the inputs; None where none does."""
    targets = _targets(roots)
    seeds = _seeds(roots, given, create)
    places = []
    for t in wanted:
        target = target_and_shape(t)[0]
        if target is None:
            raise RuntimeError(
                "One of the differentiated Tensors does not require grad. Set "
                "requires_grad_() on it before the outputs are computed."
            )
        places.append(target)
    captures = dict.fromkeys(places)
    engine.backward(targets, seeds, keep, create, captures, into_grad=False)
    return [captures[target] for target in places]


def _for_each(
    roots: list[Any], wanted: list[Any], given: list[Any], keep: bool, create: bool
) -> list[Any]:
    """The same for a batch of gradients, under vmap; the batch is in front."""
    from gradfn.func.vmap import vmap

    reached: list[bool] = []

    def derive(*seeds: Tensor) -> tuple[Any, ...]:
        got = _captured(roots, wanted, list(seeds), keep, create)
        reached[:] = [g is not None for g in got]
        return tuple(g for g in got if g is not None)

    found = iter(vmap(derive)(*_batch_of_seeds(roots, given)))
    return [next(found) if there else None for there in reached]


def _batch_of_seeds(roots: list[Any], given: list[Any]) -> list[Tensor]:
    """A gradient for each root with the batch in front. RuntimeError for other shapes."""
    seeds = []
    for i, (root, seed) in enumerate(zip(roots, given, strict=True)):
        _, shape, dtype = target_and_shape(root)
        seed = _implicit(shape, dtype) if seed is None else seed
        if seed.dim() and seed._array.shape[1:] != shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each "
                "grad_output as the batch dimension. The sizes of the remaining dimensions "
                "are expected to match the shape of corresponding output, but a mismatch "
                f"was detected: grad_output[{i}] has a shape of {seed.shape} and output[{i}] "
                f"has a shape of {Size(shape)}."
            )
        seeds.append(seed)
    return seeds


def _distinct(got: list[Any], create: bool) -> tuple[Any, ...]:
    """The same input asked for twice gets two tensors."""
    seen: set[int] = set()
    out = []
    for g in got:
        twice = g is not None and id(g) in seen and not create
        seen.add(id(g))
        out.append(wrap(g._array.copy()) if twice else g)
    return tuple(out)


def _zeros(t: Tensor, create_graph: bool) -> Tensor:
    """Zeros for an input; where the rest is recorded, they can be derived too."""
    zeros: Any = wrap(np.zeros(t._array.shape, t._array.dtype))
    return zeros.requires_grad_(create_graph)  # type: ignore[no-any-return]


@method
def tensor_backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Adds the derivative of this tensor to `.grad` of the leaves it came from.

    See `gradfn.autograd.backward`. A tensor with more than one element needs a
    `gradient` of its shape (RuntimeError).
    """
    if gradient is None and inputs is None and not create_graph:  # the usual call
        node, array = self._grad_fn, self._array
        one = ONES.get(array.dtype)
        plain = self._view is None and mode() <= GRAD and isinstance(node, Node)
        if plain and one is not None and not array.ndim:
            task = engine.Run(bool(retain_graph))
            task.roots = (node,)
            engine.start(task, 0, task.from_node, node, one)
            return
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


# The gradient of a scalar: never written, for the table holds it (Note [Who may write …]).
ONES: Final = {np.dtype(d): np.ones((), d) for d in ("float32", "float64")}
for _one in ONES.values():
    _one.flags.writeable = False


Tensor.backward = tensor_backward  # type: ignore[attr-defined]
tensor_backward.__name__ = "backward"
del Tensor.tensor_backward  # type: ignore[attr-defined]
