"""Saved tensors: kept for the backward pass, checked when taken out.

Note [Saved tensors]
    A node keeps an argument of its op as the tensor itself, in a slot of the argument's
    name. Its version is 0 unless the tensor has a Cell by then; only a version other
    than 0 is noted, in `node._versions`. The result is kept as its bare array in the slot
    `result` and its Cell in the slot `cell`, for the result refers to the node and must
    not be referred to in turn; whoever needs it as a tensor gets a new one.
    After a backward pass without retain_graph the slots hold RELEASED, whose every
    attribute raises "second time": checking for it costs nothing.
"""

from __future__ import annotations

from typing import Any, Final

from gradfn.tensor import Cell, Tensor, wrap


class Released:
    """Stands where a saved tensor was; any use of it raises RuntimeError."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(
            "Trying to backward through the graph a second time (or directly access "
            "saved tensors after they have already been freed). Saved intermediate "
            "values of the graph are freed when you call .backward() or "
            "autograd.grad(). Specify retain_graph=True if you need to backward "
            "through the graph a second time or if you need to access saved tensors "
            "after calling backward."
        )

    def __iter__(self) -> Any:
        return self.items


RELEASED: Final[Any] = Released()


def note_version(node: Any, slot: str, cell: Cell) -> None:
    """Remembers that what `node` saves in `slot` was written before."""
    if cell.count:
        if node._versions is None:
            node._versions = {}
        node._versions[slot] = cell.count


def note_versions(node: Any, slot: str, tensors: Any) -> None:
    """The same for a sequence of tensors, under the slot's name and their numbers."""
    for i, t in enumerate(tensors):
        if t._cell is not None:
            note_version(node, f"{slot}{i}", t._cell)


def check_version(node: Any, slot: str, cell: Cell, array: Any) -> None:
    """Raises RuntimeError if what `slot` holds was overwritten since it was saved."""
    expected = node._versions[slot] if node._versions and slot in node._versions else 0
    if cell.count != expected:
        raise modified(node._name(), array, cell.count, expected)


def modified(name: str, array: Any, found: int, expected: int) -> RuntimeError:
    """The error for a saved tensor that was written in place."""
    from gradfn._dtypes import torch_dtype

    kind = legacy_type(torch_dtype(array.dtype).name)
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an "
        f"inplace operation: [{kind} {list(array.shape)}], which is output 0 of "
        f"{name}, is at version {found}; expected version {expected} instead. "
        "Hint: write to a copy (x = x.clone()) or use the out-of-place form of the op; "
        "enable anomaly detection to find the operation that failed to compute its "
        "gradient, with torch.autograd.set_detect_anomaly(True)."
    )


def legacy_type(name: str) -> str:
    """torch.FloatTensor for float32, and so on."""
    legacy = {
        "float32": "Float",
        "float64": "Double",
        "float16": "Half",
        "complex64": "ComplexFloat",
        "complex128": "ComplexDouble",
        "bool": "Bool",
        "uint8": "Byte",
        "int8": "Char",
        "int16": "Short",
        "int32": "Int",
        "int64": "Long",
    }
    return f"torch.{legacy.get(name, name)}Tensor"


def result_tensor(node: Any, array: Any) -> Tensor:
    """A saved result as a tensor again, with `node` as its history."""
    out = wrap(array)
    out._grad_fn = node
    out._cell = node.cell
    return out
