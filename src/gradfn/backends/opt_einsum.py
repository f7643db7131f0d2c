"""torch.backends.opt_einsum: the order of contractions of a long einsum."""

from __future__ import annotations

from importlib.util import find_spec

enabled = True
strategy = "auto"


def is_available() -> bool:
    """Is the package opt_einsum installed?"""
    return find_spec("opt_einsum") is not None
