"""The reference has everything that is public, and something to say about it."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import gradfn

DOCS = Path(__file__).parents[2] / "docs"


def _tables() -> Any:
    spec = importlib.util.spec_from_file_location("tables", DOCS / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES = _tables()
PAGES = {p: p.read_text(encoding="utf-8") for p in (DOCS / "reference").glob("*.md")}
LISTS = [m for text in PAGES.values() for m in TABLES.LIST.findall(text)]


@pytest.mark.parametrize(("kind", "path"), LISTS)
def test_what_is_listed_is_described(kind: str, path: str) -> None:
    listed = list(TABLES.things(kind, path))
    assert len(listed) > 1
    assert [name for name, value in listed if len(TABLES.document(value)) < 8] == []


def test_every_public_function_is_on_a_page() -> None:
    text = "\n".join("\n".join(TABLES.listed(*entry)) for entry in LISTS)
    for name in gradfn.__all__:
        value = getattr(gradfn, name)
        if TABLES.is_function(value) and inspect.isfunction(value):
            assert f'<a id="gradfn.{name}"></a>' in text, name


def test_names_of_the_reference_exist() -> None:
    for text in PAGES.values():
        for path in re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE):
            try:
                importlib.import_module(path)
            except ImportError:
                assert inspect.getdoc(TABLES.found(path)), path


@pytest.mark.parametrize("name", ["mul", "linalg.cross", "special.zeta"])
def test_help_shows_how_an_op_is_called(name: str) -> None:
    value: Any = gradfn
    for part in name.split("."):
        value = getattr(value, part)
    first = inspect.getdoc(value)
    assert first is not None
    assert TABLES.described(name, value)[0].count("(") == 1


def test_a_list_names_each_thing_once() -> None:
    text = "".join(TABLES.listed("functions", "gradfn"))
    assert text.count("`mul(self, other)`") == 1
    assert "Also called `multiply`." in text
    members = "".join(TABLES.listed("members", "gradfn.Tensor"))
    assert "`backward(self, gradient=None" in members
    assert "`mul_`" in members
