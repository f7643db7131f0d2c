"""nn.functional.multi_head_attention_forward: attention of several heads at once.

Shapes: queries (L, N, E), keys and values (S, N, E), or without N; masks (L, S) or
(N * heads, L, S), of bool (True: not attended to) or added to the scores.
"""

from __future__ import annotations

import math
from typing import Any

from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def _project(x: Tensor, weight: Tensor, bias: Any) -> Any:
    out = x @ weight.t()
    return out if bias is None else out + bias


def added(mask: Any, like: Tensor, name: str) -> Any:
    """A mask as numbers to be added to scores: -inf where a bool mask is True."""
    if mask is None:
        return None
    if mask.is_floating_point():
        return mask
    if mask.dtype is not PUBLIC["zeros"](0, dtype=bool).dtype:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    zeros = PUBLIC["zeros"](mask.shape, dtype=like.dtype)
    return zeros.masked_fill_(mask, -math.inf)


def _checked_shapes(query: Tensor, key: Tensor, value: Tensor, embed: int) -> None:
    if query.dim() not in (2, 3):
        raise AssertionError(
            "query should be unbatched 2D or batched 3D tensor but received "
            f"{query.dim()}-D query tensor"
        )
    if query.shape[-1] != embed:
        raise AssertionError(
            f"was expecting embedding dimension of {embed}, but got {query.shape[-1]}"
        )
    if tuple(key.shape[:2]) != tuple(value.shape[:2]):
        raise AssertionError(
            f"key's sequence and batch dims {tuple(key.shape[:2])} do not match value's "
            f"{tuple(value.shape[:2])}"
        )


def _projected(
    inputs: Any, shared: Any, separate: Any, bias: Any, embed: int
) -> list[Any]:
    """Queries, keys and values: all by one weight in three parts, or by three weights."""
    weights = separate if shared is None else shared.split(embed)
    biases = (None,) * 3 if bias is None else bias.split(embed)
    return [_project(*both) for both in zip(inputs, weights, biases, strict=True)]


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """The attended values (L, N, E), and their weights or None.

    AssertionError for shapes that do not fit. With `is_causal` a mask must be given.
    """
    _checked_shapes(query, key, value, embed_dim_to_check)
    alone = query.dim() == 2
    if alone:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, embed = query.shape
    if embed % num_heads:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {num_heads}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    shared = None if use_separate_proj_weight else in_proj_weight
    q, k, v = _projected((query, key, value), shared, separate, in_proj_bias, embed)
    k, v = (
        static_k if static_k is not None else k,
        static_v if static_v is not None else v,
    )
    mask = added(attn_mask, q, "attn_mask")
    padding = added(key_padding_mask, q, "key_padding_mask")
    cat = PUBLIC["cat"]
    more = 0  # places beyond the keys that no mask covers
    if bias_k is not None:
        k = cat([k, bias_k.expand(1, batch, embed)])
        v = cat([v, bias_v.expand(1, batch, embed)])
        more += 1
    if add_zero_attn:
        zeros = k.new_zeros(1, batch, k.shape[-1])
        k, v = cat([k, zeros]), cat([v, zeros])
        more += 1

    def heads(x: Any) -> Any:
        return x.reshape(x.shape[0], batch, num_heads, -1).permute(1, 2, 0, 3)

    q, k, v = heads(q), heads(k), heads(v)
    scores = q * (1 / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    scores = _masked(scores, mask, padding, more)
    # As PyTorch: without weights it is scaled_dot_product_attention, whose rows may be empty.
    weights = scores.softmax(-1) if need_weights else PUBLIC["_safe_softmax"](scores, -1)
    if dropout_p > 0 and training:
        from gradfn.nn.dropouts import dropout

        weights = dropout(weights, dropout_p)
    out = (weights @ v).permute(2, 0, 1, 3).reshape(length, batch, -1)
    out = _project(out, out_proj_weight, out_proj_bias)
    if not need_weights:
        return (out.squeeze(1) if alone else out), None
    shown = weights.mean(1) if average_attn_weights else weights
    return (out.squeeze(1), shown.squeeze(0)) if alone else (out, shown)


def _masked(scores: Any, mask: Any, padding: Any, more: int) -> Any:
    """Scores (N, heads, L, S) with the masks added."""
    batch, heads, length, keys = scores.shape
    if mask is not None:
        fits = [(length, keys - more), (batch * heads, length, keys - more)]
        if tuple(mask.shape) not in fits:
            raise RuntimeError(
                f"The shape of the {mask.dim()}D attn_mask is {tuple(mask.shape)}, but should "
                f"be {fits[mask.dim() == 3]}."
            )
        mask = _wider(mask, more)
        shape = (batch, heads, length, keys) if mask.dim() == 3 else (length, keys)
        scores = scores + mask.reshape(shape)
    if padding is not None:
        if tuple(padding.shape) != (batch, keys - more):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, keys - more)}, but got "
                f"{tuple(padding.shape)}"
            )
        scores = scores + _wider(padding, more).reshape(batch, 1, 1, keys)
    return scores


def _wider(mask: Any, more: int) -> Any:
    if not more:
        return mask
    return PUBLIC["cat"]([mask, mask.new_zeros(*mask.shape[:-1], more)], -1)
