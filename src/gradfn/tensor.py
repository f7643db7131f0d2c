"""Tensor: an ndarray, and what the graph needs to know of it.

Note [Slots]
    A tensor is made by every op, so it is as small as can be: five slots.
    `_array`    the values. Always an ndarray of native byte order, also when 0-d.
    `_grad_fn`  None: needs no gradient; LEAF: a leaf that does; else the node that
                made it. Read it through `graph.view.edge` where the tensor may be a
                view, whose node lags behind in-place writes to its base.
    `_cell`     the version counter, shared by a tensor and its views; None stands for
                a version of 0 that nobody had to share yet.
    `_view`     None, or how to get from the base to this view (graph.view.View).
    `_extra`    None, or whatever is rare: .grad, hooks, names (Extra).

Note [Methods come from elsewhere]
    This module knows no op and no graph. Rows in `ops` and the functions in `graph`
    and `autograd` put themselves onto the class with `method`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TypeVar

import numpy as np

from gradfn._device import CPU, device
from gradfn._dtypes import BY_NUMPY, default_dtype, dtype, torch_dtype
from gradfn._memory import keep_freed_memory

F = TypeVar("F", bound=Callable[..., Any])
new = object.__new__
ndarray = np.ndarray
keep_freed_memory()


class Size(tuple[int, ...]):
    """A shape: a tuple of ints that prints and counts as torch's does."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        total = 1
        for n in self:
            total *= n
        return total

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, other))

    def __mul__(self, times: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __getitem__(self, at: Any) -> Any:
        got = tuple.__getitem__(self, at)
        return Size(got) if isinstance(at, slice) else got

    def __reduce__(self) -> Any:
        return Size, (tuple(self),)


class Cell:
    """A version counter: how often this memory was written in place."""

    __slots__ = ("count",)

    def __init__(self, count: int = 0) -> None:
        self.count = count


class Untracked(Cell):
    """The counter of tensors made in inference mode: they have no versions.

    So whoever asks for one, to save the tensor for backward, is told at once.
    """

    __slots__ = ()

    @property
    def count(self) -> int:  # type: ignore[override]
        """Raises RuntimeError."""
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors "
            "created in inference mode in computation tracked by autograd. To work around "
            "this, you can make a clone to get a normal tensor and use it in autograd, or "
            "use `torch.no_grad()` instead of `torch.inference_mode()`. (Inference tensors "
            "do not track version counter.)"
        )


UNTRACKED: Final = Untracked.__new__(Untracked)


class Extra:
    """The rare properties of a tensor."""

    __slots__ = (
        "__weakref__",
        "accumulator",
        "grad",
        "hooks",
        "inference",
        "intermediate",
        "notes",
        "post_hooks",
        "retains_grad",
        "tangents",
    )

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.hooks: dict[int, Any] | None = None  # of a leaf; others: at the node
        self.post_hooks: dict[int, Any] | None = None
        self.retains_grad = False
        self.accumulator: Any = None  # weak reference to the AccumulateGrad node
        self.intermediate = False  # computed from inputs inside Function.forward
        self.inference = False  # made in inference mode
        self.tangents: Any = None  # or Tangents: {Level: tangent}
        self.notes: Any = None  # what an observer wrote down here


INTERMEDIATE: Final = Extra()  # of tensors that Function.forward computed, no more
INTERMEDIATE.intermediate = True


class Leaf:
    """The mark of a leaf that requires grad; only LEAF is ever made."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "LEAF"


LEAF: Final = Leaf()
ARRAYS: Final[dict[type, type]] = {}  # arrays that are not NumPy's, and their tensors


class Tensor:
    """A multi-dimensional array that records what is done to it.

    Make one with `gradfn.tensor`; calling the class follows torch's legacy form:
    `Tensor(2, 3)` is uninitialised, `Tensor([1, 2])` holds float32 values.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_array",
        "_cell",
        "_extra",
        "_grad_fn",
        "_view",
    )
    _array: np.ndarray[Any, Any]
    _grad_fn: Any
    _cell: Cell | None
    _view: Any
    _extra: Extra | None

    __hash__ = object.__hash__
    __array_priority__ = 1000  # NumPy's operators leave ndarray + Tensor to us

    if TYPE_CHECKING:  # what `method` adds
        grad: Any
        data: Any
        requires_grad: bool

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __neg__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

    def __new__(cls, *data: Any, device: Any = None) -> Any:
        if len(data) == 1 and isinstance(data[0], Tensor):
            array = data[0]._array.astype(default_dtype(), copy=False)
        elif len(data) == 1 and not isinstance(data[0], (int, Size)):
            array = np.array(data[0], default_dtype())
        elif len(data) == 1 and isinstance(data[0], Size):
            array = np.empty(data[0], default_dtype())
        else:
            array = np.empty(data, default_dtype()) if data else empty_array()
        return wrap(array, cls)

    # -- what it is ----------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return Size(self._array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def dtype(self) -> dtype:
        """The type of the elements, such as torch.float32."""
        return BY_NUMPY[self._array.dtype]

    @property
    def device(self) -> device:
        """Where the values are: always `device(type='cpu')`."""
        return CPU

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._array.nbytes

    @property
    def layout(self) -> Any:
        """Always torch.strided."""
        from gradfn._device import strided

        return strided

    is_cuda = is_sparse = is_quantized = is_meta = is_mkldnn = is_mps = False
    is_xpu = is_nested = is_vulkan = is_ipu = is_xla = is_sparse_csr = False
    is_cpu = True
    name = None

    @property
    def is_shared(self) -> Callable[[], bool]:
        """Is the memory shared between processes? Never."""
        return lambda: False

    # -- Python's protocols --------------------------------------------------------

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return len(self._array)

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (Tensor, int, float, complex, np.generic)):
            found: Any = self == element
            return bool(found.any().item())
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, "
            f"but you passed in a {type(element)}."
        )

    def __bool__(self) -> bool:
        array = self._array
        if array.size == 1:
            return bool(array.item())
        what = "no values" if not array.size else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iub" or self._array.size != 1:
            raise TypeError(
                "only integer tensors of a single element can be converted to an index"
            )
        return int(self._array.item())

    def __format__(self, spec: str) -> str:
        if not self._array.ndim and type(self) is Tensor:
            return format(self._array.item(), spec)
        return object.__format__(self, spec)

    def __dir__(self) -> list[str]:
        return sorted(set(object.__dir__(self)))


def empty_array() -> np.ndarray[Any, Any]:
    """What torch.Tensor() holds: no element, of the default dtype."""
    return np.empty(0, default_dtype())


def wrap(array: np.ndarray[Any, Any], cls: type = Tensor) -> Tensor:
    """A tensor around `array` itself, without history."""
    if type(array) is not ndarray:
        if type(array) in ARRAYS:
            cls = ARRAYS[type(array)]
        else:
            array = np.asarray(array)
    t: Tensor = new(cls)
    t._array = array
    t._grad_fn = t._cell = t._view = t._extra = None
    return t


def made_for(t: Tensor, fill: Callable[..., Any], shape: Any, kind: Any) -> Any:
    """`fill(shape, kind)`, a new array; where `t` is batched, one for each sample."""
    if type(t._array) is ndarray:
        return fill(shape, kind)
    return t._array.filled(fill, shape, kind)  # type: ignore[attr-defined]


def share(t: Tensor, array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor over memory of `t` that has t's version counter and no history."""
    out = wrap(array)
    out._cell = cell_of(t)
    return out


def cell_of(t: Tensor) -> Cell:
    """The version counter of `t`; made now if nobody had asked for it."""
    cell = t._cell
    if cell is None:
        cell = t._cell = Cell()
    return cell


def extra_of(t: Tensor) -> Extra:
    """The rare properties of `t`; made now if it had none."""
    extra = t._extra
    if extra is None or extra is INTERMEDIATE:
        t._extra = Extra()
        t._extra.intermediate = extra is INTERMEDIATE
        return t._extra
    return extra


def method(function: F) -> F:
    """Puts a function onto Tensor under its own name."""
    setattr(Tensor, function.__name__, function)
    return function


def from_array(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor around a user's array, whose dtype is checked (TypeError)."""
    torch_dtype(array.dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return wrap(array)
