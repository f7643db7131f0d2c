"""The state of modules: what can be saved, and taken over again."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from gradfn.autograd.grad_mode import no_grad
from gradfn.nn.parameter import Parameter
from gradfn.tensor import Tensor


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """What `load_state_dict` found on one side only."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class Stateful:
    """Module's methods on state. A module writes `_save_to_state_dict` and
    `_load_from_state_dict` where it keeps its own part otherwise."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: Any
    _state_dict_pre_hooks: Any
    _load_state_dict_pre_hooks: Any
    _load_state_dict_post_hooks: Any
    _version: int

    def get_extra_state(self) -> Any:
        """More state for the state_dict; to be written with `set_extra_state`."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called: "
            f"{type(self).__name__} has not written it; it belongs to set_extra_state"
        )

    def set_extra_state(self, state: Any) -> None:
        """Takes over what `get_extra_state` gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called: "
            f"{type(self).__name__} has not written it, but there is extra state"
        )

    def _own_state(self) -> list[tuple[str, Any]]:
        """Parameters and persistent buffers of this very module."""
        found = [(k, v) for k, v in self._parameters.items() if v is not None]
        skipped = self._non_persistent_buffers_set
        return found + [
            (k, v) for k, v in self._buffers.items() if v is not None and k not in skipped
        ]

    # -- saving --------------------------------------------------------------------------

    def state_dict(
        self,
        *args: Any,
        destination: Any = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> Any:
        """Parameters and persistent buffers by their dotted names, detached."""
        if args:  # as they were passed once
            names = ("destination", "prefix", "keep_vars")
            given = {"destination": destination, "prefix": prefix, "keep_vars": keep_vars}
            given.update(zip(names, args))
            return self.state_dict(**given)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination,
                    prefix=f"{prefix}{name}.",
                    keep_vars=keep_vars,
                )
        for hook, may_replace in list(self._state_dict_hooks.values()):
            got = hook(self, destination, prefix, metadata)
            if got is not None and may_replace:
                destination = got
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Puts this module's own state into `destination`."""
        for name, value in self._own_state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + "_extra_state"] = self.get_extra_state()

    # -- loading -------------------------------------------------------------------------

    def load_state_dict(
        self, state_dict: Any, strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Writes values by name into parameters and buffers; `assign` puts them in place.

        RuntimeError that lists missing and unexpected names (if `strict`) and sizes that
        differ.
        """
        if not hasattr(state_dict, "items"):
            raise TypeError(
                f"Expected state_dict to be dict-like, got {type(state_dict).__name__}."
            )
        state = OrderedDict(state_dict)
        found = _Loading(state, strict, assign, getattr(state_dict, "_metadata", None))
        found.load(self, "")
        if strict:
            for what, keys in (
                ("Unexpected", found.unexpected),
                ("Missing", found.missing),
            ):
                if keys:
                    names = ", ".join(f'"{k}"' for k in keys)
                    found.errors.insert(0, f"{what} key(s) in state_dict: {names}. ")
        if found.errors:
            told = "\n\t".join(found.errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{told}"
            )
        return _IncompatibleKeys(found.missing, found.unexpected)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Takes this module's own state out of `state_dict`."""
        arguments = (state_dict, prefix, local_metadata, strict)
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, *arguments, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, value in self._own_state():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            told = self._take_over(name, key, value, state_dict[key], assign)
            if told:
                error_msgs.append(told)
        key = prefix + "_extra_state"
        takes = type(self).set_extra_state is not Stateful.set_extra_state
        if takes and key in state_dict:
            self.set_extra_state(state_dict[key])
        elif takes and strict:
            missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)
        if strict:
            unexpected_keys += self._unexpected(state_dict, prefix)

    def _take_over(self, name: str, key: str, own: Any, given: Any, assign: bool) -> str:
        """Writes one value; returns what is wrong with it, or nothing."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(given)}"
            )
        if given.dim() == 1 and own.dim() == 0 and given.numel() == 1:
            given = given[0]  # of old files
        if tuple(given.shape) != tuple(own.shape):
            return (
                f"size mismatch for {key}: copying a param with shape {given.shape} "
                f"from checkpoint, the shape in current model is {own.shape}."
            )
        with no_grad():
            if not assign:
                own.copy_(given)
            elif isinstance(own, Parameter):
                plain = not isinstance(given, Parameter)
                self._parameters[name] = (
                    Parameter(given, own.requires_grad) if plain else given
                )
            else:
                self._buffers[name] = given
        return ""

    def _unexpected(self, state_dict: Any, prefix: str) -> list[str]:
        known = {name for name, _ in self._own_state()} | {"_extra_state"}
        found = []
        for key in state_dict:
            if not key.startswith(prefix):
                continue
            first, _, rest = key[len(prefix) :].partition(".")
            below = bool(rest) and first in self._modules
            if not below and key[len(prefix) :] not in known:
                found.append(key)
        return found


class _Loading:
    """One call of load_state_dict: what is given, and what was found wrong."""

    def __init__(self, state: Any, strict: bool, assign: bool, metadata: Any) -> None:
        self.state, self.strict, self.assign = state, strict, assign
        self.metadata = metadata or {}
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def load(self, module: Any, prefix: str) -> None:
        """Takes over the state of a module and of all below it."""
        local = dict(self.metadata.get(prefix[:-1], {}))
        if self.assign:
            local["assign_to_params_buffers"] = True
        module._load_from_state_dict(
            self.state,
            prefix,
            local,
            True,
            self.missing,
            self.unexpected,
            self.errors,
        )
        for name, child in module._modules.items():
            if child is not None:
                self.load(child, f"{prefix}{name}.")
        keys = _IncompatibleKeys(self.missing, self.unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                    "expected to return new values; change the keys that they are given"
                )
