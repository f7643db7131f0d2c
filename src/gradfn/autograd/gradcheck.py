"""Are the gradients right? Compares them with differences of values.

Note [Complex numbers in gradcheck]
    Inputs and outputs are taken as twice as many real numbers. A gradient that comes
    back for the seed v is that of Re(conj(v) y), so the seeds 1 and 1j give the rows of
    an output's real and imaginary parts, and the real and imaginary parts of the
    gradient are the columns of an input's.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradfn.autograd.backward import grad
from gradfn.autograd.causes import Cause, Jacobians, likely_cause
from gradfn.autograd.function import Function
from gradfn.autograd.grad_mode import enable_grad
from gradfn.tensor import Tensor, wrap

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """What gradcheck and gradgradcheck raise when gradients are wrong."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: Any = None,
) -> bool:
    """Do the gradients of `func` at `inputs` agree with differences of its values?

    Each element of each input that requires grad is moved by `eps` both ways. Entries
    of the Jacobian may differ by `atol + rtol * |numerical|`. Raises GradcheckError (a
    RuntimeError) that names output and input and shows both Jacobians, or returns False
    if `raise_exception` is not set. ValueError if no input requires grad.

    `fast_mode` is accepted; the whole Jacobian is compared all the same.
    """
    del check_batched_grad, check_batched_forward_grad, fast_mode, masked
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    try:
        active = checked_inputs(given)
        with enable_grad():
            outputs = differentiable(func(*given))
            if not outputs:
                check_flat(func, given, active, eps)
                return True
            if check_backward_ad:
                compare(func, given, active, eps, atol, rtol)
                check_determinism(func, given, active, nondet_tol)
            if check_undefined_grad:
                check_missing(func, given, active)
            if check_grad_dtypes:
                check_dtypes(func, given, active)
            if check_forward_ad:
                check_tangents(func, given, active, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: Any = None,
) -> bool:
    """gradcheck for the gradients of `func`: are its second derivatives right?

    They are derived by the inputs and by `grad_outputs`, which are drawn at random if
    they are not given. Raises what gradcheck does.
    """
    del gen_non_contig_grad_outputs, check_undefined_grad, check_rev_over_rev
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    with enable_grad():
        outputs = differentiable(func(*given))
    seeds = random_seeds(outputs) if grad_outputs is None else grad_outputs
    seeds = [seeds] if isinstance(seeds, Tensor) else list(seeds)
    active = [i for i, t in enumerate(given) if is_active(t)]
    n = len(seeds)

    def first(*args: Any) -> Any:
        own, cotangents = args[:-n], args[-n:]
        outs = differentiable(func(*own))
        got = grad(
            outs,
            [own[i] for i in active],
            cotangents,
            create_graph=True,
            allow_unused=True,
        )
        return tuple(g for g in got if g is not None and g.requires_grad)

    return gradcheck(
        first,
        [*given, *seeds],
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=False,
        check_grad_dtypes=check_grad_dtypes,
        check_forward_ad=check_fwd_over_rev,
    )


# -- inputs and outputs ----------------------------------------------------------------


def is_active(t: Any) -> bool:
    """Is it a tensor that requires grad?"""
    return isinstance(t, Tensor) and t.requires_grad


def checked_inputs(given: list[Any]) -> list[int]:
    """The places of the inputs that require grad; ValueError if there are none."""
    active = [i for i, t in enumerate(given) if is_active(t)]
    if not active:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of "
            "the them have requires_grad=True."
        )
    for i in active:
        array = given[i]._array
        if array.dtype not in (np.dtype("float64"), np.dtype("complex128")):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex.",
                UserWarning,
                stacklevel=3,
            )
        if any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports "
                "inputs that are non-overlapping to be able to compute the numerical "
                "gradients correctly. You should call .contiguous on the input before "
                "passing it to gradcheck."
            )
    return active


def differentiable(outputs: Any) -> list[Tensor]:
    """The outputs that require grad."""
    found = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    return [t for t in found if is_active(t)]


def random_seeds(outputs: list[Tensor]) -> list[Tensor]:
    """Cotangents for outputs, which require grad themselves."""
    rng = np.random.default_rng(0)
    seeds = []
    for t in outputs:
        values = rng.normal(size=t._array.shape)
        if t._array.dtype.kind == "c":
            values = values + 1j * rng.normal(size=t._array.shape)
        seeds.append(wrap(np.asarray(values).astype(t._array.dtype)).requires_grad_())
    return seeds


# -- both Jacobians --------------------------------------------------------------------


def reals(array: Any) -> Any:
    """An array as a vector of real numbers; of complex ones, all real parts first."""
    flat = np.asarray(array).reshape(-1)
    return np.concatenate([flat.real, flat.imag]) if flat.dtype.kind == "c" else flat


def numerical(func: Any, given: Any, place: int, eps: float) -> list[Any]:
    """For each output the matrix of its derivatives by input `place`, by differences."""
    array = writable(given[place])
    steps = [eps, eps * 1j] if array.dtype.kind == "c" else [eps]
    columns: list[Any] = []
    for step in steps:
        for at in np.ndindex(array.shape):
            before = array[at]
            array[at] = before + step
            ahead = [reals(t._array).copy() for t in differentiable(func(*given))]
            array[at] = before - step
            back = [reals(t._array).copy() for t in differentiable(func(*given))]
            array[at] = before
            columns.append(
                [(a - b) / (2 * eps) for a, b in zip(ahead, back, strict=True)]
            )
    if not columns:
        return [np.zeros((reals(t._array).size, 0)) for t in differentiable(func(*given))]
    return [np.stack(part, 1) for part in zip(*columns, strict=True)]


def writable(t: Tensor) -> Any:
    """The tensor's array, which is its own."""
    if not t._array.flags.writeable:
        t._array = t._array.copy()
    return t._array


def analytical(outputs: list[Tensor], wanted: list[Tensor]) -> list[list[Any]]:
    """The same by backward passes: for each output, a matrix for each input."""
    matrices = []
    for out in outputs:
        kind = out._array.dtype
        rows: list[Any] = []
        for unit in (1, 1j) if kind.kind == "c" else (1,):
            for at in np.ndindex(out._array.shape):
                seed = np.zeros(out._array.shape, kind)
                seed[at] = unit
                got = grad(out, wanted, wrap(seed), retain_graph=True, allow_unused=True)
                rows.append([_row(g, t) for g, t in zip(got, wanted, strict=True)])
        if rows:
            matrices.append([np.stack(part) for part in zip(*rows, strict=True)])
        else:
            matrices.append([np.zeros((0, reals(t._array).size)) for t in wanted])
    return matrices


def _row(g: Tensor | None, t: Tensor) -> Any:
    return reals(np.zeros_like(t._array) if g is None else g._array)


def compare(
    func: Any, given: Any, active: list[int], eps: float, atol: float, rtol: float
) -> None:
    """GradcheckError where the Jacobians differ."""
    outputs = differentiable(func(*given))
    exact = analytical(outputs, [given[i] for i in active])
    for column, place in enumerate(active):
        for out, differences in enumerate(numerical(func, given, place, eps)):
            mine = exact[out][column]
            if not np.allclose(mine, differences, rtol, atol):
                found = cause_of(func, given, active, eps, outputs, (out, place), mine)
                raise mismatch("Jacobian", out, place, differences, mine, found)


def cause_of(
    func: Any,
    given: Any,
    active: list[int],
    eps: float,
    outputs: list[Tensor],
    where: tuple[int, int],
    mine: Any,
) -> Cause | None:
    """What is probably wrong with the gradient of an output by an input."""
    out, place = where
    true = {i: numerical(func, given, i, eps) for i in active}
    y, x = outputs[out]._array, given[place]._array
    return likely_cause(
        Jacobians(
            mine,
            true[place][out],
            y.shape,
            x.shape,
            y.dtype.kind == "c",
            x.dtype.kind == "c",
            {f"input {i}": of[out] for i, of in true.items() if i != place},
            {f"output {i}": j for i, j in enumerate(true[place]) if i != out},
            {
                **{f"input {i}": given[i]._array for i in active},
                f"output {out}": y,
            },
            f"input {place}",
        )
    )


def mismatch(
    what: str,
    out: int,
    place: int,
    differences: Any,
    mine: Any,
    cause: Cause | None = None,
) -> GradcheckError:
    """The error that shows both matrices, one row an input element as PyTorch does.

    A sentence on the likely cause comes last, where one is known.
    """
    apart = np.abs(mine - differences)
    worst = np.unravel_index(np.nan_to_num(apart, nan=np.inf).argmax(), mine.shape)
    why = f"\nLikely cause: {cause.text}." if cause else ""
    return GradcheckError(
        f"{what} mismatch for output {out} with respect to input {place},\n"
        f"numerical:{wrap(differences.T.copy())}\nanalytical:{wrap(mine.T.copy())}\n"
        f"The largest difference is that of element {worst[0]} of the output by element "
        f"{worst[1]} of the input: {differences[worst]} numerically, {mine[worst]} "
        f"analytically.{why}"
    )


# -- other checks ----------------------------------------------------------------------


def check_flat(func: Any, given: Any, active: list[int], eps: float) -> None:
    """No output requires grad: then none may depend on the inputs."""
    for place in active:
        array = writable(given[place])
        for at in np.ndindex(array.shape):
            before = array[at]
            array[at] = before + eps
            ahead = _values(func(*given))
            array[at] = before - eps
            back = _values(func(*given))
            array[at] = before
            if any(
                not np.array_equal(a, b, equal_nan=True)
                for a, b in zip(ahead, back, strict=True)
            ):
                raise GradcheckError(
                    "Numerical gradient for function expected to be zero: no output "
                    f"requires grad, but one changes with input {place}"
                )


def _values(outputs: Any) -> list[Any]:
    found = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    return [
        t._array.copy()
        for t in found
        if isinstance(t, Tensor) and t._array.dtype.kind in "fc"
    ]


def check_determinism(func: Any, given: Any, active: list[int], tolerance: float) -> None:
    """GradcheckError if a second backward pass gives something else."""
    wanted = [given[i] for i in active]
    first, second = (analytical(differentiable(func(*given)), wanted) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        for x, y in zip(a, b, strict=True):
            if x.size and np.nanmax(np.abs(x - y)) > tolerance:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    "gradient matches numerical gradient. The tolerance for nondeterminism "
                    f"was {tolerance}."
                )


class _Undefined(Function):
    """Hands its argument on; what made it gets no gradient in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> None:
        return None


def check_missing(func: Any, given: Any, active: list[int]) -> None:
    """GradcheckError if a backward can't do with outputs that get no gradient.

    Tried with none for any output, and with none for each alone.
    """
    count = len(differentiable(func(*given)))
    everyone = set(range(count))
    for without in [everyone, *({i} for i in everyone if count > 1)]:
        outputs = differentiable(func(*given))
        outputs = [
            _Undefined.apply(t) if i in without else t for i, t in enumerate(outputs)
        ]
        zeros = [wrap(np.zeros_like(t._array)) for t in outputs]
        try:
            got = grad(outputs, [given[i] for i in active], zeros, allow_unused=True)
        except Exception as error:
            raise GradcheckError(f"{_UNDEFINED[0]} {_UNDEFINED[2]}: {error}") from error
        if any(g is not None and g._array.any() for g in got):
            raise GradcheckError(f"{_UNDEFINED[1]} {_UNDEFINED[2]}")


_UNDEFINED = (
    "Expected backward function to handle undefined output grads.",
    "Expected all input grads to be undefined or zero when all output grads are undefined "
    "or zero.",
    'Please look at "Notes about undefined output gradients" in '
    '"tools/autograd/derivatives.yaml"',
)


def check_dtypes(func: Any, given: Any, active: list[int]) -> None:
    """GradcheckError if a gradient has another dtype than its input."""
    outputs = differentiable(func(*given))
    wanted = [given[i] for i in active]
    got = grad(
        outputs,
        wanted,
        [wrap(np.ones_like(t._array)) for t in outputs],
        allow_unused=True,
    )
    for g, t in zip(got, wanted, strict=True):
        if g is not None and g.dtype != t.dtype:
            raise GradcheckError(f"grad is of dtype {g.dtype}, its input of {t.dtype}")


def check_tangents(
    func: Any, given: Any, active: list[int], eps: float, atol: float, rtol: float
) -> None:
    """GradcheckError where forward mode differs from differences."""
    forward_ad: Any = importlib.import_module("gradfn.autograd.forward_ad")

    for place in active:
        array = given[place]._array
        columns: list[Any] = []
        for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
            for at in np.ndindex(array.shape):
                tangent = np.zeros_like(array)
                tangent[at] = unit
                with forward_ad.dual_level():
                    duals = list(given)
                    duals[place] = forward_ad.make_dual(given[place], wrap(tangent))
                    outs = func(*duals)
                    found = outs if isinstance(outs, (tuple, list)) else [outs]
                    parts = [forward_ad.unpack_dual(t) for t in found if is_active(t)]
                    columns.append([_row(p.tangent, p.primal) for p in parts])
        for out, differences in enumerate(numerical(func, given, place, eps)):
            mine = np.stack([c[out] for c in columns], 1)
            if not np.allclose(mine, differences, rtol, atol):
                raise mismatch("Forward mode Jacobian", out, place, differences, mine)
