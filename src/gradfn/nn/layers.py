"""Linear maps, lengths, attention."""

from __future__ import annotations

import math
from typing import Any

from gradfn.graph.batched import all_values, refuse_batched
from gradfn.nn.dropouts import dropout
from gradfn.ops.matmul import product
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def _affine(a: Any, w: Any, bias: Any) -> Any:
    out = product(a, w.T)
    out += bias
    return out


def _affine_weight(g: Any, xp: Any, self: Any, weight_shape: Any) -> Any:
    outs, ins = weight_shape
    rows = self.reshape((math.prod(self.shape[:-1]), ins))
    return xp._matmul(g.reshape((rows.shape[0], outs)).mT, rows.conj())


def _affine_bias(g: Any, xp: Any) -> Any:
    lead = tuple(range(len(g.shape) - 1))
    return xp.sum(g, lead) if lead else g


_affine_row = op(
    "_linear(self, weight, bias)",
    _affine,
    function=False,
    method=False,
    node="Addmm",
    self=lambda g, xp, weight: xp._matmul(g, weight.conj()),
    weight=_affine_weight,
    bias=_affine_bias,
).function


def linear(input: Tensor, weight: Tensor, bias: Any = None) -> Any:
    """input @ weight.T + bias: one op for a matrix and a vector, else a product and a sum."""
    if bias is not None:
        a, w, b = input._array, weight._array, bias._array
        if (
            w.ndim == 2
            and a.ndim
            and b.shape == w.shape[:1]
            and a.shape[-1] == w.shape[1]
            and a.dtype is w.dtype is b.dtype
        ):
            return _affine_row(input, weight, bias)
    out = input @ weight.t()
    return out if bias is None else out + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Any = None) -> Any:
    """x1 @ weight[k] @ x2 for each output k."""
    out = PUBLIC["einsum"]("...i,kij,...j->...k", input1, weight, input2)
    return out if bias is None else out + bias


def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None
) -> Any:
    """Vectors along `dim` divided by their p-norm, or by eps if that is smaller."""
    size = input.norm(p, dim, keepdim=True).clamp(min=eps)
    return input / size.expand_as(input)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """Divided by a power of the mean square of neighbouring channels."""
    from gradfn.nn.padding import pad

    squares = input * input
    spread = [0, 0] * (input.dim() - 2) + [size // 2, (size - 1) // 2]
    mean = pad(squares, spread).unfold(1, size, 1).mean(-1)
    return input / (mean * alpha + k) ** beta


def one_hot(tensor: Tensor, num_classes: int = -1) -> Any:
    """1 at each class, 0 elsewhere, in a new last dim."""
    if tensor.dtype is not PUBLIC["tensor"](0).dtype:
        raise RuntimeError(
            "one_hot is only applicable to index tensor of type LongTensor."
        )
    if num_classes < 0:
        refuse_batched(
            "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive "
            "num_classes argument.",
            tensor,
        )
    values = all_values(tensor)
    if values.size and values.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    n = num_classes if num_classes >= 0 else int(tensor.max()) + 1
    if values.size and values.max() >= n:
        raise RuntimeError("Class values must be smaller than num_classes.")
    out = tensor.new_zeros((*tensor.shape, n))
    return out.scatter_(-1, tensor.unsqueeze(-1), 1)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """softmax(query @ key.T / sqrt(size) + mask) @ value."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    scores = query @ key.transpose(-2, -1) * factor
    if is_causal:
        ones = PUBLIC["ones"](query.shape[-2], key.shape[-2])
        scores = scores.masked_fill(ones.tril() == 0, -math.inf)
    if attn_mask is not None:
        if attn_mask.is_floating_point():
            scores = scores + attn_mask
        else:
            scores = scores.masked_fill(~attn_mask, -math.inf)
    return dropout(PUBLIC["_safe_softmax"](scores, -1), dropout_p) @ value
