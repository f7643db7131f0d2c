"""Sequences of different lengths: padded, or packed without padding."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradfn.ops.world import PUBLIC
from gradfn.tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(_Packed):
    """Sequences without padding: the rows of each time one after the other.

    `batch_sizes[t]` is how many sequences are longer than t; they are sorted, longest
    first, by `sorted_indices`.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> Any:
        if batch_sizes is None:
            raise ValueError(
                "PackedSequence needs batch_sizes; it is made by pack_padded_sequence"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences in another dtype."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self) -> PackedSequence:
        """Itself."""
        return self

    def double(self) -> PackedSequence:
        """The sequences as float64."""
        return self.to(PUBLIC["zeros"](0).double().dtype)

    def float(self) -> PackedSequence:
        """The sequences as float32."""
        return self.to(PUBLIC["zeros"](0).float().dtype)

    @property
    def is_cuda(self) -> bool:
        """False."""
        return False

    def is_pinned(self) -> bool:
        """False."""
        return False


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes another."""
    if permutation is None:
        return None
    out = PUBLIC["empty_like"](permutation)
    return out.scatter_(0, permutation, PUBLIC["arange"](permutation.numel()))


def _lengths(lengths: Any) -> Any:
    if isinstance(lengths, Tensor):
        return lengths.long()
    return PUBLIC["tensor"](list(lengths)).long()


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences (L, N, *), or (N, L, *). RuntimeError for bad lengths."""
    lengths = _lengths(lengths)
    order = None
    if not enforce_sorted:
        lengths, order = PUBLIC["sort"](lengths, descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    x = input.transpose(0, 1) if batch_first else input
    sizes: list[int] = lengths.tolist()
    if len(sizes) != x.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} "
            f"(batch_size={x.shape[1]})"
        )
    if sizes != sorted(sizes, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is "
            "True. You can pass `enforce_sorted=False` to pack_padded_sequence to sort"
        )
    if sizes[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in "
            "'lengths' that is <= 0"
        )
    if sizes[0] > x.shape[0]:
        raise RuntimeError(
            f"a length of {sizes[0]} is more than the sequences have ({x.shape[0]})"
        )
    batches = [sum(n > t for n in sizes) for t in range(sizes[0])]
    data = PUBLIC["cat"]([x[t, :n] for t, n in enumerate(batches)])
    return PackedSequence(data, PUBLIC["tensor"](batches), order)  # type: ignore[no-any-return]


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:
    """(padded sequences, their lengths). ValueError if `total_length` is too short."""
    batches: list[int] = sequence.batch_sizes.tolist()
    length, batch = len(batches), batches[0]
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being "
                f"{length}"
            )
        length = total_length
    steps = []
    for part in sequence.data.split(batches):
        missing = batch - part.shape[0]
        if missing:
            fill = part.new_full((missing, *part.shape[1:]), padding_value)
            part = PUBLIC["cat"]([part, fill])
        steps.append(part)
    for _ in range(length - len(steps)):
        steps.append(steps[0].new_full(steps[0].shape, padding_value))
    out = PUBLIC["stack"](steps, 1 if batch_first else 0)
    lengths = PUBLIC["tensor"]([sum(n > i for n in batches) for i in range(batch)])
    if sequence.unsorted_indices is not None:
        back = sequence.unsorted_indices
        out = out.index_select(0 if batch_first else 1, back)
        lengths = lengths[back]
    return out, lengths


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Sequences (L_i, *) in one tensor (L, N, *), or (N, L, *), filled up."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    several = list(sequences)
    if not several:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.shape[0] for s in several)
    filled = []
    for s in several:
        missing = longest - s.shape[0]
        if missing:
            fill = s.new_full((missing, *s.shape[1:]), padding_value)
            s = PUBLIC["cat"]([s, fill] if padding_side == "right" else [fill, s])
        filled.append(s)
    return PUBLIC["stack"](filled, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Any, batch_first: bool = False
) -> list[Any]:
    """Padded sequences as a list."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:n] for row, n in zip(x, _lengths(lengths).tolist(), strict=True)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences."""
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(
        pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted
    )


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """Packed sequences as a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
