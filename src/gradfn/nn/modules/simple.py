"""Modules that are one call of nn.functional with its settings kept.

Note [Simple modules]
    `simple(name, function, settings)` makes the class: `settings` names the arguments of
    its __init__ with their defaults (REQUIRED if there is none), which become attributes
    and are given on to `nn.functional.<function>`. `shown` is what extra_repr says:
    names of settings, or a format string over the module's attributes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gradfn.nn import functional as F
from gradfn.nn.modules.module import Module

REQUIRED = inspect.Parameter.empty


def signature(settings: dict[str, Any], keywords: Any = ()) -> inspect.Signature:
    """The signature of an __init__ with these settings; those in `keywords` by name."""
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    params = []
    for name, default in settings.items():
        kind = (
            inspect.Parameter.KEYWORD_ONLY
            if name in keywords
            else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        params.append(inspect.Parameter(name, kind, default=default))
    return inspect.Signature([me, *params])


def extra_repr(self: Any) -> str:
    """The settings."""
    shown = self._shown
    if isinstance(shown, str):
        return shown.format(self=self)
    pairs = ((name, getattr(self, name)) for name in shown)
    return ", ".join(f"{k}={v}" for k, v in pairs if k != "inplace" or v)


def simple(
    name: str,
    function: str,
    settings: dict[str, Any],
    *,
    shown: Any = None,
    passed: Any = None,
    training: bool = False,
    keywords: Any = (),
    base: type[Module] = Module,
    finish: Callable[[Any], None] | None = None,
) -> type[Module]:
    """The class, see Note [Simple modules].

    `passed`: the settings that the function takes, if not all; `training`: it takes the
    mode, too; `finish`: completes a new module.
    """
    form = signature(settings, keywords)
    given_on = tuple(settings) if passed is None else tuple(passed)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        base.__init__(self)
        try:
            bound = form.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}.__init__() {error}") from None
        bound.apply_defaults()
        for key in settings:
            setattr(self, key, bound.arguments[key])
        if finish is not None:
            finish(self)

    def forward(self: Any, *inputs: Any) -> Any:
        options = {key: getattr(self, key) for key in given_on}
        if training:
            options["training"] = self.training
        return getattr(F, function)(*inputs, **options)

    __init__.__signature__ = form  # type: ignore[attr-defined]
    body = {
        "__init__": __init__,
        "forward": forward,
        "extra_repr": extra_repr,
        "_shown": given_on if shown is None else shown,
        "_function": function,
        "__module__": inspect.currentframe().f_back.f_globals["__name__"],  # type: ignore[union-attr]
        "__doc__": f"`nn.functional.{function}` of the input.",
    }
    return type(name, (base,), body)
