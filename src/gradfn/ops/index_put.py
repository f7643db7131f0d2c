"""index_put: values written at index tensors."""

from __future__ import annotations

from typing import Any

from gradfn._state import TRANSFORMS, mode
from gradfn.graph.saved import legacy_type
from gradfn.ops.index import WHOLE, array_part, is_batched_index, put_row, split_index
from gradfn.ops.world import public
from gradfn.tensor import Tensor, method


def put_index(t: Tensor, indices: Any, values: Any, name: str) -> Any:
    """NumPy's index for index tensors, and the values without what cannot be recorded."""
    if isinstance(indices, Tensor) or not hasattr(indices, "__iter__"):
        raise TypeError(
            f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not "
            f"{type(indices).__name__}"
        )
    if not isinstance(values, Tensor):
        raise TypeError(
            f"{name}(): argument 'values' (position 2) must be Tensor, not "
            f"{type(values).__name__}"
        )
    if values._array.dtype != t._array.dtype:
        a, b = (legacy_type(x.dtype.name)[6:-6] for x in (t, values))
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {a} for the "
            f"destination and {b} for the source."
        )
    return array_part(split_index(whole_index(indices), t._array.shape, kept=True)[1])


def whole_index(indices: Any) -> Any:
    """Index tensors, of which some may be None, as an index."""
    return tuple(WHOLE if x is None else x for x in indices)


@method
def index_put_(
    self: Tensor, indices: Any, values: Tensor, accumulate: bool = False
) -> Tensor:
    """Writes values at index tensors; adds them, also repeatedly, if `accumulate`."""
    if mode() & TRANSFORMS and is_batched_index(indices):
        from gradfn.func.indexing import put

        put(self, whole_index(indices), values, accumulate)
        return self
    index = put_index(self, indices, values, "index_put_")
    return self._index_put_(values, index, accumulate)  # type: ignore[no-any-return]


@public
@method
def index_put(
    input: Tensor, indices: Any, values: Tensor, accumulate: bool = False
) -> Tensor:
    """`index_put_` on a copy."""
    if mode() & TRANSFORMS and is_batched_index(indices):
        from gradfn.func.indexing import Place, fitting

        place = Place(input, whole_index(indices))
        rows = place.rows(fitting(input, values, place))
        return place.with_rows(rows, accumulate)  # type: ignore[no-any-return]
    index = put_index(input, indices, values, "index_put")
    return put_row(input, values, index, accumulate)  # type: ignore[no-any-return]
