"""Finds the Functions that a target names.

A target is `path.py`, `path.py::Square`, `package.module` or `package.module:Square`.

Note [Whose Function]
    A file says `import torch` or `import gradfn as torch`, and is to be checked on one of the
    two. So its import statements are rewritten as it is loaded: torch becomes gradfn, or
    gradfn torch. Modules that are named by their dotted name, and those that files import
    in turn, are imported as they are.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

OTHER = {"gradfn": "torch", "torch": "gradfn"}


class Target(NamedTuple):
    """What a command line names."""

    module: str  # a file, or a dotted name
    name: str  # of a class, perhaps within others; "" for all

    @property
    def is_file(self) -> bool:
        """Is it a file, not a dotted name?"""
        return self.module.endswith(".py") or "/" in self.module or "\\" in self.module


def parse(text: str) -> Target:
    """A target from its text."""
    for mark in ("::", ":"):
        head, found, tail = text.rpartition(mark)
        if found and tail.replace(".", "").replace("::", "").isidentifier():
            return Target(head, tail)
    return Target(text, "")


def functions(text: str, library: str = "gradfn") -> list[Any]:
    """The Functions that a target names, in the order in which they stand.

    Raises FileNotFoundError or ImportError if the module is not there, LookupError if it
    has no such Function, or none at all, and whatever the module itself raises.
    """
    target = parse(text)
    module = (
        load_file(target.module, library) if target.is_file else _import(target.module)
    )
    base = importlib.import_module(library).autograd.Function
    if target.name:
        return [_named(module, target, base)]
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and "forward" in {name for c in value.__mro__[:-1] for name in vars(c)}
    ]
    if not found:
        raise LookupError(
            f"{target.module} defines no Function of {library}{_hint(module)}"
        )
    return list(dict.fromkeys(found))


def _named(module: ModuleType, target: Target, base: Any) -> Any:
    value: Any = module
    for part in target.name.replace("::", ".").split("."):
        value = getattr(value, part, None)
    if value is None:
        raise LookupError(f"{target.module} has no {target.name}")
    if not (inspect.isclass(value) and issubclass(value, base)):
        library = base.__module__.partition(".")[0]
        raise LookupError(f"{target.name} is no Function of {library}{_hint(module)}")
    return value


def _hint(module: ModuleType) -> str:
    """Of which library the module's Functions are, if not of the right one."""
    for name in OTHER:
        other = getattr(
            getattr(sys.modules.get(name), "autograd", None), "Function", None
        )
        for value in vars(module).values():
            if (
                other
                and inspect.isclass(value)
                and issubclass(value, other)
                and value != other
            ):
                return f" ({value.__name__} is one of {name}; name its file instead)"
    return ""


def _import(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` does
    return importlib.import_module(name)


# -- files -----------------------------------------------------------------------------


def load_file(path: str, library: str) -> ModuleType:
    """The module in a file, on one of the libraries; its folder is on the path meanwhile."""
    place = Path(path).resolve()
    if not place.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    tree = ast.parse(place.read_text(encoding="utf-8"), str(place))
    tree = ast.fix_missing_locations(_Renamed(OTHER[library], library).visit(tree))
    name = f"{place.stem}_on_{library}"
    module = ModuleType(name, ast.get_docstring(tree))
    module.__file__ = str(place)
    sys.modules[name] = module  # dataclasses, pickle and inspect look there
    sys.path.insert(0, str(place.parent))
    try:
        exec(compile(tree, str(place), "exec", dont_inherit=True), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(place.parent))
    return module


class _Renamed(ast.NodeTransformer):
    """Import statements with one package in the place of another."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def _name(self, name: str) -> str:
        first, dot, rest = name.partition(".")
        return f"{self.new}{dot}{rest}" if first == self.old else name

    def visit_Import(self, node: ast.Import) -> Any:
        """`import torch` binds the name torch; so does `import gradfn as torch`."""
        made: list[ast.stmt] = []
        for alias in node.names:
            name = self._name(alias.name)
            if name == alias.name or alias.asname:
                made.append(ast.Import([ast.alias(name, alias.asname)]))
                continue
            made.append(ast.Import([ast.alias(self.new, self.old)]))
            if "." in name:  # its submodule is loaded, too
                made.append(ast.Import([ast.alias(name, f"_{name.replace('.', '_')}")]))
        return [ast.copy_location(statement, node) for statement in made]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """`from torch.autograd import Function`."""
        if node.module and not node.level:
            node.module = self._name(node.module)
        return node
