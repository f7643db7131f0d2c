"""`out=`: results written into tensors that the caller has."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradfn._dtypes import torch_dtype
from gradfn._kinds import type_name
from gradfn._state import GRAD, TRANSFORMS, mode
from gradfn.graph.batched import refuse_batched
from gradfn.graph.saved import legacy_type
from gradfn.graph.tangent import is_dual
from gradfn.ops.inplace import (
    bump,
    check_cast,
    check_memory,
    check_overlap,
    overlapping,
    own,
)
from gradfn.tensor import Tensor

# Functions whose `out=` must have the result's dtype; into others it is cast.
_TEXT = """
    addmm addmv alias_copy amax amin aminmax argmax argmin as_strided_copy avg_pool2d
    avg_pool3d baddbmm bmm bucketize ceil chain_matmul cholesky cholesky_ex clamp_max
    clamp_min clip conj_physical cross cummax cummin det diag diagonal_copy dot eigh
    eigvalsh expand_copy float_power floor frac frexp gather hardshrink histc histogram
    index_add index_copy index_reduce index_select inner inv inv_ex inverse isin kthvalue
    log_softmax logcumsumexp logsigmoid lu lu_factor lu_factor_ex masked_select matmul
    matrix_norm matrix_power median mm mode msort multi_dot mv nan_to_num nanmedian
    nanquantile narrow_copy nonzero nonzero_static norm ormqr permute_copy quantile renorm
    round scatter scatter_add scatter_reduce searchsorted select_copy sgn sign slice_copy
    slice_scatter slogdet softmax softplus softshrink solve solve_ex solve_triangular sort
    split_with_sizes_copy squeeze_copy svd svdvals t_copy take take_along_dim tensordot topk
    transpose_copy triangular_solve tril triu trunc unbind_copy unfold_copy unsqueeze_copy
    vecdot vector_norm view_as_real_copy view_copy where complex polar
"""
EXACT = frozenset(_TEXT.split())
# And those whose `out=` must be apart from their arguments, where others may write over one.
APART = frozenset(
    (
        "cat",
        "gather",
        "index_select",
        "kthvalue",
        "masked_select",
        "take",
        "take_along_dim",
    )
)


def into(name: str, out: Any, result: Any, given: Any = ()) -> Any:
    """Writes a result into `out=`, or several into a tuple of them; returns `out`.

    `given` are the function's arguments. TypeError if `out` is no such thing, RuntimeError
    if it has a dtype that the function does not cast to, or shares memory in a way that
    makes the result depend on the order of writes.
    """
    check_out(name, out, result)
    if isinstance(out, (tuple, list)):
        for target, value in zip(out, result, strict=True):
            into(name, target, value, given)
        return out
    if mode() & TRANSFORMS and (is_dual(result) or is_dual(out)):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it "
            "is an out= function"
        )
    if mode() & GRAD and (result.requires_grad or out.requires_grad):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    if mode() & TRANSFORMS:
        refuse_batched(
            f"Batching rule not implemented for aten::{name}.out; the fallback path doesn't "
            "work on out= or view ops. Use the result that is returned.",
            result,
            out,
        )
    check_dtype(name, out._array.dtype, result._array.dtype)
    check_memory(out)
    for x in tensors_in(given):
        check_apart(name, out._array, x._array)
    if out._array.shape != result._array.shape:
        resize(name, out, result)
    own(out)
    np.copyto(out._array, result._array, casting="unsafe")
    bump(out)
    return out


def check_out(name: str, out: Any, result: Any) -> None:
    """TypeError unless `out` is a tensor, or as many of them as the result is."""
    if not isinstance(result, (tuple, list)):
        if not isinstance(out, Tensor):
            raise TypeError(
                f"{name}(): argument 'out' must be Tensor, not {type_name(out)}"
            )
    elif not isinstance(out, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'out' must be tuple of Tensors, not {type_name(out)}"
        )
    elif len(out) != len(result):
        raise TypeError(
            f"{name}(): argument 'out': expected tuple of {len(result)} elements but got "
            f"{len(out)}"
        )


def check_dtype(name: str, out: np.dtype[Any], result: np.dtype[Any]) -> None:
    """RuntimeError if the result is not cast to the dtype of `out`."""
    check_cast(result, out)
    if out != result and _last(name) in EXACT:
        wanted, have = (legacy_type(torch_dtype(d).name)[6:-6] for d in (result, out))
        raise RuntimeError(
            f"{name}(): Expected out tensor to have dtype {wanted}, but got {have} instead"
        )


def _last(name: str) -> str:
    """The name without its module: of linalg.inv or linalg_inv just inv."""
    return name.rpartition(".")[2].removeprefix("linalg_").removeprefix("special_")


def tensors_in(given: Any) -> list[Tensor]:
    """The tensors among arguments, and in lists and tuples among them."""
    found: list[Tensor] = []
    for x in given:
        if isinstance(x, (tuple, list)):
            found += tensors_in(x)
        elif isinstance(x, Tensor):
            found.append(x)
    return found


def check_apart(name: str, out: Any, source: Any) -> None:
    """RuntimeError if a function may not write into memory of this argument."""
    if _last(name) in APART and np.may_share_memory(out, source):
        raise overlapping()
    check_overlap(out, source)


def resize(name: str, out: Tensor, result: Tensor) -> None:
    """Gives `out` the shape of the result; warns unless it was empty."""
    if out._array.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(out.shape)}, which does not match the required output shape "
            f"{list(result.shape)}. This behavior is deprecated ({name}).",
            UserWarning,
            stacklevel=4,
        )
    out._array = np.empty(result._array.shape, out._array.dtype)
