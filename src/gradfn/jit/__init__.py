"""torch.jit: a compiler that gradfn has not. Functions and modules come back as they are.

What asks for compiled files (`save`, `load`) raises.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from gradfn.jit import _state as _state

__all__ = [
    "Final",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "load",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "trace",
    "unused",
    "wait",
]


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """The function, class or module itself, which Python runs."""
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function or module itself."""
    return func


def trace_module(mod: Any, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The module itself."""
    return mod


def _itself(fn: Any) -> Any:
    """The function itself."""
    return fn


unused = export = interface = script_if_tracing = _overload = _overload_method = _itself


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself; also used as `@ignore(drop=True)`."""
    return drop if callable(drop) else _itself


def freeze(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """The module itself, which must be in evaluation mode. RuntimeError if not."""
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call "
            ".eval() on your module before freezing."
        )
    return mod


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's isinstance, which also takes `List[int]` and the like."""
    import builtins
    from typing import get_args, get_origin

    origin = get_origin(target_type) or target_type
    args = get_args(target_type)
    if origin is dict and args and builtins.isinstance(obj, dict):
        return all(
            isinstance(k, args[0]) and isinstance(v, args[1]) for k, v in obj.items()
        )
    if origin is list and args and builtins.isinstance(obj, list):
        return all(isinstance(x, args[0]) for x in obj)
    return builtins.isinstance(obj, origin)


def is_scripting() -> bool:
    """False: Python runs."""
    return False


def is_tracing() -> bool:
    """False: Python runs."""
    return False


def fork(func: Any, *args: Any, **kwargs: Any) -> Any:
    """What `func` returns: it runs at once."""
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """What `fork` returned."""
    return future


class optimized_execution:
    """A context that changes nothing."""

    def __init__(self, should_optimize: bool) -> None:
        self.should_optimize = should_optimize

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def _no_files() -> NoReturn:
    raise NotImplementedError(
        "gradfn has no TorchScript, so it neither writes nor reads compiled modules. Keep "
        "the state with torch.save(module.state_dict(), path)."
    )


def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: there is no compiled module to be written."""
    _no_files()


def load(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError: compiled modules cannot be read."""
    _no_files()
