"""Softmax over very many classes, the rare ones in clusters (Grave et al., 2017)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from gradfn.nn import functional as F
from gradfn.nn.modules.container import ModuleList, Sequential
from gradfn.nn.modules.linear import Linear
from gradfn.nn.modules.module import Module
from gradfn.ops.world import PUBLIC

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The log-probability of each target, and minus their mean."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-probabilities of classes sorted by frequency, the most frequent first.

    The classes below the first of the `cutoffs` have a place in the head; those between two
    cutoffs are a cluster, which has one place in the head and a tail of its own, of
    in_features / div_value, / div_value², … inner features. ValueError for cutoffs that do
    not rise between 1 and n_classes - 1.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Any,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        bounds = [0, *cutoffs, n_classes]
        if any(a >= b or int(a) != a for a, b in pairwise(bounds)):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1, but got "
                f"{cutoffs} for {n_classes} classes"
            )
        kind = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs, self.div_value, self.head_bias = bounds[1:], div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **kind)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(self._clusters()):
            inner = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, **kind),
                    Linear(inner, high - low, bias=False, **kind),
                )
            )

    def _clusters(self) -> list[tuple[int, int]]:
        return list(pairwise(self.cutoffs))

    def reset_parameters(self) -> None:
        """Draws new values for all parts."""
        for part in (self.head, *(layer for pair in self.tail for layer in pair)):
            part.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> _ASMoutput:
        """(output, loss) of inputs (sample, feature) or (feature,), and their classes.

        RuntimeError for shapes that do not fit and classes that there are not.
        """
        self._check(input_, target_)
        alone = target_.dim() == 0
        input = input_.unsqueeze(0) if alone else input_
        target = target_.unsqueeze(0) if alone else target_
        place, rest = target, input.new_zeros(target.shape[0])
        for i, (low, high) in enumerate(self._clusters()):
            mask = (target >= low) & (target < high)
            (rows,) = mask.nonzero(as_tuple=True)
            if not rows.shape[0]:
                continue
            place = place.masked_fill(mask, self.shortlist_size + i)
            local = F.log_softmax(self.tail[i](input[rows]), dim=1)
            chosen = local.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
            rest = rest.index_copy(0, rows, chosen)
        head = F.log_softmax(self.head(input), dim=1)
        output = rest + head.gather(1, place.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return _ASMoutput(output.squeeze(0) if alone else output, loss)

    def _check(self, input: Any, target: Any) -> None:
        if target.dim() > 1:
            raise RuntimeError(
                "0D or 1D target tensor expected, multi-target not supported: got "
                f"{list(target.shape)}"
            )
        if input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, "
                f"but found inputs with size {input.shape}"
            )
        if target.dim() and input.shape[0] != target.shape[0]:
            raise RuntimeError(
                "Input and target should have the same size in the batch dimension, but "
                f"got {input.shape[0]} and {target.shape[0]}"
            )
        low, high = int(target.min()), int(target.max())
        if low < 0 or high >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in "
                f"range [{low}, {high}] were found."
            )

    def log_prob(self, input: Any) -> Any:
        """The log-probabilities of all classes: (sample, class)."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            chance = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(tail(input), dim=1) + chance)
        return PUBLIC["cat"](parts, 1)

    def predict(self, input: Any) -> Any:
        """The most probable class of each sample; tails are asked only where needed."""
        best = self.head(input).argmax(1)
        (rows,) = (best >= self.shortlist_size).nonzero(as_tuple=True)
        if not rows.shape[0]:
            return best
        return best.index_copy(0, rows, self.log_prob(input[rows]).argmax(1))
