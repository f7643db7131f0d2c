"""The text of a tensor, byte for byte as PyTorch writes it; and its options.

Everything here is a function of NumPy arrays: `tensor_repr` is told what it cannot see
(the node's name, the class, the default dtype), and knows no tensor.

Note [One format for all elements]
    The values that will be shown decide one format for the whole tensor, so that the
    columns line up. Only those that are finite and not zero have a say: if all of them
    are whole, they print as `3.`; in scientific notation if the largest is over 1000
    times the smallest or over 1e8, or the smallest under 1e-4; else with `precision`
    decimals. They also set the width, so `nan` and `-0.` may stick out of their column.
    A complex tensor has two formats, one for the real and one for the imaginary parts.

Note [Decisions are made in double precision]
    Values become Python floats before anything is compared or rounded. The float32
    nearest to 1e-4 lies below it and so prints as 1.0000e-04, and 0.00015 shows the
    digits of the float32 rather than those that were typed.

Note [Flat, then folded]
    The text is built from a flat list of cells, one an element, which is folded once an
    axis, the last first. Where an axis is cut short, the cells of its middle are left
    out before formatting, and an ellipsis is put into the middle of each fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, isfinite
from sys import maxsize
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

_FLOAT32: Final[DType] = np.dtype("float32")
_WHOLE: Final = "#.0f"  # the `#` keeps the point: 3. and -0., yet nan and inf


class PrintOptions:
    """How tensors are printed. Change it with `set_printoptions`."""

    # No dataclass: building one takes longer than importing the rest of the module.
    __slots__ = ("edgeitems", "linewidth", "precision", "sci_mode", "threshold")

    def __init__(self) -> None:
        self.precision: int = 4
        self.threshold: float = 1000
        self.edgeitems: int = 3
        self.linewidth: float = 80
        self.sci_mode: bool | None = None

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in _NAMES)
        return f"PrintOptions({', '.join(shown)})"


PRINT_OPTS: Final = PrintOptions()
_NAMES: Final = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")

_PROFILES: Final[dict[str, dict[str, Any]]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed from now on, in all threads.

    precision: decimals of a float (4 unless set). threshold: a tensor of more elements
    is summarised (1000). edgeitems: how many are shown at either end of an axis of a
    summary (3). linewidth: columns of a line (80). profile: "default", "short" or
    "full", a value for each of these four; arguments given beside it override it.
    sci_mode: scientific notation always (True), never (False), or where it reads
    better (None). Unlike the others it is set by every call: left out, it is None.

    Raises ValueError if precision or edgeitems is negative. As in PyTorch, a profile
    with another name changes nothing.
    """
    for name, value in (("precision", precision), ("edgeitems", edgeitems)):
        if value is not None and value < 0:
            raise ValueError(f"set_printoptions: {name} must be >= 0, got {value}")
    wanted = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    for name, value in (_PROFILES.get(profile or "", {}) | given).items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options now in force, by name: `set_printoptions(**them)` restores them."""
    return {name: getattr(PRINT_OPTS, name) for name in _NAMES}


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Sets options as `set_printoptions` does (raising what it does) for a block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_repr(
    array: Array,
    *,
    grad_fn: str | None = None,
    requires_grad: bool = False,
    tangent: str | None = None,
    class_name: str = "tensor",
    default_dtype: DType = _FLOAT32,
    dtype_name: str | None = None,
) -> str:
    """The repr of a tensor with the values of `array` (any shape).

    grad_fn: the name of the node that made the tensor, such as "MulBackward0"; if None,
    `requires_grad` says whether it is a leaf that needs a gradient. tangent: the text of
    its tangent. class_name: what stands before the parenthesis.
    default_dtype: the dtype that needs no mention.
    dtype_name: torch's name of the dtype if NumPy's is another: "bfloat16" for a
    bfloat16 kept in an array of float32.

    Raises nothing of its own.
    """
    prefix = class_name + "("
    dtype = dtype_name or array.dtype.name
    suffixes = _properties(array.shape, dtype, default_dtype)
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return _append(prefix + array_text(array, len(prefix)), suffixes, len(prefix))


def array_text(array: Array, indent: int = 0) -> str:
    """The values alone, in brackets; `indent`: columns to the left of the first."""
    options = PRINT_OPTS
    if array.size == 0:
        return "[]"
    summarize = array.size > options.threshold
    if summarize and array.ndim and not options.edgeitems:
        return "[...]"
    most = 2 * options.edgeitems if summarize else array.size
    cuts = [size > most for size in array.shape]
    shown = _corners(array, cuts, options.edgeitems)
    cells, width = _cells(shown, options)
    room = options.linewidth - indent - (array.ndim - 1)
    return _fold(cells, shown.shape, cuts, indent, _per_line(room, width))


def _corners(array: Array, cuts: list[bool], edge: int) -> Array:
    """`array` without the middle of those axes that are cut."""
    for axis, cut in enumerate(cuts):
        if cut:
            rows = array.swapaxes(0, axis)
            array = np.concatenate((rows[:edge], rows[-edge:])).swapaxes(0, axis)
    return array


def _per_line(room: float, width: int) -> int:
    """How many cells fit into `room` columns, with a comma and a space each."""
    return max(1, int(min(room / (width + 2), maxsize)))  # linewidth may be inf


# -------------------------------------------------------------------- elements to text


def _cells(array: Array, options: PrintOptions) -> tuple[list[str], int]:
    """The text of each element, aligned; and the width to reckon with."""
    kind = array.dtype.kind
    if kind == "c":
        return _complex_cells(array, options)
    if kind in "biu":
        cells = [str(value) for value in array.ravel().tolist()]
        width = max(map(len, cells))
    else:
        cells, width = _float_cells(array, options)
    return [cell.rjust(width) for cell in cells], width


def _complex_cells(array: Array, options: PrintOptions) -> tuple[list[str], int]:
    """Real parts aligned, imaginary parts not: what follows them is a comma."""
    real, left = _float_cells(array.real, options)
    imag, right = _float_cells(array.imag, options)
    cells = [
        f"{re.rjust(left)}{im}j" if im[0] == "-" else f"{re.rjust(left)}+{im}j"
        for re, im in zip(real, imag, strict=True)
    ]
    return cells, left + right + 1  # the j is counted, the sign between them is not


def _float_cells(array: Array, options: PrintOptions) -> tuple[list[str], int]:
    """The text of each float, not yet aligned; and the width to align it to."""
    values = _python_floats(array)
    telling = [isfinite(value) and value != 0 for value in values]
    magnitudes = [abs(v) for v, tells in zip(values, telling, strict=True) if tells]
    style = _style(magnitudes, options)
    cells = [format(value, style) for value in values]
    widths = (len(c) for c, tells in zip(cells, telling, strict=True) if tells)
    return cells, max(widths, default=1)


def _python_floats(array: Array) -> list[float]:
    """The elements in double precision; see Note [Decisions are made in double …]."""
    if array.dtype.kind != "f":  # bfloat16 and other types from outside NumPy
        array = array.astype(_FLOAT32)
    values: list[float] = array.ravel().tolist()
    return values


def _style(magnitudes: list[float], options: PrintOptions) -> str:
    """The format specification: Note [One format for all elements]."""
    if not magnitudes:
        return _WHOLE
    scientific = options.sci_mode
    if scientific is None:
        scientific = _wide_range(min(magnitudes), max(magnitudes))
    if scientific:
        return f".{options.precision}e"
    if all(value.is_integer() for value in magnitudes):
        return _WHOLE
    return f".{options.precision}f"


def _wide_range(low: float, high: float) -> bool:
    return high / low > 1000 or high > 1e8 or low < 1e-4


# ----------------------------------------------------------------------- cells to lines


def _fold(
    cells: list[str], shape: tuple[int, ...], cuts: list[bool], indent: int, wrap: int
) -> str:
    """Brackets, commas and line breaks around the cells of an array of `shape`."""
    pieces, ndim = cells, len(shape)
    for axis in reversed(range(ndim)):
        column = " " * (indent + axis + 1)
        if axis == ndim - 1:
            join, ellipsis = _row_joiner(column, wrap), " ..."
        else:
            join, ellipsis = (",".ljust(ndim - axis, "\n") + column).join, "..."
        size, middle = shape[axis], shape[axis] // 2
        groups = [pieces[i : i + size] for i in range(0, len(pieces), size)]
        if cuts[axis]:
            groups = [[*g[:middle], ellipsis, *g[middle:]] for g in groups]
        pieces = [f"[{join(group)}]" for group in groups]
    return pieces[0]


def _row_joiner(column: str, wrap: int) -> Callable[[list[str]], str]:
    """Joins the cells of a row, `wrap` of them a line."""

    def join(row: list[str]) -> str:
        lines = (", ".join(row[i : i + wrap]) for i in range(0, len(row), wrap))
        return (",\n" + column).join(lines)

    return join


# ------------------------------------------------------------------- what follows them


def _properties(shape: tuple[int, ...], dtype: str, default: DType) -> list[str]:
    """The size and the dtype, where the values do not tell them."""
    empty = 0 in shape
    # No element shows the kind of an empty tensor, so only the default is implied.
    implied = {default.name} if empty else {default.name, "int64", "bool"}
    if not empty:
        implied.add("complex128" if default.name == "float64" else "complex64")
    untold = len(shape) != 1 if empty else not PRINT_OPTS.edgeitems
    size = [f"size={shape}"] if untold else []
    return size if dtype in implied else [*size, f"dtype=torch.{dtype}"]


def _append(text: str, suffixes: list[str], indent: int) -> str:
    """Adds the suffixes, each on a new line if it would not fit into this one."""
    # Two columns more than the line has: PyTorch counts so, and breaks lines by it.
    used = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if used + len(suffix) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"
