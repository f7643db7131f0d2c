"""What torch.func refuses: PyTorch's type of exception and its key phrase."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import gradfn as torch
import gradfn.nn.functional as F
from gradfn.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

X = torch.arange(12.0).reshape(3, 4) - 5
I = torch.tensor([[0, 1], [2, 3], [1, 1]])
ONE = torch.ones(3)


def written(method: str) -> Callable[[Any], Any]:
    """Writes a sample into what all samples share."""

    def write(row: Any) -> Any:
        return getattr(torch.zeros(4), method)(row)

    return write


def escaped() -> Any:
    """Uses a sample outside of vmap."""
    kept: list[Any] = []
    vmap(lambda row: (kept.append(row), row)[1])(X)
    return kept[0] + 1


TRANSFORMS: dict[str, tuple[Any, type[Exception], str]] = {
    "complex input": (
        lambda: jacrev(lambda x: x.conj())(torch.ones(1).to(torch.complex64)),
        RuntimeError,
        "jacrev: Expected all inputs to be real",
    ),
    "complex input, forwards": (
        lambda: jacfwd(lambda x: x.conj())(torch.ones(1).to(torch.complex64)),
        RuntimeError,
        "jacfwd: Expected all inputs to be real",
    ),
    "complex output": (
        lambda: jacrev(lambda x: x * 0.5j)(ONE),
        RuntimeError,
        "jacrev: Expected all outputs to be real",
    ),
    "complex output, forwards": (
        lambda: jacfwd(lambda x: x * 0.5j)(ONE),
        RuntimeError,
        "jacfwd: Expected all outputs to be real",
    ),
    "complex value": (
        lambda: grad(lambda x: x.sum())(torch.ones(1).to(torch.complex64)),
        RuntimeError,
        "grad can be implicitly created only for real scalar outputs",
    ),
    "integers": (
        lambda: grad(lambda x: x.sum() * 1.0)(torch.arange(3)),
        RuntimeError,
        "only Tensors of floating point dtype can require gradients",
    ),
    "integers, forwards": (
        lambda: hessian(lambda x: x.sum() * 1.0)(torch.arange(3)),
        ValueError,
        "Expected primal to be floating point or complex",
    ),
    "a number": (
        lambda: grad(lambda x: x)(3.0),
        ValueError,
        "Thing passed to transform API must be Tensor",
    ),
    "integer output": (
        lambda: jacrev(lambda x: x.long())(ONE),
        RuntimeError,
        "All outputs of f must be floating-point or complex Tensors",
    ),
    "no output": (
        lambda: vjp(lambda x: None, ONE),
        RuntimeError,
        r"vjp\(f, \*primals\): Expected f to be a function that has non-empty output",
    ),
    "no output, forwards": (
        lambda: jvp(lambda x: (), (ONE,), (ONE,)),
        RuntimeError,
        "Expected f to be a function that has non-empty output",
    ),
    "other output": (
        lambda: jacrev(lambda x: "text")(ONE),
        RuntimeError,
        r"expected f\(\*primals\) to return only tensors",
    ),
    "no number": (
        lambda: grad(lambda x: x)(ONE),
        RuntimeError,
        "to return a scalar Tensor, got tensor with 1 dims",
    ),
    "aux is no pair": (
        lambda: grad(lambda x: [x.sum(), x], has_aux=True)(ONE),
        RuntimeError,
        r"should be a tuple: \(output, aux\)",
    ),
    "aux is no tensor": (
        lambda: grad(lambda x: (x.sum(), [x, 1]), has_aux=True)(ONE),
        RuntimeError,
        "Expected tensors, got unsupported type <class 'int'>",
    ),
    "aux is no tensor, jacfwd": (
        lambda: jacfwd(lambda x: (x, "text"), has_aux=True)(ONE),
        RuntimeError,
        "Expected tensors, got unsupported type",
    ),
    "argnums is a list": (
        lambda: grad(lambda x: x.sum(), argnums=[0])(ONE),  # type: ignore[arg-type]
        RuntimeError,
        "argnums must be int or Tuple",
    ),
    "argnums too large": (
        lambda: grad(lambda x: x.sum(), argnums=1)(ONE),
        RuntimeError,
        "only 1 positional inputs",
    ),
    "argnums twice": (
        lambda: grad(lambda x: x.sum(), argnums=(0, -1))(ONE),
        RuntimeError,
        "argnums elements must be unique",
    ),
    "argnums empty": (
        lambda: jacrev(lambda x: x, argnums=())(ONE),
        RuntimeError,
        "argnums must be non-empty",
    ),
    "chunks of none": (
        lambda: jacrev(lambda x: x, chunk_size=0),
        ValueError,
        "`chunk_size` should be greater than 0",
    ),
    "primals are no tuple": (
        lambda: jvp(lambda x: x, ONE, (ONE,)),
        RuntimeError,
        "Expected primals to be a tuple",
    ),
    "tangents of another form": (
        lambda: jvp(lambda x: x, (ONE,), (ONE, ONE)),
        RuntimeError,
        "same python structure",
    ),
    "primals without tensors": (
        lambda: jvp(lambda: ONE, (), ()),
        RuntimeError,
        "at least one Tensor",
    ),
    "tangents that are none": (
        lambda: jvp(lambda x: x, (ONE,), (1.0,)),
        RuntimeError,
        "only contain Tensors",
    ),
    "tangent of another size": (
        lambda: jvp(lambda x: x, (ONE,), (torch.ones(2),)),
        RuntimeError,
        "has a different size than that of the original Tensor",
    ),
    "strict": (
        lambda: jvp(lambda x: torch.ones(3), (ONE,), (ONE,), strict=True),
        RuntimeError,
        "The output of f is independent of the inputs",
    ),
    "cotangents of another form": (
        lambda: vjp(lambda x: (x, x), ONE)[1](ONE),
        RuntimeError,
        "Expected pytree structure of cotangents",
    ),
    "cotangent of another size": (
        lambda: vjp(lambda x: x, ONE)[1](torch.ones(2)),
        RuntimeError,
        r"Mismatch in shape: grad_output\[0\]",
    ),
    "linearize, another size": (
        lambda: linearize(lambda x: x, ONE)[1](torch.ones(2)),
        RuntimeError,
        "tangent:0 with shape",
    ),
    "linearize, another dtype": (
        lambda: linearize(lambda x: x, ONE)[1](ONE.double()),
        RuntimeError,
        "tangent:0 with dtype",
    ),
    "linearize, another form": (
        lambda: linearize(lambda x: x, ONE)[1](ONE, ONE),
        RuntimeError,
        "to have the same argspec as the primals",
    ),
}

DYNAMIC = "We do not support batching operators that can output dynamic shape"
CONTROL = "attempting to use a Tensor in some data-dependent control flow"
ITEM = r"It looks like you're calling .item\(\) on a Tensor"
MEMORY = "Cannot access data pointer of Tensor that doesn't have storage"
SHARED = "inplace arithmetic.* there exists a Tensor `other` in extra_args that has more"
RANDOM = "called random operation while in randomness error mode"

VMAP: dict[str, tuple[Any, type[Exception], str]] = {
    "nonzero": (lambda: vmap(lambda t: t.nonzero())(X), RuntimeError, DYNAMIC),
    "where": (lambda: vmap(lambda t: torch.where(t > 0))(X), RuntimeError, DYNAMIC),
    "unique": (lambda: vmap(lambda t: t.unique())(X), RuntimeError, DYNAMIC),
    "mask": (
        lambda: vmap(lambda t: t[t > 0])(X),
        RuntimeError,
        "Attempting to batch over indexing with a boolean mask",
    ),
    "masked_select": (
        lambda: vmap(lambda t: t.masked_select(t > 0))(X),
        RuntimeError,
        "Attempted to vmap over `mask` in torch.masked_select",
    ),
    "if": (lambda: vmap(lambda t: t if t.sum() > 0 else -t)(X), RuntimeError, CONTROL),
    "item": (lambda: vmap(lambda t: t.sum().item())(X), RuntimeError, ITEM),
    "float": (lambda: vmap(lambda t: float(t.sum()))(X), RuntimeError, ITEM),
    "range": (lambda: vmap(lambda t: X[: t[0]])(I), RuntimeError, ITEM),
    "numpy": (lambda: vmap(lambda t: t.numpy())(X), RuntimeError, MEMORY),
    "tolist": (lambda: vmap(lambda t: t.tolist())(X), RuntimeError, MEMORY),
    "data_ptr": (lambda: vmap(lambda t: t.data_ptr())(X), RuntimeError, MEMORY),
    "data": (
        lambda: vmap(lambda t: t.data)(X),
        RuntimeError,
        "accessing `data` under vmap transform is not allowed",
    ),
    "out": (
        lambda: vmap(lambda t: torch.abs(t, out=torch.zeros(4)))(X),
        RuntimeError,
        "Batching rule not implemented for aten::abs.out",
    ),
    "equal": (
        lambda: vmap(lambda t: torch.equal(t, t))(X),
        RuntimeError,
        "Batching rule not implemented for aten::equal",
    ),
    "allclose": (
        lambda: vmap(lambda t: torch.allclose(t, t))(X),
        RuntimeError,
        "vmap over torch.allclose isn't supported yet",
    ),
    "one_hot": (
        lambda: vmap(lambda t: F.one_hot(t))(I),
        RuntimeError,
        "please provide an explicit positive num_classes argument",
    ),
    "class": (
        lambda: vmap(lambda t, i: F.cross_entropy(t, i))(X, torch.tensor([0, 4, 1])),
        IndexError,
        "Target 4 is out of bounds",
    ),
    "copy_": (lambda: vmap(written("copy_"))(X), RuntimeError, SHARED),
    "add_": (lambda: vmap(written("add_"))(X), RuntimeError, SHARED),
    "escaped": (escaped, RuntimeError, "your tensor may have escaped from inside"),
    "randn": (lambda: vmap(lambda t: t + torch.randn(4))(X), RuntimeError, RANDOM),
    "dropout": (lambda: vmap(lambda t: F.dropout(t))(X), RuntimeError, RANDOM),
    "same of its own": (
        lambda: vmap(torch.bernoulli, randomness="same")(X.sigmoid()),
        RuntimeError,
        "does not currently support same randomness with a batched tensor input",
    ),
    "different in what is shared": (
        lambda: vmap(lambda t: torch.zeros(4).normal_(), randomness="different")(X),
        RuntimeError,
        "Cannot ask for different inplace randomness on an unbatched tensor",
    ),
    "randomness": (
        lambda: vmap(lambda t: t, randomness="some")(X),
        RuntimeError,
        "Only allowed values for randomness are",
    ),
    "chunk_size": (
        lambda: vmap(lambda t: t, chunk_size=0),
        ValueError,
        "chunk_size should be None or greater than 0",
    ),
    "in_dims outside": (
        lambda: vmap(lambda t: t, in_dims=2)(X),
        ValueError,
        "expected in_dim to satisfy -2 <= in_dim < 2",
    ),
    "in_dims None": (
        lambda: vmap(lambda t: t, in_dims=(None,))(X),
        ValueError,
        "Expected at least one Tensor to vmap over",
    ),
    "in_dims too many": (
        lambda: vmap(lambda t: t, in_dims=(0, 0))(X),
        ValueError,
        "in_dims is not compatible with the structure of `inputs`",
    ),
    "in_dims in a tuple for a list": (
        lambda: vmap(lambda ts: ts[0], in_dims=((0, 0),))([X, X]),
        ValueError,
        "in_dims is not compatible with the structure of `inputs`",
    ),
    "in_dims a list": (
        lambda: vmap(lambda t: t, in_dims=[0])(X),
        ValueError,
        "expected `in_dims` to be int or a",
    ),
    "in_dims for a number": (
        lambda: vmap(lambda t, n: t)(X, 3),
        ValueError,
        "We cannot vmap over non-Tensor arguments",
    ),
    "sizes": (
        lambda: vmap(lambda a, b: a)(X, I.T),
        ValueError,
        "Expected all tensors to have the same size in the mapped dimension",
    ),
    "no inputs": (lambda: vmap(lambda: X)(), ValueError, "got no inputs"),
    "out_dims text": (
        lambda: vmap(lambda t: t, out_dims="a")(X),
        ValueError,
        "must be an int, None or a python collection of ints",
    ),
    "out_dims outside": (
        lambda: vmap(lambda t: t, out_dims=5)(X),
        IndexError,
        "Dimension out of range",
    ),
    "out_dims too many": (
        lambda: vmap(lambda t: t, out_dims=(0, 0))(X),
        ValueError,
        "out_dims is not compatible with the structure of `outputs`",
    ),
    "out_dims None": (
        lambda: vmap(lambda t: t, out_dims=None)(X),
        ValueError,
        "can not return a BatchedTensor when out_dim is None",
    ),
    "a number out": (
        lambda: vmap(lambda t: 3)(X),
        ValueError,
        "Did you mean to set out_dims= to None for output",
    ),
    "name of a partial": (
        lambda: vmap(partial(torch.mul, X))(3),
        ValueError,
        r"vmap\(functools.partial\(mul, ...\)",
    ),
    "mm of vectors": (
        lambda: vmap(torch.mm)(X, X),
        RuntimeError,
        "Got incorrect dims for mm",
    ),
    "mv of vectors": (
        lambda: vmap(torch.mv)(X, X),
        RuntimeError,
        "Got incorrect dims for mv",
    ),
    "view": (
        lambda: vmap(lambda t: t.T.view(-1))(X.reshape(3, 2, 2)),
        RuntimeError,
        "view size is not compatible",
    ),
}


@pytest.mark.parametrize("case", TRANSFORMS)
def test_of_transforms(case: str) -> None:
    call, kind, phrase = TRANSFORMS[case]
    with pytest.raises(kind, match=phrase):
        call()


@pytest.mark.parametrize("case", VMAP)
def test_of_vmap(case: str) -> None:
    call, kind, phrase = VMAP[case]
    with pytest.raises(kind, match=phrase):
        call()
