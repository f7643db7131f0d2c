"""Initial values of parameters, written in place without being recorded."""

from __future__ import annotations

import math
import warnings
from typing import Any

from gradfn.autograd.grad_mode import no_grad
from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor by which a nonlinearity asks for larger weights. ValueError if unknown."""
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1.0
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many values come into and go out of each unit. ValueError below two dims."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = 1
    for n in tensor.shape[2:]:
        field *= n
    return tensor.shape[1] * field, tensor.shape[0] * field


def _written(tensor: Tensor, method: str, *args: Any, **options: Any) -> Tensor:
    with no_grad():
        return getattr(tensor, method)(*args, **options)  # type: ignore[no-any-return]


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None
) -> Tensor:
    """From the uniform distribution on [a, b)."""
    return _written(tensor, "uniform_", a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None
) -> Tensor:
    """From a normal distribution."""
    return _written(tensor, "normal_", mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """From a normal distribution of which only [a, b] is left."""

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    low, high = below((a - mean) / std), below((b - mean) / std)
    with no_grad():
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        tensor.copy_((tensor.erfinv() * (std * math.sqrt(2.0)) + mean).clamp(a, b))
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    return _written(tensor, "fill_", val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills the tensor with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills the tensor with zeros."""
    return _written(tensor, "zero_")


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix. ValueError unless there are two dims."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _written(tensor, "copy_", PUBLIC["eye"](*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A kernel, (out, in, *places), that hands its input on: 1 in the middle of a channel.

    Each group does so with the channels that it has. ValueError unless there are 3 to 5
    dims, of which the groups divide the first.
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError(
            f"Only tensors with 3, 4, or 5 dimensions are supported, but got {tensor.dim()}"
        )
    out, into = tensor.shape[:2]
    if out % groups:
        raise ValueError(
            f"dim 0 must be divisible by groups, but got {out} and {groups} groups"
        )
    middle = tuple(n // 2 for n in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for start in range(0, out, out // groups):
            for channel in range(min(out // groups, into)):
                tensor[(start + channel, channel, *middle)] = 1
    return tensor


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None
) -> Tensor:
    """A matrix from a normal distribution with a share of each column set to 0 (Martens, 2010).

    ValueError unless there are two dims.
    """
    if tensor.dim() != 2:
        raise ValueError(
            f"Only tensors with 2 dimensions are supported, but got {tensor.dim()}"
        )
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            chosen = PUBLIC["randperm"](rows, generator=generator)[:zeros]
            tensor[chosen, column] = 0
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform, so that variances stay the same both ways (Glorot and Bengio, 2010)."""
    into, out = _calculate_fan_in_and_fan_out(tensor)
    bound = gain * math.sqrt(6.0 / (into + out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """The same, normally distributed."""
    into, out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (into + out)), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(
            f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']"
        )
    fan = _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Uniform, so that variances survive rectifiers (He et al., 2015)."""
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """The same, normally distributed."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A matrix with orthonormal rows or columns (Saxe et al., 2013)."""
    import numpy as np

    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    flat = PUBLIC["randn"](rows, columns, generator=generator)._array
    q, r = np.linalg.qr(flat.T if rows < columns else flat)
    q = q * np.sign(np.diagonal(r))
    q = q.T if rows < columns else q
    values = PUBLIC["tensor"](np.ascontiguousarray(q) * gain)
    return _written(tensor, "copy_", values.reshape(tensor.shape))


def _older(function: Any) -> Any:
    """The name without an underscore, which warns."""
    new = function.__name__
    old = new.removesuffix("_")

    def older(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    older.__name__, older.__doc__ = old, f"The older name of `{new}`."
    return older


uniform, normal, constant, eye = map(_older, (uniform_, normal_, constant_, eye_))
dirac, sparse, orthogonal = map(_older, (dirac_, sparse_, orthogonal_))
xavier_uniform, xavier_normal = map(_older, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_older, (kaiming_uniform_, kaiming_normal_))
