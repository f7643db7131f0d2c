"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`module(*args, **kwargs)` with other parameters and buffers, given by name.

    They are given as one dict or several with different keys. With tie_weights a
    parameter that the module has under several names is replaced under all of them; with
    strict every one must be given, and no other (RuntimeError).
    """
    dicts = parameter_and_buffer_dicts
    if isinstance(dicts, Sequence):
        names = [n for d in dicts for n in d]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(
                f"{twice[0]} appears in multiple dictionaries; behavior of functional call "
                "is ambiguous"
            )
        dicts = {n: t for d in dicts for n, t in d.items()}
    elif not isinstance(dicts, dict):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but "
            f"got {type(dicts)}"
        )
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    values = _tied(module, dicts) if tie_weights else dict(dicts)
    if strict:
        _check_all(module, values)
    with replaced(module, values):
        return module(*args, **(kwargs or {}))


def _named(module: Any) -> Iterator[tuple[str, Any]]:
    """All parameters and buffers with their names, also those with several."""
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _tied(module: Any, values: dict[str, Any]) -> dict[str, Any]:
    """`values`, and the same ones for other names of what they replace."""
    own = dict(_named(module))
    by_id = {id(own[n]): t for n, t in values.items() if n in own}
    more = {n: by_id[id(t)] for n, t in own.items() if id(t) in by_id}
    return {**more, **values}


def _check_all(module: Any, values: dict[str, Any]) -> None:
    own = {n for n, _ in _named(module)}
    missing, unknown = sorted(own - set(values)), sorted(set(values) - own)
    said = []
    if unknown:
        said.append(f"Unexpected key(s): {', '.join(map(repr, unknown))}.")
    if missing:
        said.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
    if said:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t"
            + "\n\t".join(said)
        )


@contextmanager
def replaced(module: Any, values: dict[str, Any]) -> Iterator[None]:
    """The module with other tensors in the place of some parameters and buffers."""
    undo = []
    try:
        for name, value in values.items():
            owner, leaf = _owner(module, name)
            table = owner._parameters if leaf in owner._parameters else owner._buffers
            if leaf not in table:
                raise KeyError(
                    f"{type(module).__name__} has no parameter or buffer {name}"
                )
            undo.append((table, leaf, table[leaf]))
            table[leaf] = value
        yield
    finally:
        for table, leaf, before in reversed(undo):
            table[leaf] = before


def _owner(module: Any, name: str) -> tuple[Any, str]:
    *path, leaf = name.split(".")
    for part in path:
        module = getattr(module, part)
    return module, leaf


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """`(params, buffers)` of several models of one kind, each stacked in a new first dim.

    Meant for `vmap` over an ensemble with `functional_call`. RuntimeError if there is no
    model, if some train and some don't, or if they are of different classes.
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(m) for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to be of the same class."
        )
    params = _stacked([dict(m.named_parameters()) for m in models], leaf=True)
    buffers = _stacked([dict(m.named_buffers()) for m in models], leaf=False)
    return params, buffers


def _stacked(dicts: list[dict[str, Tensor]], leaf: bool) -> dict[str, Any]:
    found = {}
    for name in dicts[0]:
        column = [d[name] for d in dicts]
        needs = {t.requires_grad for t in column}
        if len(needs) > 1:
            raise RuntimeError(
                f"Expected {name} from each model to have the same .requires_grad"
            )
        stacked = PUBLIC["stack"]([t.detach() for t in column])
        found[name] = stacked.requires_grad_(leaf and needs.pop())
    return found


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Makes all batch normalisations in a module forget their running statistics.

    They write them, which samples of a vmap cannot do each for itself. Returns the module.
    """
    from gradfn.nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
