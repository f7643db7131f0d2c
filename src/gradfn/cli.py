"""The command line: ``python -m gradfn``, also installed as ``gradfn``.

``gradfn run`` is to a program what ``python`` is, with gradfn as ``torch``: it sees
its own ``sys.argv``, ``sys.path[0]`` and ``__main__``, its tracebacks show its own
frames, and its exit status is the interpreter's. So the arguments after the program
are never looked at, and an uncaught exception is left to the interpreter to report.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import io
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import BuiltinImporter, ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType, TracebackType

from gradfn import compat

__all__ = ["main"]

_USAGE = """\
usage: gradfn run PROGRAM.py [ARGUMENT ...]
       gradfn run -m MODULE [ARGUMENT ...]
       gradfn run -c CODE [ARGUMENT ...]
       gradfn run - [ARGUMENT ...]

       gradfn check [OPTIONS] PATH.py[::NAME] | MODULE[:NAME] ...
       gradfn profile [OPTIONS] PROGRAM.py [ARGUMENT ...]
       gradfn show [OPTIONS] PROGRAM.py [ARGUMENT ...]

run: run a program written for PyTorch, with gradfn standing in as `torch`.
Everything after the program is the program's own. `-` reads it from
standard input.
check: audit custom Functions: are their derivatives right, and if not, why not?
profile: run it, then tell where time and memory went.
show: run it, then draw the graph of its last backward pass.

options:
  -h, --help     show this text
  -V, --version  show the versions of gradfn, Python and NumPy

`python -m gradfn` is the same command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command line (default: the process's own); return the exit status."""
    match list(sys.argv[1:] if arguments is None else arguments):
        case [] | ["-h" | "--help", *_]:
            print(_USAGE, end="")
            return 0
        case ["-V" | "--version", *_]:
            print(_versions())
            return 0
        case ["run", *rest]:
            return _run(rest)
        case ["check" | "profile" | "show" as tool, *rest]:
            return _use(tool, rest)
        case [other, *_]:
            return _refuse(f"gradfn: no command {other!r}; try `gradfn --help`")
    raise AssertionError("every list matches")


def _versions() -> str:
    import numpy as np

    import gradfn

    python = sys.version.partition(" ")[0]
    return f"gradfn {gradfn.__version__} (Python {python}, NumPy {np.__version__})"


def _refuse(message: str, status: int = 2) -> int:
    print(message, file=sys.stderr)
    return status


# --- the tools ----------------------------------------------------------------------

# command: the module with its click.Command, which gives what is to be done
_TOOLS = {
    "check": "gradfn.check.command",
    "profile": "gradfn.profiler.command",
    "show": "gradfn.drawing.command",
}


def _use(tool: str, arguments: list[str]) -> int:
    """Carry out a tool's command. What it does to a program runs outside of click."""
    try:
        module = importlib.import_module(_TOOLS[tool])
        import click
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        if name not in ("click", "rich"):
            raise
        return _refuse(
            f"gradfn {tool} needs {name}, which is not installed: "
            "pip install 'gradfn[cli]'"
        )
    command = getattr(module, tool)
    try:
        done = command.main(arguments, f"gradfn {tool}", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return int(done(_run) if callable(done) else done or 0)


# --- gradfn run ---------------------------------------------------------------------

# A program's code, and what its __main__ knows of itself.
_Loaded = tuple[CodeType, dict[str, object]]


class _CannotStartError(Exception):
    """The program cannot be read. Holds the exit status that Python has for it."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _run(arguments: list[str]) -> int:
    match arguments:
        case ["-h" | "--help", *_]:
            print(_USAGE, end="")
            return 0
        case ["-m", name, *rest]:
            return _execute(partial(_load_module, name), "-m", rest, os.getcwd())
        case ["-c", source, *rest]:
            return _execute(partial(_load_text, source, "<string>"), "-c", rest, "")
        case ["-", *rest]:
            return _execute(_load_standard_input, "-", rest, "")
        case [path, *rest] if not path.startswith("-"):
            folder = os.path.dirname(os.path.realpath(path))
            return _execute(partial(_load_file, path), path, rest, folder)
    return _refuse("gradfn run: which program? Try `gradfn run --help`")


def _execute(
    load: Callable[[], _Loaded], name: str, arguments: list[str], folder: str
) -> int:
    """Run what ``load`` gives as the program ``name``, which lies in ``folder``."""
    sys.argv[:] = [name, *arguments]
    _set_path(folder)
    try:
        compat.install()
        code, facts = load()
        exec(code, vars(_new_main(facts)))
    except _CannotStartError as error:
        return _refuse(f"gradfn run: {error}", error.status)
    except SystemExit:
        raise
    except BaseException as error:
        _show_only_the_programs_frames(error)
        raise
    return 0


def _set_path(folder: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = folder  # it was the folder of the command
    # After the program's folder, ahead of any PyTorch in site-packages.
    spawn = os.path.join(os.path.dirname(__file__), "_spawn")
    sys.path.insert(0 if sys.flags.safe_path else 1, spawn)


def _new_main(facts: dict[str, object]) -> ModuleType:
    """The program's ``__main__``, as pickle and multiprocessing will look for it."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    vars(main).update(__builtins__=builtins, **facts)
    return main


def _load_file(path: str) -> _Loaded:
    place = os.path.abspath(path)
    try:
        with io.open_code(place) as file:
            source = file.read()
    except OSError as error:
        message = f"can't open file {place!r}: [Errno {error.errno}] {error.strerror}"
        raise _CannotStartError(message, 2) from None
    return _compile(source, place), {
        "__file__": place,
        "__cached__": None,
        "__loader__": SourceFileLoader("__main__", place),
    }


def _load_standard_input() -> _Loaded:
    return _load_text(sys.stdin.buffer.read(), "<stdin>")


def _load_text(source: str | bytes, filename: str) -> _Loaded:
    return _compile(source, filename), {"__loader__": BuiltinImporter}


def _load_module(name: str) -> _Loaded:
    spec = _find_module(name)
    if spec and spec.submodule_search_locations is not None:
        spec = _find_module(f"{name}.__main__")
    code = _code_of(spec) if spec else None
    if spec is None or code is None:
        raise _CannotStartError(f"No module named {name} that can be run", 1)
    sys.argv[0] = spec.origin or name
    return code, {
        "__file__": spec.origin,
        "__cached__": spec.cached,
        "__loader__": spec.loader,
        "__package__": spec.parent,
        "__spec__": spec,
    }


def _find_module(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # A parent that is missing, as against one that fails because it misses another.
        if error.name and f"{name}.".startswith(f"{error.name}."):
            return None
        raise


def _code_of(spec: ModuleSpec) -> CodeType | None:
    get_code: Callable[[str], CodeType | None] | None
    get_code = getattr(spec.loader, "get_code", None)
    return get_code(spec.name) if get_code else None


def _compile(source: str | bytes, filename: str) -> CodeType:
    return compile(source, filename, "exec", dont_inherit=True)


# --- tracebacks ---------------------------------------------------------------------


def _show_only_the_programs_frames(error: BaseException) -> None:
    """Have the interpreter report ``error`` without the frames of this command.

    Raised again, it gathers those frames anew on its way out, so the hook that shows
    it (the program's, if it has set one) gets the traceback as it is now.
    """
    for link in _chain(error):
        link.__traceback__ = _own_frames(link.__traceback__)
    own, show = error.__traceback__, sys.excepthook

    def excepthook(
        kind: type[BaseException], error: BaseException, _: TracebackType | None
    ) -> None:
        show(kind, error.with_traceback(own), own)

    sys.excepthook = excepthook


def _chain(error: BaseException) -> list[BaseException]:
    """The error, its causes and contexts."""
    links: list[BaseException] = []
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link and id(link) not in seen:
            seen.add(id(link))
            links.append(link)
            waiting += [link.__cause__, link.__context__]
    return links


def _own_frames(traceback: TracebackType | None) -> TracebackType | None:
    frames = []
    while traceback:
        if not _is_machinery(traceback.tb_frame.f_code.co_filename):
            frames.append(traceback)
        traceback = traceback.tb_next
    following: TracebackType | None = None
    for frame in reversed(frames):
        frame.tb_next = following
        following = frame
    return following


_MACHINERY = {
    os.path.join(os.path.dirname(__file__), name)
    for name in ("__init__.py", "_names.py", "cli.py", "compat.py")
}


def _is_machinery(filename: str) -> bool:
    return filename in _MACHINERY or filename.startswith("<frozen importlib")
