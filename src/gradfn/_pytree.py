"""Nested containers of values, taken apart and put together again.

Lists, tuples, named tuples, dicts (also ordered ones and defaultdicts) and deques are
containers; whatever else stands in them is a leaf, None too.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class TreeSpec(NamedTuple):
    """The shape of a nested container: what is needed to put it together."""

    kind: Any  # the type of the container; None for a leaf
    context: Any  # keys, or what else the type needs
    children: tuple[TreeSpec, ...]

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.kind is None else sum(c.num_leaves for c in self.children)


LEAF = TreeSpec(None, None, ())

# What `register_pytree_node` was given for each type: how it is taken apart and put together.
REGISTERED: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    **_: Any,
) -> None:
    """Makes a class of the user's a container.

    `flatten_fn(x)` gives its children and a context, `unflatten_fn(children, context)` the
    container again. ValueError if the class is known already. Other options of PyTorch's
    (for export and serialisation) have no meaning here.
    """
    if cls in REGISTERED:
        raise ValueError(f"{cls} is already registered as pytree node.")
    REGISTERED[cls] = (flatten_fn, unflatten_fn)


SEQUENCES = (tuple, list)
CONTAINERS = (tuple, list, dict, deque)  # the rest are their subclasses
DICTS = (dict, OrderedDict)


def _is_named(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(type(x), "_fields")


def children(tree: Any) -> tuple[Any, Any, list[Any]] | None:
    """(kind, context, children) of a container; None for a leaf."""
    kind = type(tree)
    if kind in SEQUENCES:
        return kind, None, list(tree)
    if kind in DICTS:
        return kind, tuple(tree), list(tree.values())
    if kind is defaultdict:
        return kind, (tree.default_factory, tuple(tree)), list(tree.values())
    if kind is deque:
        return kind, tree.maxlen, list(tree)
    if kind in REGISTERED:
        inner, context = REGISTERED[kind][0](tree)
        return kind, context, list(inner)
    if _is_named(tree):
        return kind, None, list(tree)
    return None


def tree_flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the shape."""
    parts = children(tree)
    if parts is None:
        return [tree], LEAF
    kind, context, inner = parts
    leaves: list[Any] = []
    specs = []
    for child in inner:
        if isinstance(child, CONTAINERS) or type(child) in REGISTERED:
            some, spec = tree_flatten(child)
            leaves += some
            specs.append(spec)
        else:
            leaves.append(child)
            specs.append(LEAF)
    return leaves, TreeSpec(kind, context, tuple(specs))


def tree_unflatten(leaves: Iterable[Any], spec: TreeSpec) -> Any:
    """The container of that shape with these leaves."""
    return _build(iter(leaves), spec)


def _build(leaves: Any, spec: TreeSpec) -> Any:
    if spec is LEAF or spec.kind is None:
        return next(leaves)
    inner = [
        next(leaves) if child is LEAF else _build(leaves, child)
        for child in spec.children
    ]
    kind, context = spec.kind, spec.context
    if kind in SEQUENCES:
        return kind(inner)
    if kind in DICTS:
        return kind(zip(context, inner, strict=True))
    if kind is defaultdict:
        return defaultdict(context[0], zip(context[1], inner, strict=True))
    if kind is deque:
        return deque(inner, context)
    if kind in REGISTERED:
        return REGISTERED[kind][1](inner, context)
    return kind(*inner)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree)[0]


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """The container with `function` applied to each leaf (and those at its place)."""
    leaves, spec = tree_flatten(tree)
    others = [tree_flatten(other)[0] for other in rest]
    return tree_unflatten(map(function, leaves, *others), spec)


def tree_map_only(kinds: Any, function: Callable[..., Any], tree: Any) -> Any:
    """The container with `function` applied to the leaves of some types."""
    return tree_map(lambda x: function(x) if isinstance(x, kinds) else x, tree)


def broadcast_prefix(prefix: Any, spec: TreeSpec) -> list[Any] | None:
    """A leaf of `prefix` for each leaf of a tree of which it is the upper part.

    None if it isn't. A leaf of the prefix goes to all leaves that stand in its place.
    """
    parts = children(prefix)
    if parts is None:
        return [prefix] * spec.num_leaves
    kind, context, inner = parts
    same = kind is spec.kind or (kind is tuple and hasattr(spec.kind, "_fields"))
    if not same or len(inner) != len(spec.children) or context != spec.context:
        return None
    found: list[Any] = []
    for child, child_spec in zip(inner, spec.children, strict=True):
        some = broadcast_prefix(child, child_spec)
        if some is None:
            return None
        found += some
    return found
