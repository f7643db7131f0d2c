"""What to call a tensor: the name of a parameter, or of the variable that holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradfn.tensor import Tensor


def named(params: Any) -> dict[int, str]:
    """{id of the tensor: name} from a Module, a dict, or pairs (name, tensor).

    TypeError for anything else.
    """
    if params is None:
        return {}
    if hasattr(params, "named_parameters"):
        params = params.named_parameters()
    elif isinstance(params, Mapping):
        params = params.items()
    try:
        return {id(tensor): str(name) for name, tensor in params}
    except (TypeError, ValueError):
        raise TypeError(
            "params must be a Module, a dict {name: tensor} or pairs (name, tensor), "
            f"got {type(params).__name__}"
        ) from None


def variables(*scopes: Mapping[str, Any]) -> dict[int, str]:
    """Names for the tensors that variables hold, also in Modules; later scopes win."""
    names: dict[int, str] = {}
    for scope in scopes:
        for name, value in list(scope.items()):
            if isinstance(value, Tensor):
                names[id(value)] = name
            elif hasattr(type(value), "named_parameters"):
                for inner, p in value.named_parameters():
                    names.setdefault(id(p), f"{name}.{inner}")
    return names
