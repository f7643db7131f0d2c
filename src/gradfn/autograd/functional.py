"""torch.autograd.functional: products with Jacobians and Hessians, and these whole.

Each function calls the user's one on fresh aliases of the inputs (`_inner`), derives it
with `autograd.grad`, and gives the results without history unless `create_graph`.
`strict` refuses what has no derivative where otherwise zeros are returned.

A product with a vector from the right is taken by deriving twice (Bradbury's trick): a
vjp is linear in its cotangent, so the derivative of the vjp by the cotangent, transposed,
is the jvp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradfn.autograd.backward import grad as autograd_grad
from gradfn.autograd.grad_mode import enable_grad, is_grad_enabled, set_grad_enabled
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Func = Callable[..., Any]
Tensors = tuple[Tensor, ...]

_INDEPENDENT = (
    "The {what} of the user-provided function is independent of {of}. This is not "
)
_STRICT = "allowed in strict mode"
_LINEAR = (
    " Your function must be differentiable once more and that derivative depend on the "
    "inputs, which it does not for a linear function, for example."
)


# -- products ------------------------------------------------------------------------------


def vjp(
    func: Func,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """`(func(*inputs), vᵀ·J)`: J is the Jacobian of `func` at `inputs`.

    `inputs` is a tensor or a tuple of tensors, of which the product has the shapes; `v` has
    the shapes of the outputs and may be left out for a single number. The results can
    be derived if `create_graph`. With `strict` an input or output without a path between
    them raises RuntimeError; otherwise its part is zeros.

    Raises TypeError for what is no tensor, RuntimeError for a `v` of another shape.
    """
    with enable_grad():
        inside = _Call("vjp", func, inputs, create_graph, strict)
        _check_outputs(inside.outputs, strict)
        seeds = inside.vector(v, inside.outputs, inside.many_outputs)
    return inside.product(inside.outputs, inside.inputs, seeds, inside.many_inputs, _BACK)


def jvp(
    func: Func,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """`(func(*inputs), J·v)`: J is the Jacobian of `func` at `inputs`.

    `v` has the shapes of `inputs` and may be left out for a single number; the product
    has those of the outputs. All else is as in `vjp`. It derives twice; a single
    `gradfn.func.jvp` costs less.
    """
    with enable_grad():
        inside = _Call("jvp", func, inputs, create_graph, strict)
        way = inside.vector(v, inside.inputs, inside.many_inputs, "input to")
        _check_outputs(inside.outputs, strict)
        seeds = _zeros(inside.outputs)
        pulled = _grad(inside.outputs, inside.inputs, seeds, create_graph=True)
        _check_gradients(pulled, strict)
    return inside.product(pulled, seeds, way, inside.many_outputs, _BACK_TWICE)


def vhp(
    func: Func,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """`(func(*inputs), vᵀ·H)`: H is the Hessian of `func`, which returns a single number.

    `v` and the product have the shapes of `inputs`. All else is as in `vjp`.
    """
    with enable_grad():
        inside = _Call("vhp", func, inputs, create_graph, strict)
        way, slope = inside.slope(v)
    return inside.product(slope, inside.inputs, way, inside.many_inputs, _DOUBLE)


def hvp(
    func: Func,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """`(func(*inputs), H·v)`: H is the Hessian of `func`, which returns a single number.

    As `vhp`, which is faster and the same where the Hessian is symmetric, as it is for
    twice continuously differentiable functions.
    """
    with enable_grad():
        inside = _Call("hvp", func, inputs, create_graph, strict)
        way, slope = inside.slope(v)
        seeds = _zeros(inside.inputs)
        twice = _grad(slope, inside.inputs, seeds, create_graph=True)
        _check_hessian(twice, strict)
    return inside.product(twice, seeds, way, inside.many_inputs, _DOUBLE_TWICE)


# -- whole matrices ------------------------------------------------------------------------


def jacobian(
    func: Func,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func` at `inputs`: a tensor of shape (*output, *input).

    For a tuple of outputs a tuple with an entry for each, and so for a tuple of inputs
    within. `vectorize` computes all rows at once, by `vmap`; `strategy` "forward-mode" goes
    by columns, which costs less where there are more outputs than inputs.

    Raises as `vjp` does; AssertionError for another strategy; RuntimeError for `strict`
    together with `vectorize`; NotImplementedError for "forward-mode" without `vectorize`
    or with `create_graph`.
    """
    _check_strategy(strategy)
    name = "torch.autograd.functional.jacobian"
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                f'{name}: `create_graph=True` and `strategy="forward-mode"` are not supported '
                'together. Use strategy="reverse-mode", or gradfn.func.jacfwd.'
            )
        return _columns(name, func, inputs, strict, vectorize)
    if strict and vectorize:
        raise RuntimeError(
            f"{name}: `strict=True` and `vectorized=True` are not supported together: give "
            "`strict=False` or `vectorize=False`."
        )
    with enable_grad():
        inside = _Call("jacobian", func, inputs, create_graph, strict)
        _check_outputs(inside.outputs, strict)
        rows = _all_rows if vectorize else _row_by_row
        blocks = rows(inside.outputs, inside.inputs, create_graph, strict)
    each = tuple(inside.shown(block, inside.many_inputs) for block in blocks)
    return each if inside.many_outputs else each[0]


def hessian(
    func: Func,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of `func`, which returns a single number: of shape (*input, *input).

    For a tuple of inputs a tuple of tuples of such blocks. It is the Jacobian, by
    `outer_jacobian_strategy`, of the Jacobian by reverse mode; see `jacobian`.
    """
    _check_strategy(outer_jacobian_strategy)
    from gradfn.func.derivatives import fresh

    many, _ = _as_tuple(inputs, "inputs", "hessian")
    forward = outer_jacobian_strategy == "forward-mode"

    def single(*args: Tensor) -> Tensor:
        out = func(*args)
        _check_outputs(_as_tuple(out, _OUTPUTS, "hessian")[1], strict)
        _check_single_number("hessian", out)
        return out.reshape(())  # type: ignore[no-any-return]

    def slope(*args: Tensor) -> Tensors:
        if forward:  # reverse mode needs something to derive by
            args = fresh(args)[0]
        found = jacobian(single, args, create_graph=True)
        _check_slope(found, strict)
        return found  # type: ignore[no-any-return]

    blocks = jacobian(
        slope, inputs, create_graph, strict, vectorize, outer_jacobian_strategy
    )
    return blocks if many else blocks[0]


def _row_by_row(
    outputs: Tensors, inputs: Tensors, create_graph: bool, strict: bool
) -> list[Tensors]:
    """For each output its derivatives by the inputs, one pass for each element."""
    blocks = []
    for place, out in enumerate(outputs):
        _check_real(out)
        units = PUBLIC["eye"](out.numel(), dtype=out.dtype).reshape(
            (out.numel(), *out.shape)
        )
        rows = []
        for unit in units:
            got = _grad((out,), inputs, (unit,), create_graph)
            rows.append(_filled(got, inputs, strict, create_graph, _output(place)))
        columns = [[row[i] for row in rows] for i in range(len(inputs))]
        blocks.append(
            tuple(
                _stacked(column, out, t)
                for column, t in zip(columns, inputs, strict=True)
            )
        )
    return blocks


def _stacked(rows: list[Tensor], out: Tensor, into: Tensor) -> Tensor:
    shape = (*out.shape, *into.shape)
    if not rows:
        return PUBLIC["zeros"](shape, dtype=into.dtype)  # type: ignore[no-any-return]
    return PUBLIC["stack"](rows).reshape(shape)  # type: ignore[no-any-return]


def _all_rows(
    outputs: Tensors, inputs: Tensors, create_graph: bool, strict: bool
) -> list[Tensors]:
    """The same in one pass over a batch of cotangents."""
    from gradfn.func.jacobians import units
    from gradfn.func.vmap import vmap

    def pull(*seeds: Tensor) -> Tensors:
        got = _grad(outputs, inputs, seeds, create_graph)
        return tuple(_or_zeros(g, t) for g, t in zip(got, inputs, strict=True))

    columns = vmap(pull)(*units(list(outputs)))
    sizes = [out.numel() for out in outputs]
    parts = [column.split(sizes) for column in columns]
    return [
        tuple(part[i].reshape((*out.shape, *part[i].shape[1:])) for part in parts)
        for i, out in enumerate(outputs)
    ]


def _columns(name: str, func: Func, inputs: Any, strict: bool, vectorize: bool) -> Any:
    """The Jacobian by forward mode, one direction for each element of the inputs."""
    from gradfn.func.jacobians import jacfwd

    if strict:
        raise RuntimeError(
            f'{name}: `strict=True` and `strategy="forward-mode"` are not supported together: '
            'give `strict=False` or strategy="reverse-mode".'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
            "implemented for `vectorize=True`."
        )
    many, given = _as_tuple(inputs, "inputs", "jacobian")
    many_outputs = False

    def checked(*args: Tensor) -> Tensors:
        nonlocal many_outputs
        many_outputs, outs = _as_tuple(func(*args), _OUTPUTS, "jacobian")
        return outs

    blocks = jacfwd(checked, tuple(range(len(given))))(*given)
    each = tuple(block if many else block[0] for block in blocks)
    return each if many_outputs else each[0]


# -- a call of the user's function ---------------------------------------------------------

_OUTPUTS = "outputs of the user-provided function"


class _Call:
    """The function called on aliases of the inputs, and how its results are shown."""

    def __init__(
        self, name: str, func: Func, inputs: Any, create_graph: bool, strict: bool
    ) -> None:
        self.name = name
        self.create_graph, self.strict = create_graph, strict
        self.many_inputs, given = _as_tuple(inputs, "inputs", name)
        self.inputs = tuple(_alias(t, create_graph) for t in given)
        self.many_outputs, self.outputs = _as_tuple(func(*self.inputs), _OUTPUTS, name)

    def vector(self, v: Any, like: Tensors, many: bool, side: str = "") -> Tensors:
        """`v` as a tuple with a tensor for each of `like`. RuntimeErrors."""
        if v is None:
            if len(like) == 1 and like[0].numel() == 1:
                return (PUBLIC["ones_like"](like[0].detach()),)
            one = "is" if side else "returns"
            raise RuntimeError(
                f"The vector v can only be None if the {side and side + ' the '}user-provided "
                f"function {one} a single Tensor with a single element; {self.name} needs it "
                f"here, of the shapes {[tuple(t.shape) for t in like]}"
            )
        given = _as_tuple(v, "v", self.name)[1]
        _check_vector(given, like, many)
        return tuple(_alias(t, self.create_graph, derived=False) for t in given)

    def slope(self, v: Any) -> tuple[Tensors, tuple[Tensor | None, ...]]:
        """`v`, and the gradient of the single number that the function gives."""
        way = self.vector(v, self.inputs, self.many_inputs, "input to")
        _check_single_number(
            self.name, self.outputs if self.many_outputs else self.outputs[0]
        )
        _check_outputs(self.outputs, self.strict)
        slope = _grad(self.outputs, self.inputs, None, create_graph=True)
        _check_slope(slope, self.strict)
        return way, slope

    def product(
        self,
        of: Sequence[Tensor | None],
        by: Tensors,
        seeds: Tensors,
        many: bool,
        stage: _Stage,
    ) -> tuple[Any, Any]:
        """The function's outputs, and the derivative of `of` by `by` times `seeds`.

        `by` is the inputs, or has a tensor for each of them or of the outputs; `many` says
        whether these were a tuple.
        """
        with set_grad_enabled(self.create_graph or is_grad_enabled()):
            got = _grad(of, by, seeds, self.create_graph)
            found = _filled(got, by, self.strict, self.create_graph, stage)
        outputs = self.shown(self.outputs, self.many_outputs)
        return outputs, self.shown(found, many)

    def shown(self, tensors: Tensors, many: bool) -> Any:
        if not self.create_graph:
            tensors = tuple(t.detach() for t in tensors)
        return tensors if many else tensors[0]


def _as_tuple(given: Any, what: str, name: str) -> tuple[bool, Tensors]:
    """(was it a tuple?, a tuple of tensors). TypeError for anything else."""
    many = isinstance(given, tuple)
    tensors = given if many else (given,)
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            which = f"the value at index {i}" if many else f"the given {what}"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors "
                f"but {which} has type {type(t)}."
            )
    return many, tensors


def _alias(t: Tensor, create_graph: bool, derived: bool = True) -> Tensor:
    """A tensor that goes on with the history of `t` if that is wanted, or a new leaf."""
    if create_graph and t.requires_grad:
        return t.view_as(t)  # type: ignore[no-any-return]
    return t.detach().requires_grad_(derived)  # type: ignore[no-any-return]


def _zeros(like: Tensors) -> Tensors:
    return tuple(PUBLIC["zeros_like"](t, requires_grad=True) for t in like)


def _or_zeros(found: Tensor | None, like: Tensor) -> Tensor:
    return PUBLIC["zeros_like"](like.detach()) if found is None else found


def _grad(
    outputs: Sequence[Tensor | None],
    inputs: Tensors,
    seeds: Sequence[Tensor] | None,
    create_graph: bool,
) -> tuple[Tensor | None, ...]:
    """`autograd.grad`, None where there is nothing to derive."""
    each = [None] * len(outputs) if seeds is None else seeds
    pairs = [
        (out, seed)
        for out, seed in zip(outputs, each, strict=True)
        if out is not None and out.requires_grad
    ]
    if not pairs:
        return (None,) * len(inputs)
    return autograd_grad(  # type: ignore[no-any-return]
        [out for out, _ in pairs],
        inputs,
        [seed for _, seed in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )


# -- checks --------------------------------------------------------------------------------


class _Stage:
    """What a missing derivative of this stage means; `of` names what it is missing for."""

    def __init__(self, missing: str, constant: str) -> None:
        self.missing = missing
        self.constant = constant


_JACOBIAN = _INDEPENDENT.format(what="jacobian", of="input {i}") + _STRICT
_HESSIAN = _INDEPENDENT.format(what="hessian", of="input {i}") + _STRICT
_BACK = _Stage(
    _INDEPENDENT.format(what="output", of="input {i}") + _STRICT + ".",
    _JACOBIAN + " when create_graph=True.",
)
_BACK_TWICE = _Stage(
    "The gradient with respect to the input is independent of entry {i} in the grad_outputs "
    "when using the double backward trick to compute forward mode gradients. This is not "
    f"{_STRICT}.",
    _JACOBIAN + " when create_graph=True.",
)
_DOUBLE = _Stage(_JACOBIAN + ".", _HESSIAN + " when create_graph=True.")
_DOUBLE_TWICE = _Stage(
    _INDEPENDENT.format(what="hessian", of="entry {i} in the grad_jacobian")
    + f"{_STRICT}: the double backward trick, which stands for forward mode, needs it.",
    _HESSIAN + " when create_graph=True.",
)


def _output(place: int) -> _Stage:
    return _Stage(
        f"Output {place} of the user-provided function is independent of input {{i}}. This is "
        f"not {_STRICT}.",
        _JACOBIAN + " when create_graph=True.",
    )


def _filled(
    found: Sequence[Tensor | None],
    like: Tensors,
    strict: bool,
    create_graph: bool,
    stage: _Stage,
) -> Tensors:
    """What was found, zeros where nothing was; RuntimeErrors if that is refused."""
    if strict:
        for i, g in enumerate(found):
            if g is None:
                raise RuntimeError(stage.missing.format(i=i))
            if create_graph and not g.requires_grad:
                raise RuntimeError(stage.constant.format(i=i))
    return tuple(_or_zeros(g, t) for g, t in zip(found, like, strict=True))


def _refuse_constants(tensors: Sequence[Any], strict: bool, message: str) -> None:
    """RuntimeError for the first that cannot be derived, where `strict` forbids it."""
    if not strict:
        return
    for i, t in enumerate(tensors):
        if t is None:
            raise RuntimeError(_BACK.missing.format(i=i))
        if not t.requires_grad:
            raise RuntimeError(message.format(i=i, strict=_STRICT))


def _check_outputs(outputs: Sequence[Any], strict: bool) -> None:
    message = (
        "Output {i} of the user-provided function does not require gradients. In strict mode "
        "it must be computed in a differentiable manner from the inputs."
    )
    _refuse_constants(outputs, strict, message)


def _check_gradients(gradients: Sequence[Any], strict: bool) -> None:
    message = (
        "The gradient with respect to input {i} is independent of the inputs of the "
        "user-provided function. This is not {strict}."
    )
    _refuse_constants(gradients, strict, message)


def _check_slope(slope: Sequence[Any], strict: bool) -> None:
    message = (
        "While computing the hessian, found that the jacobian of the user-provided function "
        "with respect to input {i} is independent of the input. This is not {strict}."
        + _LINEAR
    )
    _refuse_constants(slope, strict, message)


def _check_hessian(twice: Sequence[Any], strict: bool) -> None:
    message = (
        "The hessian of the user-provided function with respect to input {i} is independent of "
        "the input. This is not {strict}." + _LINEAR
    )
    _refuse_constants(twice, strict, message)


def _check_vector(v: Tensors, like: Tensors, many: bool) -> None:
    if many and len(v) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}."
        )
    if not many and len(v) != 1:
        raise RuntimeError(
            f"The given v should contain a single Tensor. It has {len(v)}."
        )
    for i, (x, t) in enumerate(zip(v, like, strict=True)):
        if x.shape != t.shape:
            entry = f"Entry {i} in v" if many else "v"
            raise RuntimeError(
                f"{entry} has invalid size: should be {t.shape} but got {x.shape}."
            )


def _check_single_number(name: str, out: Any) -> None:
    if not isinstance(out, Tensor):
        raise RuntimeError(
            f"The function given to {name} should return a single Tensor, got {type(out)}"
        )
    if out.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single "
            f"element, got one of shape {list(out.shape)}"
        )


def _check_real(out: Tensor) -> None:
    """A row of unit cotangents is the conjugate of a complex function's Jacobian's."""
    if out.is_complex():
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {out.dtype}. "
            "Derive the real and the imaginary part, or give vjp a vector."
        )


def _check_strategy(strategy: str) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode", got '
            f"{strategy!r}. Where the function has more outputs than inputs, forward mode "
            "costs less; otherwise reverse mode does."
        )
