"""Losses as modules: the functions of nn.functional with their settings kept."""

from __future__ import annotations

from typing import Any

from gradfn.nn import functional as F
from gradfn.nn.modules.module import Module

# class name: (function, settings besides reduction)
_TABLE: dict[str, tuple[str, dict[str, Any]]] = {
    "MSELoss": ("mse_loss", {}),
    "L1Loss": ("l1_loss", {}),
    "SmoothL1Loss": ("smooth_l1_loss", {"beta": 1.0}),
    "HuberLoss": ("huber_loss", {"delta": 1.0}),
    "NLLLoss": ("nll_loss", {"weight": None, "ignore_index": -100}),
    "CrossEntropyLoss": (
        "cross_entropy",
        {"weight": None, "ignore_index": -100, "label_smoothing": 0.0},
    ),
    "BCELoss": ("binary_cross_entropy", {"weight": None}),
    "BCEWithLogitsLoss": (
        "binary_cross_entropy_with_logits",
        {"weight": None, "pos_weight": None},
    ),
    "KLDivLoss": ("kl_div", {"log_target": False}),
    "PoissonNLLLoss": (
        "poisson_nll_loss",
        {"log_input": True, "full": False, "eps": 1e-8},
    ),
    "GaussianNLLLoss": ("gaussian_nll_loss", {"full": False, "eps": 1e-6}),
    "HingeEmbeddingLoss": ("hinge_embedding_loss", {"margin": 1.0}),
    "SoftMarginLoss": ("soft_margin_loss", {}),
    "MarginRankingLoss": ("margin_ranking_loss", {"margin": 0.0}),
    "MultiLabelSoftMarginLoss": ("multilabel_soft_margin_loss", {"weight": None}),
    "CosineEmbeddingLoss": ("cosine_embedding_loss", {"margin": 0.0}),
    "TripletMarginLoss": (
        "triplet_margin_loss",
        {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False},
    ),
}
__all__ = [*_TABLE, "CosineSimilarity", "PairwiseDistance"]
_TENSORS = ("weight", "pos_weight")


def _module(name: str, function: str, settings: dict[str, Any]) -> type[Module]:
    def __init__(self: Any, *args: Any, reduction: str = "mean", **kwargs: Any) -> None:
        Module.__init__(self)
        given = {**settings, **dict(zip(settings, args)), **kwargs}
        self.reduction = reduction
        for key, value in given.items():
            if key not in settings:
                raise TypeError(
                    f"{name}.__init__() got an unexpected keyword argument '{key}'"
                )
            if key in _TENSORS:
                self.register_buffer(key, value)
            else:
                setattr(self, key, value)

    def forward(self: Any, *inputs: Any) -> Any:
        options = {key: getattr(self, key) for key in settings}
        return getattr(F, function)(*inputs, **options, reduction=self.reduction)

    made = type(name, (Module,), {"__init__": __init__, "forward": forward})
    made.__module__ = __name__
    made.__doc__ = f"`nn.functional.{function}` of the inputs."
    return made


for _name, (_function, _settings) in _TABLE.items():
    globals()[_name] = _module(_name, _function, _settings)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Any, x2: Any) -> Any:
        """`nn.functional.cosine_similarity` of the inputs."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The norm of differences."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        """`nn.functional.pairwise_distance` of the inputs."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
