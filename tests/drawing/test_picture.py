"""What is drawn, with Graphviz and without, and what is written to files."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from support import Run, function, leaf

import gradfn as torch
from gradfn.drawing import Picture, draw, layout, record
from gradfn.drawing.dot import colour
from gradfn.drawing.facts import amount, span, strength

needs_dot = pytest.mark.skipif(
    not shutil.which("dot"), reason="Graphviz is not installed"
)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=["dot", "plain"])
def layouter(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the two ways to lay a graph out."""
    if request.param == "plain":
        monkeypatch.setattr(layout, "has_dot", lambda: False)
    elif not shutil.which("dot"):
        pytest.skip("Graphviz is not installed")
    return str(request.param)


def picture(steps: int = 5, **options: Any) -> Picture:
    Square = function(lambda ctx, x: x * x, lambda ctx, g: g)
    w = leaf(0.5, 0.5)
    with record():
        y = w
        for _ in range(steps):
            y = Square.apply(y) * w
        y.sum().backward()
    return draw(y, **options)


def classes(svg: str) -> dict[str, str]:
    """{id: class} of the vertices and edges in a drawing."""
    root = ET.fromstring(svg)
    groups = {g.get("id", ""): g.get("class", "") for g in root.iter(f"{SVG}g")}
    return {key: kind for key, kind in groups.items() if key[:1] in "ve" and key}


# -- the drawing ---------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("fold", [True, False])
def test_each_vertex_and_edge_is_in_the_drawing(
    layouter: str, direction: Any, fold: bool
) -> None:
    drawn = picture(direction=direction, fold=fold, saved=True)
    found = classes(drawn.svg())
    for key, v in drawn.graph.vertices.items():
        assert found[f"v{key}"].split() == ["node", v.kind]
    for number in range(len(drawn.graph.links)):
        assert found[f"e{number}"] == "edge"


def test_labels_are_escaped(layouter: str) -> None:
    x = leaf()
    svg = draw(x * 2, params={'<&"weight>': x}).svg()
    assert '<&"weight>' in "".join(ET.fromstring(svg).itertext())


def test_what_is_not_connected_is_drawn_side_by_side(layouter: str) -> None:
    a, b = leaf(), leaf()
    found = classes(draw((a.sin(), b.cos())).svg())
    assert len([key for key in found if key.startswith("v")]) == 6


def test_a_large_drawing_without_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "has_dot", lambda: False)
    x = leaf()
    for i in range(60):
        x = (x * i).sin() if i % 7 else x.exp() + x
    ET.fromstring(draw(x, fold=False).svg())


@needs_dot
def test_arrows_follow_the_values_or_the_gradients() -> None:
    x = leaf()
    y = x * 2
    text = draw(y).dot()
    assert "v0 -> v1" in text
    assert "v1 -> v0" in draw(y, direction="backward").dot()


def test_another_direction_is_refused() -> None:
    with pytest.raises(ValueError, match="direction must be"):
        draw(leaf() * 2, direction="up")  # type: ignore[arg-type]


def test_vanished_gradients_are_blue_and_exploded_ones_red() -> None:
    usual = colour(0.0)
    assert colour(None) == usual
    assert colour(strength(1e-9, 1.0)) == "#2166ac"
    assert colour(strength(0.0, 1.0)) == "#2166ac"
    assert colour(strength(1e9, 1.0)) == "#b2182b"
    assert strength(1.0, 1.0) == 0


def test_edges_have_the_colour_of_their_gradient() -> None:
    x = leaf(1.0)
    with record():
        (x * 1e-20).sum().backward()
        y = (x * 1e-20).sum()
        y.backward()
    assert 'color="#2166ac"' in draw(y).dot()


def test_custom_functions_and_trouble_stand_out_in_dot() -> None:
    x = leaf(0.0)
    with record():
        y = x.sqrt().sum()
        y.backward()
    assert "NaN or inf arises here in backward" in draw(y).dot()
    assert "#ffe3a8" in picture().dot()


def test_numbers_as_people_write_them() -> None:
    assert [amount(n) for n in (0, 999, 1000, 123_456, 2_500_000_000)] == [
        "0 B",
        "999 B",
        "1 kB",
        "123 kB",
        "2.5 GB",
    ]
    assert span([1.0]) == span([1.0, 1.0]) == "1"
    assert span([1.0, 0.5]) == "1 … 0.5"
    assert span([1.0, 4.0, 0.5]) == "1 … 0.5 (between 0.5 and 4)"


# -- Mermaid -------------------------------------------------------------------------------


def test_mermaid_has_each_vertex_and_edge() -> None:
    drawn = picture(steps=5)
    text = drawn.mermaid()
    assert text.startswith("flowchart TB\n")
    for key in drawn.graph.vertices:
        assert text.count(f"    v{key}[") + text.count(f"    v{key}(") == 1
    assert text.count(" --> ") + text.count(" -.-> ") == len(drawn.graph.links)
    assert 'subgraph b0 ["repeated ×5"]' in text
    assert text.count("subgraph") == text.count("    end\n") == 1


def test_mermaid_labels_are_escaped() -> None:
    x = leaf()
    assert "#lt;w#gt; #amp; #quot;" in draw(x * 2, params={'<w> & "': x}).mermaid()


# -- files and notebooks -------------------------------------------------------------------


@needs_dot
@pytest.mark.parametrize(
    ("ending", "start"),
    [
        (".svg", b"<svg"),
        (".png", b"\x89PNG"),
        (".pdf", b"%PDF"),
        (".dot", b"digraph"),
        (".html", b"<!doctype html>"),
        (".mmd", b"flowchart"),
        (".md", b"```mermaid"),
    ],
)
def test_files(tmp_path: Path, ending: str, start: bytes) -> None:
    path = picture().save(tmp_path / f"graph{ending}")
    assert path.read_bytes().startswith(start)


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'graph.gif'.*\.svg"):
        picture().save(tmp_path / "graph.gif")


def test_without_graphviz_svg_and_html_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "has_dot", lambda: False)
    drawn = picture()
    for ending in ("svg", "html", "mmd", "dot"):
        drawn.save(tmp_path / f"graph.{ending}")
    with pytest.raises(RuntimeError, match=r"\.png needs Graphviz's program dot"):
        drawn.save(tmp_path / "graph.png")


def test_a_notebook_shows_the_drawing() -> None:
    drawn = picture()
    assert drawn._repr_svg_().startswith("<svg")
    assert drawn._repr_svg_() in drawn._repr_html_()
    assert repr(drawn).startswith("<Picture: 10 recorded operations, drawn as")


def test_a_missing_library_is_named_with_its_extra(python: Run) -> None:
    code = (
        "import sys; sys.modules['graphviz'] = None\n"
        "import gradfn\n"
        "gradfn.draw(gradfn.ones(2, requires_grad=True) * 2).dot()\n"
    )
    ran = python("-c", code)
    assert "drawing graphs needs graphviz" in ran.stderr
    assert "pip install 'gradfn[draw]'" in ran.stderr


def test_drawing_loads_late(python: Run) -> None:
    code = (
        "import sys, gradfn\n"
        "print('gradfn.drawing' in sys.modules, 'graphviz' in sys.modules)"
    )
    assert python("-c", code).stdout == "False False\n"
    assert torch.draw is draw
