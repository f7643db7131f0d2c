"""The loss of connectionist temporal classification (Graves et al., 2006).

Note [Alignments]
    The states of an alignment are the target's labels with a blank before, between and
    after them. At each step it stays, goes on by one state, or by two where that leaves
    out a blank between two different labels. `alpha` is the log-probability of all ways
    from the start up to a state at a step, `rest` of all ways on from there to the end.
    The loss is minus the logarithm of all ways together.

Note [The gradient of the CTC loss]
    As PyTorch's it is exp(log_probs) less the probability of each label at a step: the
    gradient by what log_softmax was given. Where log_softmax stands before, the first term
    changes nothing; by log_probs alone the derivative would be without it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn.nn.reductions import reduced
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor, wrap

Array = Any


class Alignments:
    """The states of a batch as (sample, state) arrays, as many as the longest target has."""

    def __init__(self, targets: Array, steps: Array, lengths: Array, blank: int) -> None:
        n, longest = len(lengths), int(lengths.max(initial=0))
        padded = np.full((n, longest), blank)
        there = np.arange(longest) < lengths[:, None]
        if targets.ndim == 2:
            padded[there] = targets[:, :longest][there]
        else:
            padded[there] = targets
        self.labels = np.full((n, 2 * longest + 1), blank)
        self.labels[:, 1::2] = padded
        self.skips = np.zeros(self.labels.shape, bool)  # may come from two before
        self.skips[:, 3::2] = padded[:, 1:] != padded[:, :-1]
        state, last = np.arange(2 * longest + 1), 2 * lengths[:, None]
        self.starts = state <= np.minimum(last, 1)
        self.ends = (state <= last) & (state >= np.maximum(last - 1, 0))
        self.steps = steps

    def scores(self, log_probs: Array) -> Array:
        """(step, sample, state): the log-probability of each state's label."""
        return np.take_along_axis(log_probs, self.labels[None], 2)

    def alpha(self, scores: Array) -> Array:
        """The ways up to each state: Note [Alignments]."""
        out = np.empty_like(scores)
        ways = _never(self.starts, scores.dtype)
        for t, score in enumerate(scores):
            if t:
                before = out[t - 1]
                ways = before.copy()
                _more(ways[:, 1:], before[:, :-1])
                _more(ways[:, 2:], np.where(self.skips[:, 2:], before[:, :-2], -np.inf))
            out[t] = ways + score
        return out

    def rest(self, scores: Array) -> Array:
        """The ways on from each state; none after a sample's last step."""
        out = np.empty_like(scores)
        following = np.full_like(out[0], -np.inf)
        ended = _never(self.ends, scores.dtype)
        for t in reversed(range(len(scores))):
            out[t] = following
            _more(out[t, :, :-1], following[:, 1:])
            over = np.where(self.skips[:, 2:], following[:, 2:], -np.inf)
            _more(out[t, :, :-2], over)
            last = self.steps == t + 1
            out[t, last] = ended[last]
            following = out[t] + scores[t]
        return out

    def loss(self, alpha: Array) -> Array:
        """Minus the logarithm of all ways of each sample."""
        samples = np.arange(len(self.steps))
        final = alpha[self.steps - 1, samples]
        final[self.steps == 0] = _never(self.starts, alpha.dtype)[self.steps == 0]
        return -np.logaddexp.reduce(np.where(self.ends, final, -np.inf), 1)


def _never(mask: Array, dtype: Any) -> Array:
    """Log-probabilities: 0 where true, else minus infinity."""
    return np.where(mask, 0, -np.inf).astype(dtype)


def _more(ways: Array, others: Array) -> None:
    np.logaddexp(ways, others, out=ways)


def _ctc(
    log_probs: Array, targets: Array, steps: Array, lengths: Array, blank: int
) -> tuple[Array, Array]:
    found = Alignments(targets, steps, lengths, blank)
    alpha = found.alpha(found.scores(log_probs))
    return found.loss(alpha), alpha


def _ctc_gradient(
    g: Array,
    self: Array,
    targets: Array,
    steps: Array,
    lengths: Array,
    blank: int,
    loss: Array,
    alpha: Array,
) -> Array:
    found = Alignments(targets, steps, lengths, blank)
    rest = found.rest(found.scores(self))
    with np.errstate(invalid="ignore"):
        share = np.exp(alpha + rest + loss[:, None])
    count, n, labels = self.shape
    row = np.arange(count * n).reshape(count, n, 1) * labels
    at = (row + found.labels).reshape(-1)
    there = np.bincount(at, share.reshape(-1), self.size).reshape(self.shape)
    out = (np.exp(self) - there).astype(self.dtype, copy=False)
    out *= g[:, None]
    out[:, loss == np.inf] = np.nan  # the target does not fit into the steps
    out[(np.arange(count)[:, None] >= steps) | (g == 0)] = 0
    return out


def _ctc_gradient_recorded(
    g: Any, self: Any, targets: Any, steps: Any, lengths: Any, blank: int
) -> Any:
    """The same, made of ops: so it has derivatives of its own."""
    found = Alignments(targets._array, steps._array, lengths._array, blank)
    labels = wrap(found.labels).expand(self.shape[0], *found.labels.shape)
    scores = self.gather(2, labels).unbind(0)
    alpha = _alpha_of_ops(found, scores)
    rest = _rest_of_ops(found, scores)
    final = alpha[wrap(found.steps - 1), wrap(np.arange(len(found.steps)))]
    total = final.masked_fill(~wrap(found.ends), -np.inf).logsumexp(1, keepdim=True)
    share = (alpha + rest - total).exp()
    there = PUBLIC["zeros_like"](self).scatter_add(2, labels, share)
    inside = np.arange(self.shape[0])[:, None, None] < found.steps[:, None]
    return (self.exp() - there) * wrap(inside) * g.unsqueeze(-1)


def _alpha_of_ops(found: Alignments, scores: Any) -> Any:
    none = scores[0].new_full((len(found.steps), 2), -np.inf)
    ways = scores[0].new_full(found.labels.shape, -np.inf)
    ways = ways.masked_fill(wrap(found.starts), 0.0)
    alphas: list[Any] = []
    for score in scores:
        if alphas:
            before = PUBLIC["cat"]([none, alphas[-1]], 1)
            over = before[:, :-2].masked_fill(~wrap(found.skips), -np.inf)
            ways = before[:, 2:].logaddexp(before[:, 1:-1]).logaddexp(over)
        alphas.append(ways + score)
    return PUBLIC["stack"](alphas)


def _rest_of_ops(found: Alignments, scores: Any) -> Any:
    none = scores[0].new_full((len(found.steps), 2), -np.inf)
    nowhere = scores[0].new_full(found.labels.shape, -np.inf)
    ended = nowhere.masked_fill(wrap(found.ends), 0.0)
    follow = np.zeros_like(found.skips)
    follow[:, :-2] = found.skips[:, 2:]
    rests: list[Any] = []
    following = nowhere
    for t in reversed(range(len(scores))):
        after = PUBLIC["cat"]([following, none], 1)
        over = after[:, 2:].masked_fill(~wrap(follow), -np.inf)
        ways = following.logaddexp(after[:, 1:-1]).logaddexp(over)
        last = wrap(found.steps == t + 1).unsqueeze(1)
        rests.append(PUBLIC["where"](last, ended, ways))
        following = rests[-1] + scores[t]
    return PUBLIC["stack"](rests[::-1])


_row = op(
    "_ctc_loss(self, targets, steps, lengths, blank)",
    _ctc,
    takes="targets steps lengths",
    outputs="loss alpha",
    function=False,
    method=False,
    node="CtcLoss",
    self=_ctc_gradient_recorded,
    raw={"self": _ctc_gradient},
).function


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Minus the log-probability that the steps spell the target, blanks left out.

    `log_probs` is (step, sample, label) or (step, label), of floats; `targets` (sample,
    place), or all labels of all samples one after the other; the lengths are int tensors
    or tuples, one a sample. "mean" divides each loss by its target's length first;
    `zero_infinity` replaces the losses of targets that do not fit into the steps.

    RuntimeError for shapes, lengths and blanks that do not fit, ValueError for another
    reduction. The gradient: Note [The gradient of the CTC loss].
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    alone = log_probs.dim() == 2
    if alone:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.dim() == 1 else targets
    steps = _lengths(input_lengths, "input_lengths")
    lengths = _lengths(target_lengths, "target_lengths")
    _check(log_probs, targets, steps, lengths, blank)
    loss, _ = _row(log_probs, targets.detach().long(), steps, lengths, blank)
    if zero_infinity:
        loss = loss.masked_fill(loss.detach() == np.inf, 0.0)
    if alone:
        loss, lengths = loss.squeeze(0), lengths.squeeze(0)
    if reduction == "mean":
        loss = loss / lengths.clamp(min=1).to(loss.dtype)
    return reduced(loss, reduction)


def _lengths(given: Any, name: str) -> Any:
    if not isinstance(given, Tensor):
        given = PUBLIC["tensor"](list(given))
    if given.is_floating_point() or given.is_complex():
        raise RuntimeError(f"{name} must be integral, but got {given.dtype}")
    return given.detach().reshape(-1).long()


def _check(
    log_probs: Tensor, targets: Tensor, steps: Tensor, lengths: Tensor, blank: int
) -> None:
    while_ = "(while checking arguments for ctc_loss)"
    if log_probs.dim() != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.dim()}-dimensional tensor "
            f"for argument #1 'log_probs' {while_}"
        )
    if not log_probs.is_floating_point():
        raise NotImplementedError(f"ctc_loss is not implemented for {log_probs.dtype}")
    if not log_probs.numel():
        raise RuntimeError(
            f"log_probs tensor must not be empty, but got {list(log_probs.shape)}"
        )
    count, n, labels = log_probs.shape
    if not 0 <= blank < labels:
        raise RuntimeError(
            f"blank must be in label range: got {blank} for {labels} labels"
        )
    for name, given in (("input_lengths", steps), ("target_lengths", lengths)):
        if given.shape[0] != n:
            raise RuntimeError(
                f"{name} must be of size batch_size, {n}, but got {given.shape[0]}"
            )
    for name, given, most in (
        ("input_lengths", steps, count),
        ("target_lengths", lengths, None),
    ):
        low, high = int(given.min()), int(given.max())
        if low < 0:
            raise RuntimeError(
                f"Expected {name} to have value at least 0, but got value {low} {while_}"
            )
        if most is not None and high > most:
            raise RuntimeError(
                f"Expected {name} to have value at most {most}, but got value {high} {while_}"
            )
    _check_targets(targets, lengths, n, while_)


def _check_targets(targets: Tensor, lengths: Tensor, n: int, while_: str) -> None:
    if targets.dim() == 1:
        wanted = {0: (int(lengths.sum()), "size")}
    elif targets.dim() == 2:
        wanted = {0: (n, "size"), 1: (int(lengths.max()), "size at least")}
    else:
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.dim()}-dimensional tensor for "
            f"argument #2 'targets' {while_}"
        )
    for dim, (size, what) in wanted.items():
        got = targets.shape[dim]
        if got < size or (got > size and what == "size"):
            raise RuntimeError(
                f"Expected tensor to have {what} {size} at dimension {dim}, but got size "
                f"{got} for argument #2 'targets' {while_}"
            )
