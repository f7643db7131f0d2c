"""Tables of vectors, of which rows are looked up."""

from __future__ import annotations

from typing import Any, ClassVar

from gradfn.nn import functional as F
from gradfn.nn import init
from gradfn.nn.modules.linear import empty
from gradfn.nn.modules.module import Module
from gradfn.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]

_SHOWN = {
    "max_norm": None,
    "norm_type": 2.0,
    "scale_grad_by_freq": False,
    "sparse": False,
}


class _Table(Module):
    """What both share: the table, and how its rows are looked up."""

    _shown: ClassVar[
        dict[str, Any]
    ] = {}  # settings that extra_repr shows if they are not these

    def _fill(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: Any,
        weight: Any,
        device: Any,
        dtype: Any,
    ) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        if weight is None:
            self.weight = empty(num_embeddings, embedding_dim, dtype=dtype, device=device)
            self.reset_parameters()
        else:
            if list(weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(weight)

    def reset_parameters(self) -> None:
        """Draws new values, normally distributed; zeros for the row of the padding."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.data[self.padding_idx].fill_(0)

    def extra_repr(self) -> str:
        """The sizes and what is not the default."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, default in self._shown.items():
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value!r}" if name == "mode" else f", {name}={value}"
        return text

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Any:
        """A module around a table that is there. AssertionError unless 2D."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        made = cls(*embeddings.shape, _weight=embeddings, **options)
        made.weight.requires_grad_(not freeze)
        return made


class Embedding(_Table):
    """The rows of a table at given indices."""

    _shown: ClassVar[dict[str, Any]] = {"padding_idx": None, **_SHOWN}

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: Any = None,
        max_norm: Any = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self._fill(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)
        self.weight.requires_grad_(not _freeze)

    def forward(self, input: Any) -> Any:
        """`nn.functional.embedding` of the input."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )


class EmbeddingBag(_Table):
    """The sum, mean or maximum of rows of a table, for each bag of indices."""

    _shown: ClassVar[dict[str, Any]] = {**_SHOWN, "mode": "", "padding_idx": None}

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: Any = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type, self.mode = max_norm, norm_type, mode
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.include_last_offset = include_last_offset
        self._fill(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)

    def forward(
        self, input: Any, offsets: Any = None, per_sample_weights: Any = None
    ) -> Any:
        """`nn.functional.embedding_bag` of the input."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )
