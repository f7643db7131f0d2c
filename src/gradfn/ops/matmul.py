"""Products of matrices and vectors, and einsum."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from gradfn.ops.rule import op
from gradfn.ops.sizes import wrapped
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method

# -- kernels ---------------------------------------------------------------------------

_NAMES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "int64": "long long",
    "int32": "int",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def same_dtype(a: Any, b: Any) -> None:
    """RuntimeError unless both matrices have one dtype."""
    if a.dtype != b.dtype:
        left, right = (_NAMES.get(x.dtype.name, x.dtype.name) for x in (a, b))
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {left} != {right}"
        )


def product(a: Any, b: Any) -> Any:
    """NumPy's product; float16 is summed in float32.

    A column times a row has nothing to sum, and multiplying is up to four times faster.
    """
    if a.shape[-1] == 1 and a.ndim > 1 and b.ndim > 1:
        return np.multiply(a, b)
    if a.dtype == np.float16:
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    return np.matmul(a, b)


def _ndims(name: str, *arrays: Any) -> None:
    for place, (a, ndim) in enumerate(arrays):
        if a.ndim != ndim:
            raise RuntimeError(
                f"{name}: expected a {ndim}-D tensor as argument {place + 1}, but got "
                f"{a.ndim}-D"
            )


def _mm(a: Any, b: Any) -> Any:
    if a.ndim != 2 or b.ndim != 2:
        bad = "self" if a.ndim != 2 else "mat2"
        raise RuntimeError(f"{bad} must be a matrix")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and "
            f"{b.shape[0]}x{b.shape[1]})"
        )
    same_dtype(a, b)
    return product(a, b)


def _bmm(a: Any, b: Any) -> Any:
    if a.ndim != 3 or b.ndim != 3:
        raise RuntimeError("batch1 and batch2 must be 3D tensors")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}]."
        )
    same_dtype(a, b)
    return product(a, b)


def _mv(a: Any, b: Any) -> Any:
    _ndims("mv", (a, 2), (b, 1))
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({a.shape[0]}), mat ({a.shape[0]}x{a.shape[1]}), vec "
            f"({b.shape[0]})"
        )
    same_dtype(a, b)
    return product(a, b)


def _dot(a: Any, b: Any) -> Any:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(
            f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.shape[0]}] and src "
            f"[{b.shape[0]}] to have the same number of elements, but got {a.shape[0]} and "
            f"{b.shape[0]} elements respectively"
        )
    if a.dtype != b.dtype:
        left, right = (_NAMES.get(x.dtype.name, x.dtype.name) for x in (a, b))
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {left} and {right}"
        )
    return product(a, b)


def _outer(a: Any, b: Any) -> Any:
    _ndims("outer", (a, 1), (b, 1))
    return np.multiply.outer(a, b).astype(np.result_type(a, b), copy=False)


# -- rows ------------------------------------------------------------------------------


def _turned(x: Any) -> Any:
    """The conjugate transpose, with which gradients of products are multiplied."""
    return x.mT.conj()


op(
    "mm(self, mat2)",
    _mm,
    self=lambda g, xp, mat2: xp.mm(g, _turned(mat2)),
    mat2=lambda g, xp, self: xp.mm(_turned(self), g),
    linear=True,
)
op(
    "bmm(self, mat2)",
    _bmm,
    self=lambda g, xp, mat2: xp.bmm(g, _turned(mat2)),
    mat2=lambda g, xp, self: xp.bmm(_turned(self), g),
    linear=True,
)
op(
    "mv(self, vec)",
    _mv,
    self=lambda g, xp, vec: xp.outer(g, vec.conj()),
    vec=lambda g, xp, self: xp.mv(_turned(self), g),
    linear=True,
)
op(
    "dot(self, tensor)",
    _dot,
    self=lambda g, tensor: g * tensor.conj(),
    tensor=lambda g, self: g * self.conj(),
    linear=True,
)
op(
    "vdot(self, other)",
    lambda a, b: _dot(a.conj(), b),
    self=lambda g, other: g.conj() * other,
    other=lambda g, self: g * self,
)
op(
    "outer(self, vec2)",
    _outer,
    self=lambda g, xp, vec2: xp.mv(g, vec2.conj()),
    vec2=lambda g, xp, self: xp.mv(xp.transpose(g, 0, 1), self.conj()),
    linear=True,
)


def _vector_first(x: Any, ndim: int) -> Any:
    return x.reshape((1, x.shape[0])) if ndim == 1 else x


def _vector_second(x: Any, ndim: int) -> Any:
    return x.reshape((x.shape[0], 1)) if ndim == 1 else x


def _matmul(a: Any, b: Any) -> Any:
    if not a.ndim or not b.ndim:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and "
            f"{b.ndim}D"
        )
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else -1]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({_as_matrix(a)} and "
            f"{_as_matrix(b)})"
        )
    same_dtype(a, b)
    return product(a, b)


def _as_matrix(a: Any) -> str:
    rows = a.size // max(a.shape[-1], 1)
    return f"{rows}x{a.shape[-1]}" if a.ndim > 1 else f"{a.shape[0]}"


def _matmul_g(g: Any, a_shape: Any, b_shape: Any) -> Any:
    """The gradient with the dims that vectors had lost."""
    shape = tuple(g.shape)
    if len(b_shape) == 1:
        shape = (*shape, 1)
    if len(a_shape) == 1:
        shape = (*shape[:-1], 1, shape[-1])
    return g.reshape(shape)


def _matmul_self(g: Any, xp: Any, self_shape: Any, other: Any, other_shape: Any) -> Any:
    g = _matmul_g(g, self_shape, other_shape)
    got = xp._matmul(g, _turned(_vector_second(other, len(other_shape))))
    if len(self_shape) == 1:
        return xp.sum(got.reshape((-1, self_shape[0])), 0)
    return got


def _matmul_other(g: Any, xp: Any, self: Any, self_shape: Any, other_shape: Any) -> Any:
    g = _matmul_g(g, self_shape, other_shape)
    got = xp._matmul(_turned(_vector_first(self, len(self_shape))), g)
    if len(other_shape) == 1:
        return xp.sum(got.reshape((-1, other_shape[0])), 0)
    return got


# The engine sums the gradient over batch dims that were broadcast.
_matmul_row = op(
    "_matmul(self, other)",
    _matmul,
    function=False,
    method=False,
    node="UnsafeView",
    linear=True,
    self=_matmul_self,
    other=_matmul_other,
).function


@public
@method
def matmul(self: Any, other: Any) -> Any:
    """The product of matrices, vectors, or batches of them that broadcast.

    RuntimeError if the sizes don't fit or the dtypes differ.
    """
    if isinstance(self, Tensor) and isinstance(other, Tensor):
        a, b = self._array.ndim, other._array.ndim
        if a == 2 and b == 2:
            return self.mm(other)
        if a == 1 and b == 1:
            return self.dot(other)
        if a == 2 and b == 1:
            return self.mv(other)
        if a == 3 and b == 3 and self._array.shape[0] == other._array.shape[0]:
            return self.bmm(other)
    return _matmul_row(self, other)


def _at(self: Tensor, other: Any) -> Any:
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


def _rmatmul(self: Tensor, other: Any) -> Any:
    return matmul(other, self) if isinstance(other, Tensor) else NotImplemented


def _imatmul(self: Tensor, other: Any) -> Any:
    return matmul(self, other)


setattr(Tensor, "__matmul__", _at)  # noqa: B010 - mypy knows no such operator
setattr(Tensor, "__rmatmul__", _rmatmul)  # noqa: B010
setattr(Tensor, "__imatmul__", _imatmul)  # noqa: B010

# -- sums of products ------------------------------------------------------------------


def _scaled(x: Any, factor: Any) -> Any:
    if x._array.dtype.kind in "iu":  # integers stay what they are
        factor = int(factor)
    return x if factor == 1 else x * factor


def _plus(name: str, multiply: str, doc: str) -> None:
    def plus(self: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
        whole = _scaled(getattr(a, multiply)(b), alpha)
        if multiply == "bmm" and name == "addbmm":
            whole = whole.sum(0)
        return whole if beta == 0 else _scaled(self, beta) + whole

    plus.__name__, plus.__doc__ = name, doc
    public(method(plus))

    def plus_(
        self: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1
    ) -> Any:
        return self.mul_(beta).add_(plus(self * 0, a, b, beta=0, alpha=alpha))

    plus_.__name__, plus_.__doc__ = name + "_", f"`{name}` in place."
    method(plus_)


_plus("addmm", "mm", "`beta * self + alpha * (a @ b)` for matrices.")
_plus("addmv", "mv", "`beta * self + alpha * (a @ b)` for a matrix and a vector.")
_plus("addr", "outer", "`beta * self + alpha * outer(a, b)`.")
_plus("baddbmm", "bmm", "`beta * self + alpha * (a @ b)` for batches of matrices.")
_plus("addbmm", "bmm", "`beta * self + alpha * sum(a @ b)`, summed over the batch.")


@public
@method
def ger(self: Tensor, vec2: Tensor) -> Any:
    """Another name of `outer`."""
    return self.outer(vec2)


@public
@method
def inner(self: Tensor, other: Tensor) -> Any:
    """The sums of products over the last dims of both."""
    if not self._array.ndim or not other._array.ndim:
        return self * other
    return tensordot(self, other, dims=([-1], [-1]))


@public
def chain_matmul(*matrices: Tensor) -> Any:
    """The product of several matrices."""
    linalg: Any = import_module("gradfn.linalg")
    return matrices[0] if len(matrices) == 1 else linalg.multi_dot(matrices)


@public
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Any:
    """The sums of products over pairs of dims: the last n and first n, or those listed."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        n = a._array.ndim
        dims = (list(range(n - dims, n)), list(range(dims)))
    left = [d % a._array.ndim for d in dims[0]]
    right = [d % b._array.ndim for d in dims[1]]
    for i, j in zip(left, right, strict=True):
        if a.shape[i] == 1 != b.shape[j]:  # repeated, as torch does
            b = b.sum(j, keepdim=True)
        elif b.shape[j] == 1 != a.shape[i]:
            a = a.sum(i, keepdim=True)
        elif a.shape[i] != b.shape[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[i]} in "
                f"dim {i} and second has size {b.shape[j]} in dim {j}"
            )
    free_a = [d for d in range(a._array.ndim) if d not in left]
    free_b = [d for d in range(b._array.ndim) if d not in right]
    inside = 1
    for d in left:
        inside *= a.shape[d]
    rows = a.permute([*free_a, *left]).reshape(-1 if a.numel() else 0, inside)
    columns = b.permute([*right, *free_b]).reshape(inside, -1 if b.numel() else 0)
    shape = [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]
    return rows.mm(columns).reshape(shape)


@public
@method
def trace(self: Tensor) -> Any:
    """The sum of a matrix's diagonal."""
    if self._array.ndim != 2:
        raise RuntimeError(
            f"trace: expected a matrix, but got tensor with dim {self._array.ndim}"
        )
    return self.diagonal().sum()


def check_cross(a: Any, b: Any, dim: int) -> None:
    """RuntimeError unless there is a cross product of these."""
    if a.ndim != b.ndim:
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions. Got "
            f"{a.ndim} and {b.ndim}"
        )
    place = wrapped(dim, a.ndim)
    if not a.ndim or a.shape[place] != 3 or b.shape[place] != 3:
        sizes = [x.shape[place] if x.ndim else 1 for x in (a, b)]
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and "
            f"{sizes[1]}"
        )


def _cross(a: Any, b: Any, dim: int) -> Any:
    check_cross(a, b, dim)
    return np.cross(a, b, axis=dim)


_cross_row = op(
    "linalg_cross(self, other, dim=-1)",
    _cross,
    method=False,
    self=lambda g, xp, other, dim: xp.linalg_cross(other.conj(), g, dim),
    other=lambda g, xp, self, dim: xp.linalg_cross(g, self.conj(), dim),
).function


@public
@method
def cross(self: Tensor, other: Tensor, dim: Any = None) -> Any:
    """The cross product along `dim`, by default the first of size 3."""
    if dim is None:
        dim = next((d for d, n in enumerate(self.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return _cross_row(self, other, dim)


# -- einsum ----------------------------------------------------------------------------


def _contract(arrays: Any, equation: str) -> Any:
    if len(arrays) == 2 and arrays[0].size * arrays[1].size > 4096:
        return np.einsum(equation, *arrays, optimize=True)
    return np.einsum(equation, *arrays, optimize=len(arrays) > 2)


def _contract_grad(
    g: Any, xp: Any, tensors: Any, tensors_shape: Any, equation: str
) -> Any:
    terms, out = equation.split("->")
    names = terms.split(",")
    grads = []
    for i, (name, shape) in enumerate(zip(names, tensors_shape, strict=True)):
        others = [
            (n, t) for j, (n, t) in enumerate(zip(names, tensors, strict=True)) if j != i
        ]
        known = set(out).union(*(n for n, _ in others)) if others else set(out)
        unique = "".join(dict.fromkeys(name))
        got = "".join(c for c in unique if c in known)
        left = ",".join([out, *(n for n, _ in others)])
        part = xp._contract([g, *(t.conj() for _, t in others)], f"{left}->{got}")
        size = dict(zip(name, shape, strict=True))
        lifted = part.reshape(tuple(size[c] if c in got else 1 for c in unique))
        grads.append(_repeated(lifted, xp, name, unique, shape))
    return grads


def _repeated(part: Any, xp: Any, name: str, unique: str, shape: Any) -> Any:
    """The gradient of a term in which a letter may stand twice: of its diagonal."""
    size = dict(zip(name, shape, strict=True))
    part = xp._spread(part, tuple(size[c] for c in unique), None, True)
    done = list(unique)
    for c in unique:
        for _ in range(name.count(c) - 1):
            at = done.index(c)
            full = (*(size[d] for d in done[:at] + done[at + 1 :]), size[c], size[c])
            moved = xp._move_last(part, at)
            part = xp._diagonal_put(moved, full, 0, len(done) - 1, len(done))
            done = [*done[:at], *done[at + 1 :], c, c]
    return xp._permute(part, _matching(done, name)) if len(done) > 1 else part


def _matching(have: list[str], name: str) -> tuple[int, ...]:
    left = list(enumerate(have))
    order = []
    for c in name:
        found = next(pair for pair in left if pair[1] == c)
        left.remove(found)
        order.append(found[0])
    return tuple(order)


op(
    "_move_last(self, dim)",
    lambda a, dim: np.moveaxis(a, dim, -1),
    function=False,
    method=False,
    self=lambda g, xp, dim: xp._move_from_last(g, dim),
)
op(
    "_move_from_last(self, dim)",
    lambda a, dim: np.moveaxis(a, -1, dim),
    function=False,
    method=False,
    self=lambda g, xp, dim: xp._move_last(g, dim),
)
_contract_row = op(
    "_contract(tensors, equation)",
    _contract,
    many="tensors",
    function=False,
    method=False,
    node="Einsum",
    tensors=_contract_grad,
).function
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@public
def einsum(*args: Any) -> Any:
    """The sums of products that an equation such as "ij,jk->ik" describes.

    Operands follow the equation, or stand each before its list of dim numbers.
    RuntimeError for an equation that does not fit the operands.
    """
    if isinstance(args[0], str):
        equation, operands = args[0], list(args[1:])
        if len(operands) == 1 and not isinstance(operands[0], Tensor):
            operands = list(operands[0])
    else:
        equation, operands = _from_lists(args)
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    equation = full_equation(equation, [t._array.ndim for t in operands])
    terms = equation.partition("->")[0].split(",")
    operands = [
        _without_ones(t, term, operands, terms)
        for t, term in zip(operands, terms, strict=True)
    ]
    return _contract_row(operands, equation)


def _from_lists(args: Any) -> tuple[str, list[Any]]:
    operands, terms = list(args[: len(args) // 2 * 2 : 2]), list(args[1::2])

    def spell(dims: Any) -> str:
        return "".join("..." if d is Ellipsis else _LETTERS[d] for d in dims)

    equation = ",".join(spell(t) for t in terms)
    if len(args) % 2:
        equation += "->" + spell(args[-1])
    return equation, operands


def full_equation(equation: str, ndims: list[int]) -> str:
    """The equation with an output, and letters for each ellipsis."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        more = "more" if len(ndims) > len(terms) else "fewer"
        raise RuntimeError(
            f"einsum(): {more} operands were provided than specified in the equation"
        )
    free = [c for c in _LETTERS if c not in text]
    widths = [n - len(t.replace("...", "")) for t, n in zip(terms, ndims, strict=True)]
    for i, (term, width) in enumerate(zip(terms, widths, strict=True)):
        if width < 0 or (width and "..." not in term):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not "
                f"match the number of dimensions ({ndims[i]}) for operand {i} and no "
                "ellipsis was given"
            )
    most = max((w for t, w in zip(terms, widths, strict=True) if "..." in t), default=0)
    rest = "".join(free[:most])
    terms = [
        t.replace("...", rest[most - w :] if w else "")
        for t, w in zip(terms, widths, strict=True)
    ]
    if arrow:
        right = right.replace("...", rest)
    else:
        together = "".join(terms)
        once = [c for c in together if together.count(c) == 1 and c not in rest]
        right = rest + "".join(sorted(once))
    for c in right:
        if c not in "".join(terms):
            raise RuntimeError(
                f"einsum(): output subscript {c} does not appear in the equation for any "
                "input operand"
            )
    return ",".join(terms) + "->" + right


def _without_ones(t: Tensor, term: str, operands: Any, terms: Any) -> Tensor:
    """The operand with dims of size 1 repeated, where the letter is larger elsewhere."""
    size: dict[str, int] = {}
    for other, name in zip(operands, terms, strict=True):
        for c, n in zip(name, other._array.shape, strict=True):
            if size.get(c, 1) != n and n != 1 and size.get(c, 1) != 1:
                raise RuntimeError(
                    f"einsum(): subscript {c} has size {n} for operand which does not "
                    f"broadcast with previously seen size {size[c]}"
                )
            size[c] = max(size.get(c, 1), n) if n else 0
    shape = tuple(size[c] for c in term)
    return t if t._array.shape == shape else t.expand(shape)
