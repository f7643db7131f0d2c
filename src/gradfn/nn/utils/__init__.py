"""What one does with the parameters of networks."""

from __future__ import annotations

from gradfn._names import late as _late
from gradfn.nn.utils import rnn
from gradfn.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from gradfn.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from gradfn.nn.utils.init import skip_init

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

# These need the modules, which need this package.
_FUNCTIONS = {
    "spectral_norm": "parametrizations",
    "remove_weight_norm": "weight_norm",
    "fuse_conv_bn_eval": "fusion",
    "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion",
}
_MODULES = ("fusion", "parametrizations", "parametrize", "stateless")
_late_name = _late(__name__, _MODULES, _FUNCTIONS)


def __getattr__(name: str) -> object:
    if name == "weight_norm":  # the function hides its module, as in torch
        from gradfn.nn.utils.weight_norm import weight_norm

        globals()[name] = weight_norm
        return weight_norm
    return _late_name(name)
