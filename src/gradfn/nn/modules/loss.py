"""Losses as modules: the functions of nn.functional with their settings kept."""

from __future__ import annotations

import warnings
from typing import Any

from gradfn.nn.modules.distance import PairwiseDistance
from gradfn.nn.modules.module import Module
from gradfn.nn.modules.simple import simple

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]
_TENSORS = ("weight", "pos_weight")  # settings that are buffers
_LEGACY = ("size_average", "reduce")  # how reductions were named once


class _Loss(Module):
    """What losses share."""

    reduction: str

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """What losses with a weight for each class share."""

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


def _reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "mean" if size_average in (None, True) else "sum"


def _finish(module: Any) -> None:
    own = module.__dict__
    size_average, reduce = (own.pop(name, None) for name in _LEGACY)
    module.reduction = _reduction(size_average, reduce, module.reduction)
    for name in _TENSORS:
        if name in own:
            module.register_buffer(name, own.pop(name))


def _loss(
    name: str,
    function: str,
    settings: dict[str, Any],
    legacy: bool = True,
    **options: Any,
) -> Any:
    """A loss; `settings` are in PyTorch's order but for the reduction, which is last."""
    old = dict.fromkeys(_LEGACY) if legacy else {}
    front = (
        settings if "reduction" in settings else {**settings, **old, "reduction": "mean"}
    )
    base = _WeightedLoss if "weight" in settings else _Loss
    made = simple(
        name,
        function,
        front,
        shown=(),
        passed=[k for k in front if k not in _LEGACY],
        base=base,
        finish=_finish,
        **options,
    )
    made.__module__ = __name__
    return made


_OLD = dict.fromkeys(_LEGACY)
_MEAN = {"reduction": "mean"}
MSELoss = _loss("MSELoss", "mse_loss", {})
L1Loss = _loss("L1Loss", "l1_loss", {})
SmoothL1Loss = _loss("SmoothL1Loss", "smooth_l1_loss", {**_OLD, **_MEAN, "beta": 1.0})
HuberLoss = _loss("HuberLoss", "huber_loss", {**_MEAN, "delta": 1.0})
NLLLoss = _loss(
    "NLLLoss",
    "nll_loss",
    {
        "weight": None,
        "size_average": None,
        "ignore_index": -100,
        "reduce": None,
        "reduction": "mean",
    },
)
CrossEntropyLoss = _loss(
    "CrossEntropyLoss",
    "cross_entropy",
    {
        "weight": None,
        "size_average": None,
        "ignore_index": -100,
        "reduce": None,
        "reduction": "mean",
        "label_smoothing": 0.0,
    },
)
BCELoss = _loss("BCELoss", "binary_cross_entropy", {"weight": None})
BCEWithLogitsLoss = _loss(
    "BCEWithLogitsLoss",
    "binary_cross_entropy_with_logits",
    {"weight": None, **_OLD, **_MEAN, "pos_weight": None},
)
KLDivLoss = _loss("KLDivLoss", "kl_div", {**_OLD, **_MEAN, "log_target": False})
PoissonNLLLoss = _loss(
    "PoissonNLLLoss",
    "poisson_nll_loss",
    {
        "log_input": True,
        "full": False,
        "size_average": None,
        "eps": 1e-8,
        "reduce": None,
        "reduction": "mean",
    },
)
GaussianNLLLoss = _loss(
    "GaussianNLLLoss",
    "gaussian_nll_loss",
    {"full": False, "eps": 1e-6, **_MEAN},
    keywords=("full", "eps", "reduction"),
)
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", "hinge_embedding_loss", {"margin": 1.0})
SoftMarginLoss = _loss("SoftMarginLoss", "soft_margin_loss", {})
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", "multilabel_margin_loss", {})
MultiLabelSoftMarginLoss = _loss(
    "MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", {"weight": None}
)
MultiMarginLoss = _loss(
    "MultiMarginLoss", "multi_margin_loss", {"p": 1, "margin": 1.0, "weight": None}
)
CosineEmbeddingLoss = _loss(
    "CosineEmbeddingLoss", "cosine_embedding_loss", {"margin": 0.0}
)
MarginRankingLoss = _loss("MarginRankingLoss", "margin_ranking_loss", {"margin": 0.0})
TripletMarginLoss = _loss(
    "TripletMarginLoss",
    "triplet_margin_loss",
    {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False},
)
_TripletLoss = _loss(
    "TripletMarginWithDistanceLoss",
    "triplet_margin_with_distance_loss",
    {"distance_function": None, "margin": 1.0, "swap": False, **_MEAN},
    keywords=("distance_function", "margin", "swap", "reduction"),
)


class TripletMarginWithDistanceLoss(_TripletLoss):  # type: ignore[misc, valid-type]
    """`nn.functional.triplet_margin_with_distance_loss` of the inputs."""

    def __init__(self, *, distance_function: Any = None, **options: Any) -> None:
        if distance_function is None:
            distance_function = PairwiseDistance()
        super().__init__(distance_function=distance_function, **options)


CTCLoss = _loss("CTCLoss", "ctc_loss", {"blank": 0, **_MEAN, "zero_infinity": False})


class NLLLoss2d(NLLLoss):  # type: ignore[misc, valid-type]
    """The older name of NLLLoss for images."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in "
            "replacement",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)
