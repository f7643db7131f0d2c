"""Groups of ops that few programs use: each is loaded when one of its names first is.

A line is a module of gradfn.ops, and the functions and methods that it makes. Until it is
loaded, gradfn finds the functions through `__getattr__`, and tensors have methods that load
it and take their own places. So `import gradfn` need not read those modules.
"""

from __future__ import annotations

import importlib
from typing import Any

from gradfn._guard import guarded, needs_guard
from gradfn.ops.methods import guard_methods
from gradfn.ops.world import LATE, PUBLIC
from gradfn.tensor import Tensor

_WINDOWS = "bartlett_window blackman_window hamming_window hann_window kaiser_window"
_COUNTS = "combinations frexp hash_tensor histogram histogramdd nonzero_static"
_GAMMAS = "i0 igamma igammac mvlgamma"
_SCATTERED = "as_strided_scatter diagonal_scatter select_scatter slice_scatter"
_UNSAFE = "narrow_copy unsafe_chunk unsafe_split unsafe_split_with_sizes"
_COPIES = (
    "alias as_strided detach diagonal expand permute select slice split "
    "split_with_sizes squeeze t transpose unbind unfold unsqueeze view "
    "view_as_complex view_as_real"
)
_OF_DTYPE = "Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long Short"
# Methods that write in place, which torch has as functions too.
IN_PLACE = """
abs acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil
clamp clamp_max clamp_min clip conj_physical cos cosh deg2rad detach erf erfc exp exp2
expm1 fill fix floor frac gcd index_put lcm ldexp log log10 log1p log2 logit nan_to_num neg
negative rad2deg reciprocal relu round rsqrt sigmoid sin sinc sinh sqrt square tan tanh
trunc xlogy zero
"""


def _each(names: str, end: str) -> str:
    return " ".join(name + end for name in names.split())


GROUPS = {
    "copies": (f"{_each(_COPIES, '_copy')} {_UNSAFE}", _UNSAFE),
    "counting": (
        f"{_COUNTS} unravel_index",
        "combinations frexp hash_tensor histogram nonzero_static",
    ),
    "covariance": ("corrcoef cov", "corrcoef cov"),
    "distance": ("cdist pdist renorm", "renorm renorm_"),
    "draws": ("binomial", ""),
    "gammas": (_GAMMAS, f"{_GAMMAS} {_each(_GAMMAS, '_')}"),
    "index_put": ("index_put", "index_put index_put_"),
    "index_reduce": ("index_reduce", "index_reduce index_reduce_"),
    "legacy": (f"{_each(_OF_DTYPE, 'Tensor')} {_each(IN_PLACE, '_')}", "as_subclass"),
    "overwrite": (_SCATTERED, _SCATTERED),
    "stft": ("istft stft", "istft stft"),
    "windows": (_WINDOWS, ""),
}
FUNCTIONS = {f: group for group, (names, _) in GROUPS.items() for f in names.split()}
LATE.update(FUNCTIONS)


def load(group: str) -> None:
    """Makes the group's functions and methods."""
    importlib.import_module(f"gradfn.ops.{group}")
    guard_methods(GROUPS[group][1].split())


def load_all() -> None:
    """Makes all that there is, for those who go through the table."""
    for group in GROUPS:
        load(group)


def __getattr__(name: str) -> Any:
    if name not in FUNCTIONS:
        raise AttributeError(f"no op is called {name!r}", name=name)
    function = PUBLIC[name]
    return guarded(function, name) if needs_guard(function) else function


def _put_method(name: str, group: str) -> None:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        load(group)
        return getattr(self, name)(*args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Loads gradfn.ops.{group}, which has the method."
    setattr(Tensor, name, method)


for _group, (_, _methods) in GROUPS.items():
    for _name in _methods.split():
        _put_method(_name, _group)
