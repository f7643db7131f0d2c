"""`gradfn check` finds and names every planted fault, and accuses none of the right ones."""

from __future__ import annotations

import pytest
from check_corpus import FAULTY, RIGHT, assert_acquitted, assert_named, members


@pytest.mark.parametrize(("file", "name"), members(FAULTY))
def test_a_fault_is_found_and_named(file: str, name: str) -> None:
    assert_named(file, name, "gradfn")


@pytest.mark.parametrize(("file", "name"), members(RIGHT))
def test_what_is_right_is_not_accused(file: str, name: str) -> None:
    assert_acquitted(file, name, "gradfn")


def test_the_corpus_is_large_enough() -> None:
    assert len(members(FAULTY)) >= 70
    assert len(members(RIGHT)) >= 60
