"""Lists of what gradfn has, for the pages of the reference: a hook of mkdocs.

On a page a line `!!! functions gradfn.linalg` alone becomes a list of the functions of that
module with their docstrings; `classes` lists classes, `members` a class's own properties and
methods that are not functions of gradfn as well.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

LIST = re.compile(r"^!!! (functions|classes|members) ([\w.]+)$", re.MULTILINE)
WRITTEN = re.compile(r"(\w+\(.*\))\n\n(.*)", re.DOTALL)  # rows say how they are called
IN_PLACE = re.compile(r"`Tensor\.\w+_` as a function\.")
WRITES = re.compile(r"`\w+`(, written into the tensor itself; returns it| in place)\.")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    return LIST.sub(lambda m: "\n".join(listed(m[1], m[2])), markdown)


def listed(kind: str, path: str) -> Iterator[str]:
    """Markdown: the entries of a module or class, those of several names once."""
    entries: dict[Any, list[str]] = {}
    writers = []
    for name, value in things(kind, path):
        if WRITES.fullmatch(document(value)):
            writers.append(f'<a id="{path}.{name}"></a>`{name}`')
            continue
        entries.setdefault(value, []).append(name)
    for value, names in entries.items():
        call, text = described(names[0], value)
        others = f" Also called {', '.join(f'`{n}`' for n in names[1:])}." * bool(
            names[1:]
        )
        anchor = "".join(f'<a id="{path}.{name}"></a>' for name in names)
        yield f"{anchor}`{call}`\n:   {indented(text + others)}\n"
    if writers:
        yield f"As without `_`, written into the tensor itself: {', '.join(writers)}."


def things(kind: str, path: str) -> Iterator[tuple[str, Any]]:
    """What is to be listed: names and values, sorted."""
    if kind == "members":
        owner = found(path)
        functions = importlib.import_module(owner.__module__.partition(".")[0]).__all__
        for name in sorted(dir(owner)):
            value = inspect.getattr_static(owner, name)
            if not name.startswith("_") and name not in functions and document(value):
                yield name, value
        return
    module = importlib.import_module(path)
    for name in sorted(getattr(module, "__all__", dir(module)), key=str.lower):
        value = getattr(module, name)
        wanted = isinstance(value, type) if kind == "classes" else is_function(value)
        if wanted and not name.startswith("_"):
            yield name, value


def is_function(value: Any) -> bool:
    """A function to be listed; not one that only writes in place for a method."""
    plain = callable(value) and not isinstance(value, type)
    return plain and not IN_PLACE.fullmatch(document(value))


def found(path: str) -> Any:
    """The thing at a dotted path."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def document(value: Any) -> str:
    """The docstring without indentation."""
    if isinstance(value, type) and "__doc__" not in vars(value):
        return ""
    return inspect.cleandoc(getattr(value, "__doc__", None) or "")


def described(name: str, value: Any) -> tuple[str, str]:
    """How it is called, and its docstring."""
    text = document(value)
    written = WRITTEN.fullmatch(text)
    if written:
        return name + written[1][written[1].index("(") :], written[2]
    if isinstance(value, property) or not callable(value):
        return name, text
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return name, text
    if [p.kind for p in parameters] == [
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    ]:
        return name, text  # it hides what it takes
    shown = [p.replace(annotation=p.empty) for p in parameters if p.name != "more"]
    return f"{name}{inspect.Signature(shown)}", text


def indented(text: str) -> str:
    """Text as the body of a list's entry."""
    return text.replace("\n", "\n    ")
