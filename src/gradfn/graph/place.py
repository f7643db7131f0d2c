"""Where in the user's program something happens."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_OURS = (str(Path(__file__).parents[1]) + os.sep, "<gradfn", "<frozen")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def place_now() -> Place | None:
    """The innermost line being run that is not gradfn's own."""
    return next(iter(places_now(1)), None)


def places_now(limit: int | None = None) -> list[Place]:
    """The lines being run that are not gradfn's own, the innermost first."""
    places: list[Place] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(places) != limit:
        code = frame.f_code
        if not code.co_filename.startswith(_OURS):
            places.append(Place(code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return places
