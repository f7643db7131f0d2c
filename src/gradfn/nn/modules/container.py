"""Modules and parameters in sequences and by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gradfn.nn.modules.module import Module
from gradfn.nn.parameter import Parameter
from gradfn.tensor import Tensor

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _Numbered(Module):
    """What sequences of modules share."""

    def _key(self, i: int) -> str:
        n = len(self._modules)
        if not -n <= i < n:
            raise IndexError(f"index {i} is out of range")
        return str(list(self._modules)[i])

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return type(self)._of(list(self._modules.values())[i])
        return self._modules[self._key(i)]

    @classmethod
    def _of(cls, modules: Any) -> Any:
        return cls(*modules)

    def __setitem__(self, i: int, module: Module) -> None:
        self._modules[self._key(i)] = module

    def __delitem__(self, i: Any) -> None:
        left = list(self._modules.values())
        del left[i]
        self._modules.clear()
        self._modules.update({str(k): m for k, m in enumerate(left)})

    def append(self, module: Module) -> Any:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any = -1) -> Any:
        """Takes a module out and returns it."""
        found = self[key]
        del self[key]
        return found

    def __add__(self, other: Any) -> Any:
        return self._of([*self, *other])

    def __iadd__(self, other: Any) -> Any:
        return self.extend(other)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def insert(self, index: int, module: Module) -> Any:
        """Adds a module at a place. IndexError if it is too far away."""
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}, there are {n} modules")
        left = list(self._modules.values())
        left.insert(index, module)
        self._modules.update({str(k): m for k, m in enumerate(left)})
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self


class Sequential(_Numbered):
    """Modules that run one after the other."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self.extend(args)

    def forward(self, input: Any) -> Any:
        """The last module's output."""
        for module in self:
            input = module(input)
        return input

    def __mul__(self, times: int) -> Any:
        if not isinstance(times, int):
            raise TypeError(
                f"unsupported operand type(s) for *: {type(self)} and {type(times)}"
            )
        if times <= 0:
            raise ValueError(
                f"Non-positive multiplication factor {times} for {type(self)}"
            )
        return self._of(list(self) * times)

    __rmul__ = __mul__


class ModuleList(_Numbered):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    @classmethod
    def _of(cls, modules: Any) -> Any:
        return cls(modules)

    def __repr__(self) -> str:
        """Equal modules that follow each other share a line."""
        texts = [repr(m) for m in self]
        if not texts:
            return f"{self._get_name()}()"
        lines, begin = [], 0
        for i, text in enumerate(texts):
            if i + 1 < len(texts) and texts[i + 1] == text:
                continue
            several = f"({begin}-{i}): {i - begin + 1} x {text}"
            line = f"({i}): {text}" if begin == i else several
            lines.append("  " + line.replace("\n", "\n  "))
            begin = i + 1
        inside = "\n".join(lines)
        return f"{self._get_name()}(\n{inside}\n)"


class ModuleDict(Module):
    """A dict of modules."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def update(self, modules: Any) -> None:
        """Adds modules by name."""
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self.add_module(name, module)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def items(self) -> Any:
        """Names and modules."""
        return self._modules.items()

    def pop(self, key: str) -> Any:
        """Takes a module out and returns it."""
        return self._modules.pop(key)

    def clear(self) -> None:
        """Takes all out."""
        self._modules.clear()


def _as_parameter(value: Any) -> Any:
    plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if plain else value


class ParameterList(Module):
    """A list of parameters; tensors become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return type(self)(list(self)[i])
        if not -self._size <= i < self._size:
            raise IndexError(f"index {i} is out of range")
        return getattr(self, str(i % self._size))

    def __setitem__(self, i: int, value: Any) -> None:
        setattr(self, str(i % self._size), _as_parameter(value))

    def append(self, value: Any) -> ParameterList:
        """Adds a parameter at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds parameters at the end."""
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """A line a parameter."""
        return "\n".join(_line(i, p, lambda t: t.dtype) for i, p in enumerate(self))


class ParameterDict(Module):
    """A dict of parameters; tensors become parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._names: dict[str, None] = {}
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._names[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._names[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, key: str) -> bool:
        return key in self._names

    def update(self, parameters: Any) -> None:
        """Adds parameters by name."""
        pairs = parameters.items() if hasattr(parameters, "items") else parameters
        for name, value in pairs:
            self[name] = value

    def keys(self) -> Any:
        """The names."""
        return self._names.keys()

    def values(self) -> Any:
        """The parameters."""
        return [self[name] for name in self._names]

    def items(self) -> Any:
        """Names and parameters."""
        return [(name, self[name]) for name in self._names]

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter, or the default."""
        return self[key] if key in self._names else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter, which is the default now if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Takes a parameter out and returns it."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Takes the last one out."""
        name = next(reversed(self._names))
        return name, self.pop(name)

    def clear(self) -> None:
        """Takes all out."""
        for name in list(self._names):
            del self[name]

    def copy(self) -> ParameterDict:
        """Another dict of the same parameters."""
        return type(self)(dict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dict in which all names have the same value."""
        return type(self)(dict.fromkeys(keys, default))

    def __or__(self, other: Any) -> ParameterDict:
        return type(self)({**dict(self.items()), **dict(other.items())})

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        """A line a parameter."""
        return "\n".join(_line(k, v, lambda t: t.type()) for k, v in self.items())


def _line(name: Any, value: Any, kind: Any) -> str:
    if not isinstance(value, Tensor):
        return f"({name}): Object of type: {type(value).__name__}"
    what = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.shape))
    return f"  ({name}): {what} containing: [{kind(value)} of size {size}]"
