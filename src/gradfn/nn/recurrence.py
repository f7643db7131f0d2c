"""Recurrences over time: one step of each kind, and runs over whole sequences.

Note [Steps and runs]
    A step takes what the input contributes to the gates (computed for all times in one
    product), the state (a tuple of tensors) and the weights; it returns the new state, of
    which the first is the output. A run over sequences of different length goes by the
    batch size of each time, longest sequence first, as PackedSequence has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradfn.ops.world import PUBLIC

State = tuple[Any, ...]


class Weights(NamedTuple):
    """The weights of one layer in one direction; biases and w_hr may be None."""

    w_ih: Any
    w_hh: Any
    b_ih: Any = None
    b_hh: Any = None
    w_hr: Any = None


def affine(x: Any, weight: Any, bias: Any) -> Any:
    """x @ weight.T + bias."""
    out = x @ weight.t()
    return out if bias is None else out + bias


def _simple(name: str) -> Callable[..., State]:
    def step(gates: Any, state: State, w: Weights) -> State:
        return (getattr(gates + affine(state[0], w.w_hh, w.b_hh), name)(),)

    return step


def _lstm(gates: Any, state: State, w: Weights) -> State:
    h, c = state
    i, f, g, o = (gates + affine(h, w.w_hh, w.b_hh)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return (h if w.w_hr is None else h @ w.w_hr.t()), c


def _gru(gates: Any, state: State, w: Weights) -> State:
    (h,) = state
    xr, xz, xn = gates.chunk(3, -1)
    hr, hz, hn = affine(h, w.w_hh, w.b_hh).chunk(3, -1)
    z = (xz + hz).sigmoid()
    n = (xn + (xr + hr).sigmoid() * hn).tanh()
    return (n + z * (h - n),)


# mode: (the step, gates a unit)
STEPS: dict[str, tuple[Callable[..., State], int]] = {
    "RNN_TANH": (_simple("tanh"), 1),
    "RNN_RELU": (_simple("relu"), 1),
    "LSTM": (_lstm, 4),
    "GRU": (_gru, 3),
}


def run(mode: str, x: Any, sizes: list[int], state: State, w: Weights, back: bool) -> Any:
    """(outputs, last state) over packed rows `x`; `sizes` are the batch sizes in time."""
    step = STEPS[mode][0]
    gates = affine(x, w.w_ih, w.b_ih).split(sizes)
    go = _backward if back else _forward
    outputs, last = go(step, gates, sizes, state, w)
    return PUBLIC["cat"](outputs), last


def _forward(step: Any, gates: Any, sizes: list[int], state: State, w: Weights) -> Any:
    outputs, ended = [], []  # the states of sequences that end, shortest first
    size = sizes[0]
    for part, n in zip(gates, sizes, strict=True):
        if n < size:
            ended.append(tuple(s[n:size] for s in state))
            state, size = tuple(s[:n] for s in state), n
        state = step(part, state, w)
        outputs.append(state[0])
    parts = [state, *reversed(ended)]
    if len(parts) > 1:
        state = tuple(PUBLIC["cat"](same) for same in zip(*parts, strict=True))
    return outputs, state


def _backward(step: Any, gates: Any, sizes: list[int], first: State, w: Weights) -> Any:
    outputs = []
    size = sizes[-1]
    state = tuple(s[:size] for s in first) if size < sizes[0] else first
    for part, n in zip(reversed(gates), reversed(sizes), strict=True):
        if n > size:  # sequences whose end this is
            both = [(s, f[size:n]) for s, f in zip(state, first, strict=True)]
            state, size = tuple(PUBLIC["cat"](pair) for pair in both), n
        state = step(part, state, w)
        outputs.append(state[0])
    return outputs[::-1], state
