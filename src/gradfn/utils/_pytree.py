"""torch.utils._pytree: nested containers, taken apart and put together again."""

from __future__ import annotations

from gradfn._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten

__all__ = ["TreeSpec", "tree_flatten", "tree_map", "tree_unflatten"]
