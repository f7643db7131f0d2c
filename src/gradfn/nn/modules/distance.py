"""Distances between vectors."""

from __future__ import annotations

from gradfn.nn.modules.simple import simple

__all__ = ["CosineSimilarity", "PairwiseDistance"]

CosineSimilarity = simple(
    "CosineSimilarity", "cosine_similarity", {"dim": 1, "eps": 1e-8}, shown=()
)
_Norm = simple(
    "PairwiseDistance",
    "pairwise_distance",
    {"p": 2.0, "eps": 1e-6, "keepdim": False},
    shown=(),
)


class PairwiseDistance(_Norm):  # type: ignore[misc, valid-type]
    """The norm of differences."""

    @property
    def norm(self) -> float:
        """Which norm: p."""
        return float(self.p)
