"""Transformers: encoders, decoders and their layers."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from gradfn.nn import functional as F
from gradfn.nn import init
from gradfn.nn.modules.attention import MultiheadAttention
from gradfn.nn.modules.container import ModuleList
from gradfn.nn.modules.dropout import Dropout
from gradfn.nn.modules.linear import Linear
from gradfn.nn.modules.module import Module
from gradfn.nn.modules.normalization import LayerNorm
from gradfn.ops.world import PUBLIC

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _causal(size: int, dtype: Any = None, device: Any = None) -> Any:
    """-inf above the diagonal, else 0."""
    ones = PUBLIC["ones"](size, size, dtype=dtype, device=device)
    return PUBLIC["zeros_like"](ones).masked_fill_(ones.triu(1) > 0, float("-inf"))


def _copies(module: Any, n: int) -> ModuleList:
    return ModuleList([deepcopy(module) for _ in range(n)])


def _activation(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return getattr(F, given)


class _Layer(Module):
    """What layers of encoders and decoders share."""

    def _fill(
        self,
        attentions: tuple[str, ...],
        sizes: tuple[int, int, int],
        dropout: float,
        activation: Any,
        eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        kind: dict[str, Any],
    ) -> None:
        d_model, nhead, width = sizes
        for name in attentions:
            made = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, **kind
            )
            setattr(self, name, made)
        self.linear1 = Linear(d_model, width, bias, **kind)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(width, d_model, bias, **kind)
        self.norm_first = norm_first
        count = len(attentions) + 1
        for i in range(1, count + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, eps, bias=bias, **kind))
        for i in range(1, count + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _attend(self, i: int, name: str, x: Any, memory: Any, *masks: Any) -> Any:
        mask, padding, causal = masks
        attention = getattr(self, name)
        source = x if memory is None else memory
        out, _ = attention(
            x,
            source,
            source,
            key_padding_mask=padding,
            need_weights=False,
            attn_mask=mask,
            is_causal=causal and mask is not None,
        )
        return getattr(self, f"dropout{i}")(out)

    def _feed(self, i: int, x: Any) -> Any:
        inner = self.dropout(self.activation(self.linear1(x)))
        return getattr(self, f"dropout{i}")(self.linear2(inner))

    def _run(self, x: Any, steps: Any) -> Any:
        """Steps whose results are added to their inputs, normed before or after."""
        for i, step in enumerate(steps, 1):
            norm = getattr(self, f"norm{i}")
            x = x + step(i, norm(x)) if self.norm_first else norm(x + step(i, x))
        return x


class TransformerEncoderLayer(_Layer):
    """Self-attention and a network of two layers."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._fill(
            ("self_attn",),
            (d_model, nhead, dim_feedforward),
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            {"device": device, "dtype": dtype},
        )

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        """The layer of the source."""
        masks = src_mask, src_key_padding_mask, is_causal
        steps = (
            lambda i, x: self._attend(i, "self_attn", x, None, *masks),
            self._feed,
        )
        return self._run(src, steps)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, a network of two layers."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._fill(
            ("self_attn", "multihead_attn"),
            (d_model, nhead, dim_feedforward),
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            {"device": device, "dtype": dtype},
        )

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """The layer of the target, given the encoder's output."""
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        other = memory_mask, memory_key_padding_mask, memory_is_causal
        steps = (
            lambda i, x: self._attend(i, "self_attn", x, None, *own),
            lambda i, x: self._attend(i, "multihead_attn", x, memory, *other),
            self._feed,
        )
        return self._run(tgt, steps)


class TransformerEncoder(Module):
    """Layers of an encoder, one after the other."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Any = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: Any = None,
    ) -> Any:
        """The last layer's output, normed if there is a norm."""
        for layer in self.layers:
            src = layer(
                src,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=bool(is_causal),
            )
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Layers of a decoder, one after the other."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: Any = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """The last layer's output, normed if there is a norm."""
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder (Vaswani et al., 2017)."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        sizes: Any = d_model, nhead, dim_feedforward
        rest: Any = dropout, activation, layer_norm_eps, batch_first, norm_first, bias

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, **kind)

        if custom_encoder is None:
            layer: Any = TransformerEncoderLayer(*sizes, *rest, **kind)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*sizes, *rest, **kind)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm())
        self.encoder, self.decoder = custom_encoder, custom_decoder
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: Any = None,
        tgt_is_causal: Any = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """The decoder's output for a target, given a source."""
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                "the feature number of src and tgt must be equal to d_model "
                f"({self.d_model}), but they are {src.shape[-1]} and {tgt.shape[-1]}"
            )
        batch = 0 if self.batch_first else 1
        if src.dim() == tgt.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Any = None, dtype: Any = None
    ) -> Any:
        """A mask under which each place sees itself and what is before it."""
        return _causal(sz, dtype, device)
