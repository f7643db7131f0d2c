"""Every program in the two READMEs runs and prints what stands below it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import Run

ROOT = Path(__file__).parents[1]
LANGUAGES = ["README.md", "README.ru.md"]
PROGRAM = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LANGUAGES)
def test_programs_print_what_is_shown(name: str, python: Run) -> None:
    programs = PROGRAM.findall(read(name))
    assert len(programs) == read(name).count("```python") > 0
    for source, shown in programs:
        ran = python("-c", source)
        assert (ran.stdout, ran.stderr) == (shown, "")


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_output_of_the_first_command_is_shown(name: str) -> None:
    assert (ROOT / "examples" / "square.out").read_text("utf-8") in read(name)


@pytest.mark.parametrize("name", [*LANGUAGES, "CONTRIBUTING.md"])
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", read(name)):
        assert (ROOT / target).exists(), target


def test_both_languages_show_the_same_programs_and_examples() -> None:
    english, russian = map(read, LANGUAGES)
    assert PROGRAM.findall(english) == PROGRAM.findall(russian)
    example = re.compile(r"\(examples/\w+\.py\)")
    assert example.findall(english) == example.findall(russian)
