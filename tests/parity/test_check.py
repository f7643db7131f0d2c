"""`gradfn check --with torch`: the corpus on PyTorch itself."""

from __future__ import annotations

import pytest
from check_corpus import FAULTY, RIGHT, assert_acquitted, assert_named, members


@pytest.mark.parametrize(("file", "name"), members(FAULTY))
def test_a_fault_is_found_and_named(file: str, name: str) -> None:
    assert_named(file, name, "torch")


@pytest.mark.parametrize(("file", "name"), members(RIGHT))
def test_what_is_right_is_not_accused(file: str, name: str) -> None:
    assert_acquitted(file, name, "torch")
