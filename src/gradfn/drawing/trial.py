"""A backward pass for its own sake: to see how large gradients are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradfn.drawing.recorder import Recorder, reached
from gradfn.graph import engine
from gradfn.graph.node import form_of
from gradfn.graph.observe import observed
from gradfn.tensor import wrap


def trial(roots: Sequence[Any]) -> None:
    """Sends ones back from `roots` and notes what comes of them; no .grad changes.

    RuntimeError if the graph has been released by a backward pass before.
    """
    leaves = reached(roots)[1]
    ones = [wrap(np.ones(*form_of(root))) for root in roots]
    with observed(Recorder()):
        engine.backward(roots, ones, True, False, dict.fromkeys(leaves), into_grad=False)
