"""Batch rules of the rows behind gradfn.nn.functional."""

from __future__ import annotations

from typing import Any

from gradfn.func.dispatch import Call, rule
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


@rule("_resample _max_windows _max_places")
def last_dims(c: Call) -> Any:
    """What works on the last dims takes any number of dims in front."""
    return c.call()


@rule("_put_places _at_places")
def places(c: Call) -> Any:
    """The same, with an index for each element."""
    return c.call(self=c.full("self"), index=c.full("index"))


@rule("_im2col _col2im")
def columns(c: Call) -> Any:
    """Samples of samples are more samples."""
    return _apart(c, c.call(self=_together(c["self"])))


@rule("_bend _bend_slope")
def one_by_one(c: Call) -> Any:
    """Each element by itself."""
    return c.call()


@rule("_blend _blend_back _blend_dots")
def blends(c: Call) -> Any:
    """Samples of samples are more samples: each has indices of its own."""
    names = [p for p in c.row.takes if p in c.ranks]
    return _apart(c, c.call(**{p: _together(c.full(p)) for p in names}))


@rule("_linear")
def affine(c: Call) -> Any:
    """With one map for all: more rows. Otherwise a product of each with its own."""
    if c.batched == {"self"}:
        return c.call()
    x, shift = c.full("self"), c.full("bias")
    rows = x.reshape(c.size, x[0].numel() // max(x.shape[-1], 1), x.shape[-1])
    out = rows @ c.full("weight").mT + shift.unsqueeze(1)
    return out.reshape(*x.shape[:-1], shift.shape[-1])


@rule("_layer_norm _group_norm _batch_norm")
def normal_values(c: Call) -> Any:
    """Dims are counted from behind; parameters of their own get the batch in front."""
    own = {p: c.full(p) for p in ("self", "weight", "bias") if c[p] is not None}
    if not c.batched & {"weight", "bias"}:
        return c.call(self=own["self"])
    missing = own["self"].dim() - 1 - len(c["shape"])
    return c.call(**own, shape=(c.size, *(1,) * missing, *c["shape"]))


@rule("_nll_loss _nll_loss2d")
def likelihood(c: Call) -> Any:
    """One loss for each place, then a reduction for each sample."""
    if "weight" in c.batched:
        return NotImplemented
    loss = _unreduced(c, c.full("self"))
    if c["reduction"] == "none":
        return loss
    dims = tuple(range(1, loss.dim()))
    total = loss.sum(dims) if dims else loss
    if c["reduction"] == "sum":
        return total
    count = _unreduced(c, -PUBLIC["ones_like"](c.full("self")))
    return total / (count.sum(dims) if dims else count)


def _unreduced(c: Call, own: Tensor) -> Any:
    target = c.full("target")
    if c.rank("self") > 1:  # samples of samples are more samples
        out = c.call(self=_together(own), target=_together(target), reduction="none")
        return _apart(c, out)
    return c.call(self=own, target=target, reduction="none")


@rule("_nll_back")
def likelihood_gradient(c: Call) -> Any:
    """Back from a loss for each place."""
    if "weight" in c.batched:
        return NotImplemented
    g, target, shape = c.full("self"), c.full("target"), c["shape"]
    if c["reduction"] != "none":
        g = g.reshape(c.size, *(1,) * (target.dim() - 1)).expand(target.shape)
        if c["reduction"] == "mean":
            count = -_rows_back(c, PUBLIC["ones_like"](g), target, shape)
            count = count.reshape(c.size, -1).sum(1)
            g = g / count.reshape(c.size, *(1,) * (target.dim() - 1))
    return _rows_back(c, g, target, shape)


def _rows_back(c: Call, g: Tensor, target: Tensor, shape: Any) -> Any:
    if len(shape) == 1:
        wide = (c.size, *shape)
        return c.call(self=g, target=target, shape=wide, reduction="none")
    wide = (c.size * shape[0], *shape[1:])
    given = {"self": _together(g), "target": _together(target)}
    return _apart(c, c.call(**given, shape=wide, reduction="none"))


@rule("_embedding")
def embedding(c: Call) -> Any:
    """Tables of their own are one long table, in which the rows of each come later."""
    if "self" not in c.batched:
        return c.call()
    tables = c["self"]
    share = None if c["share"] is None else c.full("share")
    index = _shifted(c, tables.shape[1])
    return c.call(self=_together(tables), indices=index, share=share)


@rule("_embedding_back")
def embedding_gradient(c: Call) -> Any:
    """The same the other way round."""
    g, index = c.full("self"), _shifted(c, c["count"])
    return _apart(c, c.call(self=g, indices=index, count=c["count"] * c.size))


def _shifted(c: Call, rows: int) -> Any:
    index = c.full("indices")
    first = PUBLIC["arange"](c.size) * rows
    return index + first.reshape(c.size, *(1,) * (index.dim() - 1))


def _together(x: Tensor) -> Any:
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def _apart(c: Call, out: Tensor) -> Any:
    return out.reshape(c.size, out.shape[0] // max(c.size, 1), *out.shape[1:])


@rule("_conv _conv_back")
def convolution(c: Call) -> Any:
    """With one kernel for all: more samples. Otherwise each has groups of its own."""
    if c.batched == {"self"}:
        return _apart(c, c.call(self=_together(c["self"])))
    bias = None if c["bias"] is None else _together(c.full("bias"))
    out = c.call(
        self=_as_groups(c.full("self")),
        weight=_together(c.full("weight")),
        bias=bias,
        frame=_grouped(c),
    )
    return _from_groups(c, out)


@rule("_conv_kernel")
def kernel_gradient(c: Call) -> Any:
    """A kernel for each, by groups of its own."""
    out = c.call(
        self=_as_groups(c.full("self")),
        other=_as_groups(c.full("other")),
        frame=_grouped(c),
    )
    return _apart(c, out)


def _grouped(c: Call) -> Any:
    return c["frame"]._replace(groups=c["frame"].groups * c.size)


def _as_groups(x: Tensor) -> Any:
    """(batch, sample, channel, …) as (sample, batch·channel, …)."""
    x = x.movedim(0, 1)
    return x.reshape(x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:])


def _from_groups(c: Call, out: Tensor) -> Any:
    channels = out.shape[1] // max(c.size, 1)
    return out.reshape(out.shape[0], c.size, channels, *out.shape[2:]).movedim(1, 0)
