"""torch.nn.functional: activations, losses, layers, built from the ops."""

from __future__ import annotations

from typing import Any

from gradfn._guard import guard_all
from gradfn.nn.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    fold,
    unfold,
)
from gradfn.nn.ctc import ctc_loss
from gradfn.nn.dropouts import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from gradfn.nn.embed import embedding, embedding_bag
from gradfn.nn.gelu import gelu
from gradfn.nn.grid import affine_grid, grid_sample
from gradfn.nn.interpolation import (
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from gradfn.nn.layers import (
    bilinear,
    linear,
    local_response_norm,
    normalize,
    one_hot,
    scaled_dot_product_attention,
)
from gradfn.nn.likelihood import cross_entropy, nll_loss
from gradfn.nn.linear_cross_entropy import linear_cross_entropy
from gradfn.nn.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cosine_similarity,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    multilabel_soft_margin_loss,
    pairwise_distance,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
)
from gradfn.nn.margins import (
    multi_margin_loss,
    multilabel_margin_loss,
    triplet_margin_with_distance_loss,
)
from gradfn.nn.maxima import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    fractional_max_pool2d,
    fractional_max_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from gradfn.nn.multihead import (
    multi_head_attention_forward,
)
from gradfn.nn.norms import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from gradfn.nn.padding import (
    pad,
)
from gradfn.nn.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
)
from gradfn.nn.shuffles import (
    channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
)
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

pdist = PUBLIC["pdist"]

# -- activations -------------------------------------------------------------------------


def _in_place(name: str, method: str) -> Any:
    """An activation that is a method, with an `inplace` argument."""

    def activation(input: Tensor, inplace: bool = False) -> Any:
        return getattr(input, f"{method}_" if inplace else method)()

    activation.__name__, activation.__doc__ = name, f"`{method}` of each element."
    return activation


relu = _in_place("relu", "relu")
relu_ = _in_place("relu_", "relu")


def _kept(input: Tensor, inplace: bool) -> Any:
    """The input, or a copy that the derivative will need when it has been written over."""
    return input.clone() if inplace else input


def _result(input: Tensor, out: Tensor, inplace: bool) -> Any:
    return input.copy_(out) if inplace else out


def sigmoid(input: Tensor) -> Any:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def tanh(input: Tensor) -> Any:
    """The hyperbolic tangent."""
    return input.tanh()


def relu6(input: Tensor, inplace: bool = False) -> Any:
    """min(max(x, 0), 6), with derivative 0 at both bounds."""
    return hardtanh(input, 0.0, 6.0, inplace)


_hardtanh = op(
    "_hardtanh(self, low, high)",
    lambda a, low, high: a.clip(low, high),
    function=False,
    method=False,
    node="Hardtanh",
    self=lambda g, xp, self, low, high: xp._keep(g, (self > low) & (self < high)),
).function


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Any:
    """The values between two bounds, with derivative 0 at them."""
    x = _kept(input, inplace)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if not x.is_floating_point():  # integers stay what they are
        min_val, max_val = int(min_val), int(max_val)
    return _result(input, _hardtanh(x, min_val, max_val), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """x where positive, else `negative_slope` times x."""
    x = _kept(input, inplace)
    out = PUBLIC["where"](x > 0, x, x * negative_slope)
    return _result(input, out, inplace)


def prelu(input: Tensor, weight: Tensor) -> Any:
    """leaky_relu with a slope for each channel (dim 1), or one for all. RuntimeErrors."""
    channels = (1, *input.shape)[input.dim() and min(input.dim(), 2)]
    if weight.dim() > 1:
        raise RuntimeError(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
            f"{weight.dim()}"
        )
    if weight.numel() not in (1, channels):
        raise RuntimeError(
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
            f"{weight.numel()} and channel size = {channels}."
        )
    if weight.dim() and input.dim() < 2:
        weight = weight.reshape(weight.shape if input.dim() else ())
    if weight.numel() > 1:
        weight = weight.reshape([-1 if d == 1 else 1 for d in range(max(input.dim(), 1))])
    return PUBLIC["where"](input > 0, input, input * weight)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x where positive, else alpha * (exp(x) - 1)."""
    x = _kept(input, inplace)
    low = x.clamp(max=0).expm1() * alpha
    return _result(input, PUBLIC["where"](x > 0, x, low), inplace)


def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """x where positive, else x times a random slope; times the middle one in evaluation."""
    x = _kept(input, inplace)
    if lower > upper:
        raise RuntimeError(
            "Lower bound should be less than or equal to the upper bound, got "
            f"{lower} and {upper}"
        )
    slope: Any = (lower + upper) / 2
    if training:
        slope = PUBLIC["empty_like"](x.detach()).uniform_(lower, upper)
    return _result(input, PUBLIC["where"](x > 0, x, x * slope), inplace)


def selu(input: Tensor, inplace: bool = False) -> Any:
    """elu scaled so that values normalise themselves (Klambauer et al., 2017)."""
    x = _kept(input, inplace)
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return _result(input, elu(x, alpha) * scale, inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x where positive, else alpha * (exp(x / alpha) - 1)."""
    x = _kept(input, inplace)
    low = (x.clamp(max=0) / alpha).expm1() * alpha
    return _result(input, PUBLIC["where"](x > 0, x, low), inplace)


def silu(input: Tensor, inplace: bool = False) -> Any:
    """x * sigmoid(x)."""
    x = _kept(input, inplace)
    return _result(input, x * x.sigmoid(), inplace)


def mish(input: Tensor, inplace: bool = False) -> Any:
    """x * tanh(softplus(x))."""
    x = _kept(input, inplace)
    return _result(input, x * softplus(x).tanh(), inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."""
    scaled = input * beta
    soft = scaled.clamp(max=threshold).exp().log1p() / beta
    return PUBLIC["where"](scaled > threshold, input, soft)


def softsign(input: Tensor) -> Any:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Any:
    """x - tanh(x)."""
    return input - input.tanh()


def softshrink(input: Tensor, lambd: float = 0.5) -> Any:
    """x moved towards 0 by lambd, and 0 within lambd of it."""
    if lambd < 0:
        raise RuntimeError(
            f"lambda must be greater or equal to 0, but found to be {lambd}."
        )
    moved = PUBLIC["where"](input > 0, input - lambd, input + lambd)
    return moved.masked_fill(input.abs() <= lambd, 0.0)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Any:
    """x, but 0 within lambd of 0."""
    return input.masked_fill((input >= -lambd) & (input <= lambd), 0.0)


def threshold(
    input: Tensor, threshold: float, value: float, inplace: bool = False
) -> Any:
    """x where above the threshold, else `value`."""
    x = _kept(input, inplace)
    return _result(input, x.masked_fill(x <= threshold, value), inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Any:
    """The line x/6 + 1/2 between 0 and 1."""
    x = _kept(input, inplace)
    return _result(input, _hardtanh(x, -3.0, 3.0) / 6 + 0.5, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Any:
    """x * hardsigmoid(x)."""
    x = _kept(input, inplace)
    return _result(input, x * (_hardtanh(x, -3.0, 3.0) + 3) / 6, inplace)


def logsigmoid(input: Tensor) -> Any:
    """log(sigmoid(x)), without overflow."""
    return input.clamp(max=0) - (-input.abs()).exp().log1p()


def glu(input: Tensor, dim: int = -1) -> Any:
    """The first half along `dim` times the sigmoid of the second."""
    size = input.shape[dim] if input.dim() else 0
    if not input.dim():
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if size % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim} is size {size}"
        )
    a, b = input.narrow(dim, 0, size // 2), input.narrow(dim, size // 2, size // 2)
    return a * b.sigmoid()


def softmax(
    input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """exp(x) / sum(exp(x)) along `dim`."""
    return input.softmax(_softmax_dim(input, dim), dtype)


def softmin(
    input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """softmax of -x."""
    return (-input).softmax(_softmax_dim(input, dim), dtype)


def log_softmax(
    input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """The logarithm of softmax."""
    return input.log_softmax(_softmax_dim(input, dim), dtype)


def _softmax_dim(input: Tensor, dim: Any) -> int:
    if dim is not None:
        return int(dim)
    return 0 if input.dim() in (0, 1, 3) else 1


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """A sample from the Gumbel-softmax distribution; one-hot with a soft gradient if hard."""
    noise = -PUBLIC["empty_like"](logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.max(dim, keepdim=True)[1]
    one = PUBLIC["zeros_like"](logits).scatter_(dim, best, 1.0)
    return one - soft.detach() + soft


def _written(function: Any) -> Any:
    """The activation that writes into its input."""

    def write(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(input, *args, inplace=True, **kwargs)

    name = f"{function.__name__}_"
    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"`{function.__name__}` in place."
    return write


celu_, elu_, hardtanh_ = _written(celu), _written(elu), _written(hardtanh)
leaky_relu_, rrelu_, selu_ = _written(leaky_relu), _written(rrelu), _written(selu)
threshold_ = _written(threshold)


def _indexed(function: Any) -> Any:
    """The pooling that also gives the indices."""

    def pool(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        kwargs["return_indices"] = True
        return function(input, *args, **kwargs)

    name = f"{function.__name__}_with_indices"
    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"`{function.__name__}`, and where the largest elements stand."
    return pool


max_pool1d_with_indices = _indexed(max_pool1d)
max_pool2d_with_indices = _indexed(max_pool2d)
max_pool3d_with_indices = _indexed(max_pool3d)
adaptive_max_pool1d_with_indices = _indexed(adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = _indexed(adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _indexed(adaptive_max_pool3d)
fractional_max_pool2d_with_indices = _indexed(fractional_max_pool2d)
fractional_max_pool3d_with_indices = _indexed(fractional_max_pool3d)

guard_all(globals(), __all__)
