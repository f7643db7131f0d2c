"""Padding: more places around the last dims."""

from __future__ import annotations

from typing import Any

from gradfn.nn import functional as F
from gradfn.nn.modules.module import Module
from gradfn.nn.modules.utils import _ntuple

_MODES = {
    "Constant": "constant",
    "Reflection": "reflect",
    "Replication": "replicate",
    "Circular": "circular",
    "Zero": "constant",
}
__all__ = [f"{kind}Pad{n}d" for kind in _MODES for n in (1, 2, 3)]


class _Pad(Module):
    """What all paddings share: `padding` has two numbers a dim, the last dim first."""

    _mode = "constant"
    _n = 1
    value: Any = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._n)(padding)

    def forward(self, input: Any) -> Any:
        """`nn.functional.pad` of the input."""
        if self._mode == "circular" and input.dim() not in (self._n + 1, self._n + 2):
            raise ValueError(
                f"expected {self._n + 1}D or {self._n + 2}D input (got {input.dim()}D input)"
            )
        return F.pad(input, self.padding, self._mode, self.value)

    def extra_repr(self) -> str:
        """The paddings."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """Padding with a value."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """The paddings and the value."""
        return f"padding={self.padding}, value={self.value}"


for _kind, _mode in _MODES.items():
    for _n in (1, 2, 3):
        _body: dict[str, Any] = {
            "_mode": _mode,
            "_n": _n,
            "__module__": __name__,
            "__doc__": f"Padding of the last {_n} dims: {_kind.lower()}.",
        }
        if _kind == "Zero":
            _body["value"] = 0.0
        _base = _ConstantPad if _kind == "Constant" else _Pad
        globals()[f"{_kind}Pad{_n}d"] = type(f"{_kind}Pad{_n}d", (_base,), _body)
