"""What drawing needs beyond NumPy, imported on first use."""

from __future__ import annotations

import importlib
from typing import Any


def load(name: str, extra: str = "draw") -> Any:
    """The module `name`; ImportError says which extra of gradfn installs it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise ImportError(
            f"drawing graphs needs {name}, which is not installed: "
            f"pip install 'gradfn[{extra}]'",
            name=name,
        ) from None
