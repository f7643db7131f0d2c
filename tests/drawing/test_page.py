"""The page of a drawn graph, opened in headless Chromium: it opens, zooms, and tells.

Left out where there is no Chromium; GRADFN_REQUIRE_BROWSER makes that an error.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import function, leaf

import gradfn as torch
from gradfn.drawing import Picture, draw, layout, record

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "chrome", "msedge"]
# What keeps a browser at home.
QUIET = ["--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def why_not() -> str:
    """Why no page can be opened here; empty if it can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return "" if any(map(shutil.which, BROWSERS)) else "there is no Chromium"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    if why_not():
        if os.environ.get("GRADFN_REQUIRE_BROWSER"):
            pytest.fail(f"GRADFN_REQUIRE_BROWSER is set, but {why_not()}")
        pytest.skip(why_not())
    from playwright.sync_api import sync_playwright

    found = next(path for path in map(shutil.which, BROWSERS) if path)
    arguments = [*QUIET, "--no-sandbox"] if os.name == "posix" else QUIET
    with sync_playwright() as tool:
        running = tool.chromium.launch(executable_path=found, args=arguments)
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[[Picture], Any]]:
    """Opens a picture's page; afterwards nothing may have been logged or fetched."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1200, "height": 800})

    def asked(request: Any) -> None:
        if not request.url.startswith(("file:", "data:")):
            complaints.append(f"fetched {request.url}")

    def open_page(picture: Picture) -> Any:
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", asked)
        page.goto(picture.save(tmp_path / "graph.html").as_uri())
        return page

    yield open_page
    context.close()
    assert complaints == []


@pytest.fixture(params=["dot", "plain"])
def layouter(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "plain":
        monkeypatch.setattr(layout, "has_dot", lambda: False)
    elif not layout.has_dot():
        pytest.skip("Graphviz is not installed")
    return str(request.param)


Twice = function(
    lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1], lambda ctx, g: g * 2
)


def network() -> Picture:
    """A loop and a custom Function; NaN or inf arises in sqrt."""
    weight = leaf(0.5, 0.5)
    with record():
        h = weight
        for _ in range(40):
            h = (h * weight).sin()
        loss = Twice.apply(h - h).sqrt().sum()
        loss.backward()
    return draw(loss, params={"weight": weight})


def view_box(page: Any) -> list[float]:
    text = page.locator("#stage > svg").get_attribute("viewBox")
    return [float(x) for x in text.split()]


def facts(page: Any) -> dict[str, str]:
    names = page.locator("#facts dt").all_inner_texts()
    return dict(zip(names, page.locator("#facts dd").all_inner_texts(), strict=True))


def click(page: Any, label: str) -> None:
    """Clicks on the vertex with this label."""
    page.locator(
        ".node", has=page.get_by_text(re.compile(rf"^{label}( ×\d+)?$"))
    ).first.click()


def test_it_opens_and_shows_each_vertex(open_page: Any, layouter: str) -> None:
    picture = network()
    page = open_page(picture)
    assert page.locator(".node").count() == len(picture.graph.vertices)
    assert page.locator(".edge").count() == len(picture.graph.links)
    assert "84 recorded operations" in page.locator("#summary").inner_text()
    assert not page.locator("#facts").is_visible()


def test_a_click_on_a_vertex_shows_its_facts(open_page: Any, layouter: str) -> None:
    page = open_page(network())
    click(page, "Mine")
    assert page.locator("#facts h1").inner_text() == "Mine"
    told = facts(page)
    assert told["kind"] == "custom Function"
    assert told["grad_fn"] == "MineBackward"
    assert (told["shape"], told["dtype"]) == ("[2]", "float32")
    assert re.search(r"test_page\.py:\d+, in network$", told["made at"])
    assert told["saves"] == "8 B"
    page.keyboard.press("Escape")
    assert not page.locator("#facts").is_visible()


def test_repetitions_show_the_curve_of_their_gradients(
    open_page: Any, layouter: str
) -> None:
    page = open_page(network())
    click(page, "sin")
    assert facts(page)["stands for"] == "40 alike"
    assert page.locator("#facts figure").is_visible()
    click(page, "sub")
    assert not page.locator("#facts figure").is_visible()


def test_trouble_is_told(open_page: Any, layouter: str) -> None:
    page = open_page(network())
    click(page, "sqrt")
    alarm = page.locator("#alarm")
    assert alarm.inner_text() == "NaN or inf arises here in backward"


def test_neighbours_can_be_followed(open_page: Any, layouter: str) -> None:
    page = open_page(network())
    click(page, "sqrt")
    page.locator("#facts nav button", has_text="Mine").click()
    assert page.locator("#facts h1").inner_text() == "Mine"
    assert page.locator(".node.chosen").count() == 1


def test_it_zooms_with_buttons_keys_and_wheel(open_page: Any, layouter: str) -> None:
    page = open_page(network())
    page.click("#fit")
    whole = view_box(page)
    page.click("#in")
    assert view_box(page)[2] == pytest.approx(whole[2] / 1.3)
    page.click("#out")
    assert view_box(page) == pytest.approx(whole)
    page.keyboard.press("+")
    assert view_box(page)[2] < whole[2]
    page.keyboard.press("0")
    assert view_box(page) == pytest.approx(whole)
    page.mouse.move(600, 400)
    page.mouse.wheel(0, -300)
    page.wait_for_function(
        "w => document.querySelector('#stage > svg').viewBox.baseVal.width < w",
        arg=whole[2],
    )


def test_the_point_under_the_mouse_stays_where_it_is(
    open_page: Any, layouter: str
) -> None:
    page = open_page(network())
    vertex = page.locator(".node").first
    before = vertex.bounding_box()
    at = before["x"] + before["width"] / 2, before["y"] + before["height"] / 2
    page.mouse.move(*at)
    page.mouse.wheel(0, -300)
    page.wait_for_function(
        "w => document.querySelector('.node').getBoundingClientRect().width > w",
        arg=before["width"] * 1.2,
    )
    after = vertex.bounding_box()
    now = after["x"] + after["width"] / 2, after["y"] + after["height"] / 2
    assert now == pytest.approx(at, abs=2)


def test_it_moves_with_the_mouse(open_page: Any, layouter: str) -> None:
    page = open_page(network())
    vertex = page.locator(".node").first
    before = vertex.bounding_box()
    page.mouse.move(100, 500)
    page.mouse.down()
    page.mouse.move(150, 530, steps=4)
    page.mouse.up()
    after = vertex.bounding_box()
    assert after["x"] - before["x"] == pytest.approx(50, abs=2)
    assert after["y"] - before["y"] == pytest.approx(30, abs=2)
    assert not page.locator("#facts").is_visible()


def test_vertices_are_found_by_what_is_known_of_them(
    open_page: Any, layouter: str
) -> None:
    page = open_page(network())
    page.fill("#search", "MineBackward")
    assert page.locator("#found").inner_text() == "1 found"
    page.press("#search", "Enter")
    assert page.locator("#facts h1").inner_text() == "Mine"
    page.fill("#search", "no such thing")
    assert page.locator("#found").inner_text() == "0 found"


def test_names_cannot_become_code(open_page: Any, layouter: str) -> None:
    x = leaf()
    name = "</script><script>document.title = 'taken'</script><b>bold</b>"
    page = open_page(draw(x * 2, params={name: x}))
    assert page.title() == "gradfn graph"
    page.locator(".node.leaf").click()
    assert page.locator("#facts h1").inner_text() == name


def test_ten_thousand_operations(open_page: Any, layouter: str) -> None:
    w = torch.eye(3, requires_grad=True)
    h = torch.ones(2, 3)
    for _ in range(3334):
        h = torch.tanh(h @ w + 1)
    page = open_page(draw(h))
    assert (
        "10002 recorded operations, drawn as 3" in page.locator("#summary").inner_text()
    )
    click(page, "tanh")
    assert facts(page)["stands for"] == "3334 alike"
