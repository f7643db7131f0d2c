"""Copies of views: each function that makes a view, followed by a copy.

Also the split that is none for the graph: its pieces share memory, but are taken for
tensors of their own.
"""

from __future__ import annotations

from typing import Any

from gradfn._device import contiguous_format
from gradfn.ops.join import _pieces, _pieces_grad, chunk, split, split_with_sizes
from gradfn.ops.shape import private
from gradfn.ops.world import PUBLIC, public
from gradfn.tensor import Tensor, method

# -- copies ----------------------------------------------------------------------------


def _copied(view: Any) -> Any:
    if isinstance(view, Tensor):
        return view.clone(memory_format=contiguous_format)
    return tuple(_copied(v) for v in view)


def _copy_of(name: str, view: Any, is_method: bool = False) -> None:
    def copy(input: Tensor, *args: Any, out: Any = None, **more: Any) -> Any:
        result = _copied(view(input, *args, **more))
        if out is None:
            return result
        from gradfn.ops.outs import into

        return into(name, out, result)

    copy.__name__ = copy.__qualname__ = name
    copy.__doc__ = f"What `{name.removesuffix('_copy')}` gives, as a copy."
    public(copy)
    if is_method:
        method(copy)


_LIKE = (
    "as_strided",
    "detach",
    "diagonal",
    "narrow",
    "permute",
    "select",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unsqueeze",
    "view_as_complex",
    "view_as_real",
)
for _name in _LIKE:
    _view = PUBLIC.get(_name) or getattr(Tensor, _name)
    _copy_of(f"{_name}_copy", _view, is_method=_name == "narrow")
_copy_of("view_copy", lambda t, *size: t.reshape(*size) if size else t)
_copy_of("alias_copy", lambda t: t)
_copy_of("expand_copy", lambda t, size, *, implicit=False: t.expand(size))
_copy_of("unfold_copy", Tensor.unfold)  # type: ignore[attr-defined]


@public
def slice_copy(
    input: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    """A copy of every `step`th place of `dim` from `start` up to `end`."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return _copied(input.movedim(dim, 0)[start:end:step].movedim(0, dim))


# -- pieces that are no views ----------------------------------------------------------

_unsafe_row = private(
    "_unsafe_split(self, parts, dim)",
    _pieces,
    outputs="many",
    node="UnsafeSplit",
    self=_pieces_grad,
)


def _unsafe(name: str, views: Any) -> None:
    def pieces(input: Tensor, how: Any, dim: int = 0) -> Any:
        parts = [t.shape[dim] for t in views(input.detach(), how, dim)]
        return _unsafe_row(input, tuple(parts), dim)

    pieces.__name__ = pieces.__qualname__ = name
    pieces.__doc__ = f"`{name.removeprefix('unsafe_')}`, but no views for the graph."
    public(method(pieces))


_unsafe("unsafe_split", split)
_unsafe("unsafe_chunk", chunk)
_unsafe("unsafe_split_with_sizes", split_with_sizes)
