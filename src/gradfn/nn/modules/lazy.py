"""Modules that learn the size of their input from the first one that they are given.

Note [Lazy modules]
    LazyX(…) takes the arguments of X but the first, and is an X whose parameters have no
    shape yet. The first input tells the missing number: then the parameters get their
    values, staying the objects that an optimizer may have been given, and the module
    becomes an X. A state that is loaded tells the number too.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from gradfn.nn.modules import batchnorm, conv, instancenorm, linear
from gradfn.nn.modules.module import Module
from gradfn.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = ["LazyLinear"] + [
    f"Lazy{kind}{n}d"
    for kind in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm")
    for n in (1, 2, 3)
]


class LazyModuleMixin:
    """What lazy modules share: Note [Lazy modules]."""

    cls_to_become: Any = None
    _parameters: Any
    _buffers: Any
    _size = ""  # the argument that the input tells
    _usual: ClassVar[
        dict[str, Any]
    ] = {}  # defaults that are not those of what it becomes

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        form = inspect.signature(self.cls_to_become)
        bound = form.bind(0, *args, **kwargs).arguments
        self._given: Any = {**self._usual, **bound}
        probe = self._made(self._groups())
        given = self._given
        self.__dict__.update(probe.__dict__)
        self._given = given
        setattr(self, self._size, 0)
        for name, value in self._parameters.items():
            if value is not None:
                self._parameters[name] = UninitializedParameter(dtype=value.dtype)
        for name, value in self._buffers.items():
            if value is not None and value.dim():
                self._buffers[name] = UninitializedBuffer(dtype=value.dtype)

    def _made(self, size: int) -> Any:
        return self.cls_to_become(**{**self._given, self._size: size})

    def _groups(self) -> int:
        return int(self._given.get("groups", 1))

    def has_uninitialized_params(self) -> bool:
        """Are the sizes not known yet?"""
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))

    def initialize_parameters(self, input: Any) -> None:
        """Makes this an ordinary module for such an input."""
        self._become(self._size_of(input))

    def _size_of(self, input: Any) -> int:
        return int(input.shape[1])

    def _become(self, size: int) -> None:
        made = self._made(size)
        for mine, new in (
            (self._parameters, made._parameters),
            (self._buffers, made._buffers),
        ):
            for name, value in new.items():
                if is_lazy(mine.get(name)):
                    mine[name].materialize(value.shape, dtype=value.dtype)
                    mine[name].data.copy_(value.data)
        setattr(self, self._size, size)
        del self._given
        self.__class__ = self.cls_to_become

    def forward(self, *inputs: Any) -> Any:
        """What the module that this becomes gives for the input."""
        self.initialize_parameters(*inputs)
        return self.forward(*inputs)

    def _size_in(self, weight: Any) -> int:
        return int(weight.shape[0])

    def _load_from_state_dict(self, state: Any, prefix: str, *more: Any) -> None:
        base = self.cls_to_become
        kept = [state.get(prefix + n) for n in ("weight", "running_mean")]
        kept = [t for t in kept if t is not None and not is_lazy(t)]
        if kept:
            self._become(self._size_in(kept[0]))
        base._load_from_state_dict(self, state, prefix, *more)


class _LastDim(LazyModuleMixin):
    _size = "in_features"

    def _size_of(self, input: Any) -> int:
        return int(input.shape[-1])

    def _size_in(self, weight: Any) -> int:
        return int(weight.shape[1])


class _Channels(LazyModuleMixin):
    _size = "in_channels"

    def _size_of(self, input: Any) -> int:
        n, dims = self.cls_to_become._n, input.dim()
        if dims not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {list(input.shape)}"
            )
        return int(input.shape[dims - n - 1])

    def _size_in(self, weight: Any) -> int:
        dim = 0 if self.cls_to_become.transposed else 1
        return int(weight.shape[dim]) * (1 if dim == 0 else self._groups())


class _Features(LazyModuleMixin):
    _size = "num_features"
    _usual: ClassVar[dict[str, Any]] = {"affine": True, "track_running_stats": True}


def _lazy(mixin: Any, base: type[Module]) -> Any:
    name = f"Lazy{base.__name__}"
    body = {
        "cls_to_become": base,
        "__module__": __name__,
        "__doc__": f"A {base.__name__} that takes its first size from the first input.",
    }
    return type(name, (mixin, base), body)


LazyLinear = _lazy(_LastDim, linear.Linear)
for _n in (1, 2, 3):
    for _mixin, _base in (
        (_Channels, getattr(conv, f"Conv{_n}d")),
        (_Channels, getattr(conv, f"ConvTranspose{_n}d")),
        (_Features, getattr(batchnorm, f"BatchNorm{_n}d")),
        (_Features, getattr(instancenorm, f"InstanceNorm{_n}d")),
    ):
        globals()[f"Lazy{_base.__name__}"] = _lazy(_mixin, _base)
