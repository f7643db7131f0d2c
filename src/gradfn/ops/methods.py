"""Guards before those methods of Tensor that are no ops: Note [Guards] in _guard.py."""

from __future__ import annotations

from collections.abc import Iterable

from gradfn._guard import guarded, needs_guard
from gradfn.tensor import Tensor

# Called in the innermost loops of programs, with nothing to get wrong or with errors of
# their own.
_TEXT = """
    as_subclass backward clamp clamp_ clamp_max clamp_min contiguous cpu data_ptr detach
    detach_ dim element_size is_contiguous is_inference is_same_size item ndimension nelement
    numel numpy pow pow_ register_hook register_post_accumulate_grad_hook requires_grad_
    reshape retain_grad size squeeze storage_offset stride to tolist type view
"""
PLAIN = frozenset(_TEXT.split())


def guard_methods(names: Iterable[str]) -> None:
    """Called when the methods of these names are there; ops among them need no guard."""
    for name in list(names):
        function = vars(Tensor)[name]
        if name.startswith("_") or name in PLAIN:
            continue
        if needs_guard(function) and function.__module__.startswith("gradfn.ops"):
            setattr(Tensor, name, guarded(function, name))
