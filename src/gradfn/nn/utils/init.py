"""Modules for which others have the values."""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module into which parameters will be loaded: what its own are is not said.

    (They are drawn as always; PyTorch saves that time.) RuntimeError for a class that is no
    module, or takes no `device`.
    """
    from gradfn.nn.modules.module import Module

    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(
            "Module must support a 'device' arg to skip initialization, but "
            f"{module_cls.__name__} has none"
        )
    return module_cls(*args, **kwargs)
