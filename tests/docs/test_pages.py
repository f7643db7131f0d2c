"""Every block of code on every page runs, and prints what stands below it.

On a page,
    ```python           runs; all blocks of a page share one namespace. The ```text block
                        that follows at once is what it prints; without one, it prints
                        nothing. A block that raises ends with the type and the message.
    ```python title="x.py"   is a file, for the page's other blocks.
    ```console          lines after `$ ` are commands, the others what they print.
    ```sh               commands that set something up: they are not run.
`…` in what is printed stands for anything: times, addresses. A page that needs other
packages than gradfn's own says so in its front matter, as `needs: scipy torch`.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import Run

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SETS_UP = re.compile(r"(python3? -m )?pip install |python3 dev\.py |#|$")

# Runs blocks of [place, source] from standard input; prints what each of them printed.
DRIVER = """
import ast, contextlib, io, json, linecache, sys, types
page = sys.modules["__main__"] = types.ModuleType("__main__")
printed = []
for place, source in json.load(sys.stdin):
    linecache.cache[place] = (len(source), None, source.splitlines(True), place)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(compile(source, place, "exec"), page.__dict__)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
    printed.append(out.getvalue())
print(json.dumps(printed))
"""


@dataclass
class Block:
    language: str
    title: str
    text: str
    place: str  # page and line
    shown: str = ""  # the text block that follows at once


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page; what is printed stands with the code before it."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found: list[Block] = []
    end = -1
    for match in FENCE.finditer(text):
        language, _, info = match[1].partition(" ")
        if language == "text" and found and text[end : match.start()].strip() == "":
            found[-1].shown = match[2]
        else:
            line = text.count("\n", 0, match.start()) + 1
            title = re.search(r'title="(.*?)"', info)
            place = f"{page}:{line}"
            found.append(Block(language, title[1] if title else "", match[2], place))
        end = match.end()
    return found


def needs(page: str) -> list[str]:
    head = re.match(r"---\n(.*?)\n---\n", (DOCS / page).read_text("utf-8"), re.DOTALL)
    line = re.search(r"^needs: (.*)$", head[1], re.MULTILINE) if head else None
    return line[1].split() if line else []


def same(printed: str, shown: str) -> bool:
    """Is this what was shown, `…` standing for anything?

    Where it does, columns may have another width: runs of spaces and lines count as one.
    """
    if "…" not in shown:
        return _trimmed(printed) == _trimmed(shown)
    printed, shown = (re.sub(r"([ ━─═])+", r"\1", _trimmed(t)) for t in (printed, shown))
    parts = [re.escape(part) for part in shown.split("…")]
    return re.fullmatch(".*?".join(parts), printed, re.DOTALL) is not None


def _trimmed(text: str) -> str:
    """Without spaces that end lines, nor empty lines at the end."""
    return re.sub(r" +$", "", text.rstrip(), flags=re.MULTILINE)


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it should print."""
    _, *parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    return [(c, shown) for c, _, shown in (part.partition("\n") for part in parts)]


def run_command(line: str, python: Run) -> str:
    """What a command of gradfn prints, on both of its streams."""
    words = shlex.split(line)
    if words[0] == "gradfn":
        words = ["python", "-m", *words]
    assert words[0] == "python", f"a command of another program: {line}"
    ran = python(*words[1:], COLUMNS="90", NO_COLOR="1", MPLBACKEND="agg")
    return ran.stdout + ran.stderr


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> str:
    """Each page that can be run here."""
    for package in needs(request.param):
        if not importlib.util.find_spec(package):
            pytest.skip(f"{package} is not installed")
    return str(request.param)


def test_code_prints_what_is_shown(page: str, python: Run, tmp_path: Path) -> None:
    found = blocks(page)
    for block in found:
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    code = [b for b in found if b.language == "python" and not b.title]
    if code:
        work = json.dumps([(b.place, b.text) for b in code])
        ran = python("-c", DRIVER, input=work)
        assert (ran.stderr, ran.returncode) == ("", 0)
        for block, printed in zip(code, json.loads(ran.stdout), strict=True):
            assert same(printed, block.shown), f"{block.place} printed\n{printed}"
    for block in found:
        for line, shown in commands(block) if block.language == "console" else []:
            printed = run_command(line, python)
            assert same(printed, shown), f"{block.place}: {line} printed\n{printed}"


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_of_a_known_kind(page: str) -> None:
    found = blocks(page)
    kinds = {"python", "console", "sh", "mermaid", "yaml", "toml", "text"}
    assert {b.language for b in found} <= kinds
    for block in found:
        others = "".join(b.text for b in found if b is not block)
        if block.title:  # a file serves something
            assert Path(block.title).stem in others, f"{block.place}: who uses it?"
        elif block.language == "sh":
            assert all(SETS_UP.match(line) for line in block.text.splitlines())


@pytest.mark.parametrize("page", [p for p in PAGES if p.startswith("ru")])
def test_russian_pages_show_the_same_code(page: str) -> None:
    """Block by block the same programs (comments apart) and the same output."""
    russian, english = blocks(page), blocks(str(Path(page).relative_to("ru")))

    def meaning(block: Block) -> tuple[str, ...]:
        text = block.text
        if block.language == "python":
            text = ast.dump(ast.parse(text))
        return block.language, block.title, text, block.shown

    assert [meaning(b) for b in russian] == [meaning(b) for b in english]
    assert len(russian) > 0


def test_every_page_is_in_the_menu() -> None:
    menu = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert sorted(re.findall(r"[\w/-]+\.md$", menu, re.MULTILINE)) == PAGES


@pytest.mark.parametrize(
    ("printed", "shown", "equal"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a \nb\n\n", "a\nb\n", True),
        ("a\nc\n", "a\nb\n", False),
        ("a  b\n", "a b\n", False),
        ("took 12 s, then 5\n", "took … s, then 5\n", True),
        ("took 12 s, then 6\n", "took … s, then 5\n", False),
        ("│ mm     │ 3.1ms │ 2\n", "│ mm │ … │ 2\n", True),
        ("│ mm     │ 3.1ms │ 3\n", "│ mm │ … │ 2\n", False),
        ("", "…\n", True),
        ("more than that", "more\n", False),
    ],
)
def test_what_counts_as_the_same(printed: str, shown: str, equal: bool) -> None:
    assert same(printed, shown) is equal
