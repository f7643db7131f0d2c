"""gradfn: PyTorch's autograd on NumPy.

`import gradfn as torch` and go on as with PyTorch; `python -m gradfn run program.py`
runs a program that says `import torch`. The names here are torch's.
"""

from __future__ import annotations

from math import e, inf, nan, pi
from types import ModuleType as _Module

from gradfn import autograd
from gradfn._device import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from gradfn._dtype_info import finfo, iinfo
from gradfn._dtypes import (
    bool_ as bool,
)
from gradfn._dtypes import (
    can_cast,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from gradfn._guard import guard_all as _guard_all
from gradfn._names import late as _late
from gradfn.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from gradfn.ops.late import FUNCTIONS as _OPS_LATE
from gradfn.ops.world import PUBLIC as _PUBLIC
from gradfn.printing import set_printoptions
from gradfn.tensor import Size, Tensor

__version__ = "0.1.0"

half = float16
float = float32
double = float64
short = int16
int = int32
long = int64
cfloat = complex64
cdouble = complex128
newaxis = None

globals().update(_PUBLIC)  # every op but those of _OPS_LATE
_guard_all(globals(), _PUBLIC)

# Most programs use none of these, so they are imported when they are first named.
_LATE = [
    "amp",
    "backends",
    "check",
    "compat",
    "compiler",
    "cuda",
    "drawing",
    "fft",
    "func",
    "jit",
    "linalg",
    "nn",
    "optim",
    "profiler",
    "random",
    "serialization",
    "signal",
    "special",
    "utils",
]
_LATE_FUNCTIONS = {
    **dict.fromkeys(_OPS_LATE, "ops.late"),
    "GradScaler": "amp",
    "autocast": "amp",
    "compile": "compiler",
    "draw": "drawing",
    "get_num_interop_threads": "_threads",
    "get_num_threads": "_threads",
    "native_dropout": "nn.dropouts",
    "load": "serialization",
    "save": "serialization",
    "set_num_interop_threads": "_threads",
    "set_num_threads": "_threads",
    "vmap": "func.vmap",
    **dict.fromkeys(
        (
            "alpha_dropout",
            "batch_norm",
            "bilinear",
            "binary_cross_entropy_with_logits",
            "celu",
            "celu_",
            "cosine_embedding_loss",
            "cosine_similarity",
            "ctc_loss",
            "dropout",
            "embedding",
            "feature_alpha_dropout",
            "feature_dropout",
            "group_norm",
            "hardshrink",
            "hinge_embedding_loss",
            "instance_norm",
            "kl_div",
            "layer_norm",
            "margin_ranking_loss",
            "pairwise_distance",
            "poisson_nll_loss",
            "prelu",
            "rms_norm",
            "rrelu",
            "rrelu_",
            "selu",
            "selu_",
            "threshold",
            "threshold_",
            "triplet_margin_loss",
        ),
        "nn.native",
    ),
    **dict.fromkeys(
        ("native_batch_norm", "native_group_norm", "native_layer_norm"), "nn.norms"
    ),
    **dict.fromkeys(
        ("affine_grid_generator", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"),
        "nn.grid",
    ),
    **dict.fromkeys(
        (
            "adaptive_avg_pool1d",
            "adaptive_max_pool1d",
            "avg_pool1d",
            "channel_shuffle",
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_tbc",
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
            "max_pool1d",
            "max_pool2d",
            "max_pool3d",
            "pixel_shuffle",
            "pixel_unshuffle",
        ),
        "nn.functional",
    ),
}
__getattr__ = _late(__name__, _LATE, _LATE_FUNCTIONS)
__all__ = sorted(
    {
        *_LATE_FUNCTIONS,
        *(
            name
            for name, value in globals().items()
            if not name.startswith("_")
            and name != "annotations"
            and type(value) is not _Module
        ),
    }
)
