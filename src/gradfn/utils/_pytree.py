"""torch.utils._pytree: nested containers, taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradfn._pytree import (
    TreeSpec,
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_map_only,
    tree_unflatten,
)

__all__ = [
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]


def tree_structure(tree: Any) -> TreeSpec:
    """The shape of a container."""
    return tree_flatten(tree)[1]


def tree_iter(tree: Any) -> Iterator[Any]:
    """The leaves, one after the other."""
    return iter(tree_leaves(tree))


def tree_all(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Does `pred` hold for all leaves?"""
    return all(map(pred, tree_leaves(tree)))


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Does `pred` hold for a leaf?"""
    return any(map(pred, tree_leaves(tree)))


def tree_map_(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Calls `function` for each leaf, for what it does to it; returns the container."""
    tree_map(function, tree, *rest)
    return tree
