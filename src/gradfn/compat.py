"""gradfn under the name ``torch``.

    with gradfn.compat.install():
        import torch                        # is gradfn
        from torch.autograd import Function
        import torch.nn.functional as F

Every ``torch.x.y`` is the very module ``gradfn.x.y``: nothing is copied, and each
module keeps its own ``__name__`` and ``__spec__``. Modules load on first use, as
they do under their own names. What gradfn lacks raises ModuleNotFoundError, which
says so; PyTorch is never imported in its place, even if it is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importlib.abc costs some 10 ms

__all__ = ["Installation", "install", "uninstall"]

_PACKAGE = __name__.partition(".")[0]


def install() -> Installation:
    """Let ``import torch`` mean gradfn in this process, until :func:`uninstall`.

    Called again, it changes nothing. The result may be used in a ``with`` statement,
    which undoes what this very call did.

    Raises:
        RuntimeError: PyTorch itself has been imported already. Two libraries cannot
            share one name, and programs hold on to what they have imported.
    """
    if _active():
        return Installation(None)
    known = {name: sys.modules[name] for name in list(sys.modules) if _is_torch(name)}
    if not all(module is None or _is_ours(module) for module in known.values()):
        raise RuntimeError(
            "PyTorch is already imported in this process, so gradfn cannot take the "
            "name torch. Call gradfn.compat.install() before the first `import torch`, "
            "or use `import gradfn as torch`."
        )
    for name in known:
        del sys.modules[name]
    finder = _Finder(known)
    sys.meta_path.insert(0, finder)
    return Installation(finder)


def uninstall() -> None:
    """Undo :func:`install`: ``torch`` is again whatever it was. Harmless otherwise.

    Programs that have imported gradfn as ``torch`` keep what they have.
    """
    for finder in _active():
        sys.meta_path.remove(finder)
        for name in list(sys.modules):
            if _is_torch(name):
                del sys.modules[name]
        sys.modules.update(finder.replaced)


class Installation:
    """What :func:`install` has done; ends with its ``with`` block."""

    def __init__(self, finder: _Finder | None) -> None:
        self._finder = finder  # None if gradfn stood in already

    def __enter__(self) -> Installation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        if self._finder in _active():
            uninstall()
        return False


class _Finder:
    """Answers for ``torch`` and all below it; first in ``sys.meta_path``."""

    def __init__(self, replaced: dict[str, ModuleType]) -> None:
        self.replaced = replaced  # entries of sys.modules, for uninstall

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if not _is_torch(fullname):
            return None
        parent, _, leaf = fullname.rpartition(".")
        found = _find_below(sys.modules[parent], leaf) if parent else _find(_PACKAGE)
        if found is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: gradfn (standing in for torch) "
                "has no such module",
                name=fullname,
            )
        spec = ModuleSpec(fullname, _Alias(found.load))
        if found.spec:
            spec.origin = found.spec.origin
            spec.submodule_search_locations = found.spec.submodule_search_locations
        return spec


class _Alias(Loader):
    """Loads a module of gradfn under another name."""

    def __init__(self, load: Callable[[], ModuleType]) -> None:
        self._load = load

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None  # an empty one, which exec_module replaces

    def exec_module(self, module: ModuleType) -> None:
        # What stands in sys.modules afterwards is what the import statement gives, and
        # the import system leaves its attributes alone.
        sys.modules[module.__name__] = self._load()
        for name in _HIDDEN.get(module.__name__, ()):
            sys.modules[f"{module.__name__}.{name}"] = _Hidden(name)


# Modules of torch.autograd that functions of their names hide. Importing one would put it
# in the function's place, unless it is known before.
_HIDDEN = {"torch.autograd": ("gradcheck",)}


class _Hidden(ModuleType):
    """Stands for such a module, which loads when something of it is wanted."""

    def __getattr__(self, name: str) -> object:
        ours = f"{_PACKAGE}.autograd.{self.__name__}"
        getattr(importlib.import_module(f"{_PACKAGE}.autograd"), self.__name__)
        return getattr(sys.modules[ours], name)


class _Found(NamedTuple):
    """A module of gradfn, perhaps not imported yet."""

    load: Callable[[], ModuleType]
    spec: ModuleSpec | None


def _find_below(parent: ModuleType, leaf: str) -> _Found | None:
    """The module that ``parent.leaf`` is, or would be once it is imported."""
    if leaf in vars(parent):
        # Importing a submodule binds it in its parent. Where gradfn has put something
        # else there (the function torch.tensor hides the module), it must stay.
        return _as_found(vars(parent)[leaf])
    return _find(f"{parent.__name__}.{leaf}") or _as_found(getattr(parent, leaf, None))


def _find(name: str) -> _Found | None:
    spec = importlib.util.find_spec(name)
    return _Found(lambda: importlib.import_module(name), spec) if spec else None


def _as_found(value: object) -> _Found | None:
    if isinstance(value, ModuleType) and _is_ours(value):
        return _Found(lambda: value, value.__spec__)
    return None


def _active() -> list[_Finder]:
    return [finder for finder in sys.meta_path if isinstance(finder, _Finder)]


def _is_torch(name: str) -> bool:
    return name == "torch" or name.startswith("torch.")


def _is_ours(module: ModuleType) -> bool:
    return module.__name__.partition(".")[0] == _PACKAGE
