"""Activations as modules: the functions of nn.functional with their settings kept."""

from __future__ import annotations

from typing import Any

from gradfn.nn import functional as F
from gradfn.nn.modules.module import Module
from gradfn.nn.parameter import Parameter
from gradfn.ops.world import PUBLIC

# class name: (function, its settings with defaults)
_TABLE: dict[str, tuple[str, dict[str, Any]]] = {
    "ReLU": ("relu", {"inplace": False}),
    "ReLU6": ("relu6", {"inplace": False}),
    "Sigmoid": ("sigmoid", {}),
    "Tanh": ("tanh", {}),
    "LeakyReLU": ("leaky_relu", {"negative_slope": 0.01, "inplace": False}),
    "ELU": ("elu", {"alpha": 1.0, "inplace": False}),
    "SELU": ("selu", {"inplace": False}),
    "CELU": ("celu", {"alpha": 1.0, "inplace": False}),
    "GELU": ("gelu", {"approximate": "none"}),
    "SiLU": ("silu", {"inplace": False}),
    "Mish": ("mish", {"inplace": False}),
    "Softplus": ("softplus", {"beta": 1.0, "threshold": 20.0}),
    "Softsign": ("softsign", {}),
    "Softshrink": ("softshrink", {"lambd": 0.5}),
    "Hardshrink": ("hardshrink", {"lambd": 0.5}),
    "Tanhshrink": ("tanhshrink", {}),
    "Hardtanh": ("hardtanh", {"min_val": -1.0, "max_val": 1.0, "inplace": False}),
    "Hardsigmoid": ("hardsigmoid", {"inplace": False}),
    "Hardswish": ("hardswish", {"inplace": False}),
    "LogSigmoid": ("logsigmoid", {}),
    "GLU": ("glu", {"dim": -1}),
    "Softmax": ("softmax", {"dim": None}),
    "Softmin": ("softmin", {"dim": None}),
    "LogSoftmax": ("log_softmax", {"dim": None}),
    "Dropout": ("dropout", {"p": 0.5, "inplace": False}),
}
__all__ = [*_TABLE, "PReLU", "Threshold"]


def _module(name: str, function: str, settings: dict[str, Any]) -> type[Module]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        given = {**settings, **dict(zip(settings, args)), **kwargs}
        for key in given:
            if key not in settings:
                raise TypeError(
                    f"{name}.__init__() got an unexpected keyword argument '{key}'"
                )
        for key, value in given.items():
            setattr(self, key, value)

    def forward(self: Any, input: Any) -> Any:
        options = {key: getattr(self, key) for key in settings}
        if name == "Dropout":
            options["training"] = self.training
        return getattr(F, function)(input, **options)

    def extra_repr(self: Any) -> str:
        shown = [(k, getattr(self, k)) for k in settings]
        return ", ".join(
            f"{k}={v!r}" for k, v in shown if k != "inplace" or v or name == "Dropout"
        )

    body = {"__init__": __init__, "forward": forward, "extra_repr": extra_repr}
    made = type(name, (Module,), body)
    made.__module__ = __name__
    made.__doc__ = f"`nn.functional.{function}` of the input."
    return made


for _name, (_function, _settings) in _TABLE.items():
    globals()[_name] = _module(_name, _function, _settings)


class PReLU(Module):
    """leaky_relu with slopes that are learned."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, **_: Any) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(PUBLIC["full"]((num_parameters,), init))

    def forward(self, input: Any) -> Any:
        """The input, scaled where it is negative."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"


class Threshold(Module):
    """The input where above a threshold, else a value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Any) -> Any:
        """`nn.functional.threshold` of the input."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return f"threshold={self.threshold}, value={self.value}"
