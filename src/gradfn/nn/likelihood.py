"""nll_loss and cross_entropy: minus the log-probability of the classes that were seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradfn._dtypes import INT64, uint8
from gradfn.nn.reductions import reduced, reduction_name
from gradfn.ops.rule import op
from gradfn.tensor import Tensor

Array = Any

# -- the rows ----------------------------------------------------------------------------


def _seen(target: Array, classes: int, ignore: int) -> tuple[Array, Array]:
    """Classes that are all valid, and which of them count (None: all). IndexError."""
    strange = target.view(np.uint64) >= classes  # negative ones too
    if strange.any():
        used = target != ignore
        bad = strange & used
        if bad.any():
            raise IndexError(f"Target {target[bad].flat[0]} is out of bounds.")
        return np.where(used, target, 0), used
    if 0 <= ignore < classes:
        return target, target != ignore
    return target, None


def _places(target: Array, ndim: int) -> Any:
    """NumPy's index for the class of each sample, which is dim 1 (or the only one)."""
    if ndim == 1:
        return target
    rows = np.arange(target.shape[0])
    if ndim == 2:
        return rows, target
    others = np.ogrid[tuple(slice(n) for n in target.shape)]
    return (others[0], target, *others[1:])


def _scale(weight: Array, target: Array, used: Array) -> Array:
    """The factor of each sample; None if all are 1."""
    scale = None if weight is None else weight[target]
    if used is None:
        return scale
    return used.astype(np.int8) if scale is None else np.where(used, scale, 0)


def _nll(
    a: Array, target: Array, ignore: int, reduction: str, weight: Array = None
) -> Array:
    target, used = _seen(target, a.shape[a.ndim > 1], ignore)
    out = np.negative(a[_places(target, a.ndim)], out=...)
    scale = _scale(weight, target, used)
    if scale is not None:
        out *= scale
        if used is not None:
            out[~used] = 0
    if reduction == "none":
        return out
    total = np.add.reduce(out, None, out=...)
    if reduction == "mean":
        total /= a.dtype.type(out.size if scale is None else scale.sum())
    return total


def _nll_back(
    g: Array,
    shape: Any,
    target: Array,
    ignore: int,
    reduction: str,
    weight: Array = None,
) -> Array:
    target, used = _seen(target, shape[len(shape) > 1], ignore)
    scale = _scale(weight, target, used)
    if reduction == "mean":
        g = g / g.dtype.type(target.size if scale is None else scale.sum())
    if scale is not None:
        g = np.multiply(g, scale, out=..., dtype=g.dtype)
        if used is not None:
            g[~used] = 0
    out = np.zeros(shape, g.dtype)
    out[_places(target, len(shape))] = -g
    return out


_hidden = {"function": False, "method": False, "linear": True}


def _row(name: str, node: str) -> Any:
    return op(
        f"{name}(self, target, ignore, reduction, weight=None)",
        _nll,
        **_hidden,
        takes="target weight",
        node=node,
        self=lambda g, xp, self_shape, target, ignore, reduction, weight: xp._nll_back(
            g, self_shape, target, ignore, reduction, weight
        ),
    ).function


_flat_row, _image_row = _row("_nll_loss", "NllLoss"), _row("_nll_loss2d", "NllLoss2D")
op(
    "_nll_back(self, shape, target, ignore, reduction, weight=None)",
    _nll_back,
    **_hidden,
    takes="target weight",
    self=lambda g, xp, target, ignore, reduction, weight: xp._nll_loss(
        g, target, ignore, reduction, weight
    ),
)

# -- the functions -----------------------------------------------------------------------


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Minus the log-probability (dim 1, or 0 of a vector) of each target class.

    `input` is (class,) or (sample, class, *places), `target` (sample, *places), of int64.
    `weight` has a factor for each class, the mean is one with these weights; targets
    that are `ignore_index` do not count.

    IndexError for classes that there are not, ValueError and RuntimeError for shapes and
    dtypes that do not fit.
    """
    name = reduction_name(reduction, size_average, reduce)
    _check(input, target, weight)
    row = _image_row if len(input.shape) == 4 else _flat_row
    return row(input, _as_long(input, target), ignore_index, name, weight)


def _as_long(input: Tensor, target: Tensor) -> Tensor:
    if len(input.shape) == 1 and len(target.shape) == 1:
        target = target.reshape(())
    return target if target._array.dtype is INT64 else target.long()


def _check(input: Tensor, target: Tensor, weight: Any) -> None:
    n, m = tuple(input.shape), tuple(target.shape)
    if not n:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(n) == 1:
        if m not in ((), (1,)):
            raise ValueError(
                "For 1D input, 1D target must have size 1, but got target size: "
                f"{target.numel()}"
            )
    elif not m or n[0] != m[0]:
        raise ValueError(
            f"Expected input batch_size ({n[0]}) to match target batch_size "
            f"({m[0] if m else 'none'})."
        )
    elif len(n) == 2 and len(m) != 1:
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported: got "
            f"{list(m)} for an input of {list(n)}"
        )
    elif m != (n[0], *n[2:]):
        raise RuntimeError(
            f"Expected target size {[n[0], *n[2:]]}, got {list(m)}, for an input of "
            f"{list(n)}"
        )
    if target._array.dtype is not INT64 and target.dtype is not uint8:
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype}"
        )
    if input._array.dtype.kind != "f":
        raise NotImplementedError(f"nll_loss is not implemented for {input.dtype}")
    if weight is not None:
        classes = n[len(n) > 1]
        if tuple(weight.shape) != (classes,):
            raise RuntimeError(
                f"weight tensor should be defined either for all {classes} classes or no "
                f"classes but got weight tensor of shape: {list(weight.shape)}"
            )
        if weight.dtype is not input.dtype:
            raise RuntimeError(
                f"expected scalar type {input.dtype} for the weight but found "
                f"{weight.dtype}"
            )


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """nll_loss of log_softmax; targets are classes, or probabilities of each class.

    Shapes and errors are nll_loss's; probabilities are shaped as the input. With
    `label_smoothing` that much of the target is spread over all classes.
    """
    name = reduction_name(reduction, size_average, reduce)
    dim = 0 if len(input.shape) < 2 else 1
    log_p = input.log_softmax(dim)
    if target._array.dtype.kind == "f" and target.shape == input.shape:
        return _soft_targets(log_p, target, weight, name, label_smoothing, dim)
    hard = nll_loss(log_p, target, weight, ignore_index=ignore_index, reduction=name)
    if not label_smoothing:
        return hard
    return _smoothed(log_p, target, weight, ignore_index, name, label_smoothing, hard)


def _along(weight: Tensor, ndim: int, dim: int) -> Any:
    return weight.reshape([-1 if d == dim else 1 for d in range(ndim)])


def _soft_targets(
    log_p: Tensor, target: Tensor, weight: Any, reduction: str, smoothing: float, dim: int
) -> Any:
    n = log_p.shape[dim]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / n
    terms = -(log_p * target)
    if weight is not None:
        terms = terms * _along(weight, log_p.dim(), dim)
    loss = terms.sum(dim)
    if reduction == "mean":
        return loss.sum() / max(log_p.numel() // n, 1)
    return reduced(loss, reduction)


def _smoothed(
    log_p: Tensor,
    target: Tensor,
    weight: Any,
    ignore_index: int,
    reduction: str,
    smoothing: float,
    hard: Tensor,
) -> Any:
    dim = 0 if log_p.dim() < 2 else 1
    used = target != ignore_index
    scaled = log_p if weight is None else log_p * _along(weight, log_p.dim(), dim)
    even = (-scaled.sum(dim)).masked_fill(~used, 0.0)
    if reduction == "mean":
        if weight is None:
            count = used.sum()
        else:
            count = weight[target.masked_fill(~used, 0)].masked_fill(~used, 0.0).sum()
        even = even.sum() / count
    else:
        even = reduced(even, reduction)
    return hard * (1 - smoothing) + even * (smoothing / log_p.shape[dim])
