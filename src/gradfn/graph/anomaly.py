"""Anomaly mode: where in the program was the node made that fails in backward?"""

from __future__ import annotations

import traceback
import warnings
from contextvars import ContextVar
from typing import Any

import numpy as np

from gradfn.graph.batched import all_values
from gradfn.graph.node import Node, Parts, node_extra
from gradfn.tensor import Tensor

# (look for NaN?, look for infinities?) while the mode's ANOMALY bit is set
CHECKS: ContextVar[tuple[bool, bool]] = ContextVar(
    "anomaly_checks", default=(True, False)
)
RUNNING: ContextVar[Node | None] = ContextVar("anomaly_running", default=None)


def remember(node: Node) -> None:
    """Notes the place in the program, and the node in whose backward this one is made."""
    extra = node_extra(node)
    extra.trace = [line for line in traceback.format_stack() if not _is_ours(line)]
    extra.parent = RUNNING.get()


def _is_ours(line: str) -> bool:
    return "<gradfn" in line or "gradfn/ops/" in line or "gradfn/graph/" in line


def watched(node: Any, g: Any, needs: int, apply: Any) -> Any:
    """Runs `apply(node, g, needs)`; an error, or a NaN made, tells where it came from."""
    token = RUNNING.set(node)
    try:
        grads = apply(node, g, needs)
        check(node, grads)
    except Exception as error:
        explain(node, error)
        raise
    finally:
        RUNNING.reset(token)
    return grads


def check(node: Any, grads: Any) -> None:
    """RuntimeError if a gradient that the node returned has NaN (or inf, if asked)."""
    nan, inf = CHECKS.get()
    for i, grad in enumerate(grads if isinstance(grads, (list, tuple)) else [grads]):
        if grad is None or type(grad) is Parts:
            continue
        array = all_values(grad) if isinstance(grad, Tensor) else np.asarray(grad)
        if array.dtype.kind not in "fc":
            continue
        if nan and np.isnan(array).any():
            raise RuntimeError(
                f"Function '{node._name()}' returned nan values in its {i}th output."
            )
        if inf and np.isinf(array).any():
            raise RuntimeError(
                f"Function '{node._name()}' returned inf values in its {i}th output."
            )


def explain(node: Any, error: Exception) -> None:
    """Adds the forward traceback to the error, and warns with it as PyTorch does."""
    if getattr(error, "_gradfn_explained", False):
        return
    told = story(node)
    if told:
        error.add_note(told)
        error._gradfn_explained = True  # type: ignore[attr-defined]
        warnings.warn(told, UserWarning, stacklevel=2)


def story(node: Any) -> str:
    """Where the node was made, then in whose backward, if in one."""
    parts: list[str] = []
    while node is not None and node._extra is not None and node._extra.trace:
        head = (
            f"Error detected in {node._name()}. Traceback of forward call that caused the "
            "error:\n"
            if not parts
            else f"\nPrevious calculation was induced by {node._name()}. Traceback of "
            "forward call that induced the previous calculation:\n"
        )
        parts.append(head + "".join(node._extra.trace))
        node = node._extra.parent
    return "".join(parts)
