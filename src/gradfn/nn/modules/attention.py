"""MultiheadAttention."""

from __future__ import annotations

from typing import Any

from gradfn.nn import init
from gradfn.nn.modules.linear import NonDynamicallyQuantizableLinear, empty
from gradfn.nn.modules.module import Module
from gradfn.nn.multihead import multi_head_attention_forward

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of several heads (Vaswani et al., 2017)."""

    bias_k: Any
    bias_v: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: Any = None,
        vdim: Any = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.head_dim, self.batch_first = embed_dim // num_heads, batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        self.add_zero_attn = add_zero_attn
        kind = {"device": device, "dtype": dtype}
        same, e = self._qkv_same_embed_dim, embed_dim
        for name, width in (("q", e), ("k", self.kdim), ("v", self.vdim)):
            made = None if same else empty(e, width, **kind)
            self.register_parameter(f"{name}_proj_weight", made)
        self.register_parameter(
            "in_proj_weight", empty(3 * e, e, **kind) if same else None
        )
        self.register_parameter("in_proj_bias", empty(3 * e, **kind) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(e, e, bias, **kind)
        self.bias_k = empty(1, 1, e, **kind) if add_bias_kv else None
        self.bias_v = empty(1, 1, e, **kind) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        names = ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")
        for weight in (getattr(self, n) for n in names):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for more in (self.bias_k, self.bias_v):
            if more is not None:
                init.xavier_normal_(more)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """`nn.functional.multi_head_attention_forward` of the inputs."""
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        out, weights = multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(0, 1) if turned else out), weights
