"""Recurrent networks, and their cells."""

from __future__ import annotations

import math
from typing import Any

from gradfn.nn import functional as F
from gradfn.nn.modules.linear import empty, within
from gradfn.nn.modules.module import Module
from gradfn.nn.recurrence import STEPS, Weights, affine, run
from gradfn.nn.utils.rnn import PackedSequence
from gradfn.ops.world import PUBLIC

__all__ = [
    "GRU",
    "GRUCell",
    "LSTM",
    "LSTMCell",
    "RNN",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
]


class RNNBase(Module):
    """What recurrent networks share. `mode`: RNN_TANH, RNN_RELU, LSTM or GRU.

    Shapes: input (L, N, in), or (N, L, in) if batch_first, or (L, in); states
    (layers * directions, N, hidden).
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional = float(dropout), bidirectional
        self.proj_size = proj_size
        self._check()
        gates = STEPS[mode][1] * hidden_size
        out = proj_size or hidden_size
        kind = {"device": device, "dtype": dtype}
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            width = input_size if layer == 0 else out * self._directions
            for suffix in ("", "_reverse")[: self._directions]:
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (gates, width),
                    "weight_hh": (gates, out),
                }
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    self.register_parameter(name, empty(*shape, **kind))
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _check(self) -> None:
        if self.mode not in STEPS:
            raise ValueError(f"Unrecognized RNN mode: {self.mode}")
        if not 0 <= self.dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of "
                f"an element being zeroed, but got {self.dropout}"
            )
        for name in ("hidden_size", "num_layers"):
            value = getattr(self, name)
            if not isinstance(value, int):
                raise TypeError(
                    f"{name} should be of type int, got: {type(value).__name__}"
                )
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero, got {value}")
        if self.proj_size < 0 or self.proj_size >= self.hidden_size:
            raise ValueError(
                f"proj_size should be 0 or smaller than hidden_size, got {self.proj_size}"
            )
        if self.proj_size and self.mode != "LSTM":
            raise ValueError(
                f"proj_size argument is only supported for LSTM, not {self.mode}"
            )

    def reset_parameters(self) -> None:
        """Draws new values, uniform within 1 / sqrt(hidden_size)."""
        for weight in self.parameters():
            within(weight, 1.0 / math.sqrt(self.hidden_size))

    def flatten_parameters(self) -> None:
        """Leaves the weights where they are: their place in memory matters on GPUs."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _weights(self, i: int) -> Weights:
        found = {n.rpartition("_l")[0]: getattr(self, n) for n in self._all_weights[i]}
        return Weights(
            found["weight_ih"],
            found["weight_hh"],
            found.get("bias_ih"),
            found.get("bias_hh"),
            found.get("weight_hr"),
        )

    # -- running -------------------------------------------------------------------------

    def forward(self, input: Any, hx: Any = None) -> Any:
        """(outputs, last state), packed if the input is a PackedSequence."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D "
                "instead"
            )
        alone = input.dim() == 2
        if alone:
            x = input.unsqueeze(1)
        else:
            x = input.transpose(0, 1) if self.batch_first else input
        length, batch = x.shape[:2]
        if not length:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        state = self._first_state(x, batch, hx, alone)
        rows = x.reshape(length * batch, -1)
        out, last = self._layers(rows, [batch] * length, state)
        out = out.reshape(length, batch, -1)
        if alone:
            return out.squeeze(1), self._shown(tuple(s.squeeze(1) for s in last))
        return (out.transpose(0, 1) if self.batch_first else out), self._shown(last)

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> Any:
        sizes = packed.batch_sizes.tolist()
        order, back = packed.sorted_indices, packed.unsorted_indices
        state = self._first_state(packed.data, sizes[0], hx, False)
        if order is not None:
            state = tuple(s.index_select(1, order) for s in state)
        out, last = self._layers(packed.data, sizes, state)
        if back is not None:
            last = tuple(s.index_select(1, back) for s in last)
        made = PackedSequence(out, packed.batch_sizes, order, back)
        return made, self._shown(last)

    def _layers(self, rows: Any, sizes: list[int], state: Any) -> Any:
        """Runs all layers over packed rows."""
        ends: list[Any] = []
        for layer in range(self.num_layers):
            outs = []
            for direction in range(self._directions):
                i = layer * self._directions + direction
                begin = tuple(s[i] for s in state)
                out, end = run(
                    self.mode, rows, sizes, begin, self._weights(i), bool(direction)
                )
                outs.append(out)
                ends.append(end)
            rows = outs[0] if len(outs) == 1 else PUBLIC["cat"](outs, -1)
            if self.dropout and layer < self.num_layers - 1:
                rows = F.dropout(rows, self.dropout, self.training)
        last = tuple(PUBLIC["stack"](same) for same in zip(*ends, strict=True))
        return rows, last

    def _shown(self, state: Any) -> Any:
        """The state as users see it."""
        return state[0]

    def _given(self, hx: Any) -> Any:
        """The state that a user gave as a tuple."""
        return (hx,)

    def _first_state(self, x: Any, batch: int, hx: Any, alone: bool) -> Any:
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {x.shape[-1]}"
            )
        count = self.num_layers * self._directions
        out = self.proj_size or self.hidden_size
        wanted = [(count, batch, out), (count, batch, self.hidden_size)]
        if hx is None:
            return tuple(x.new_zeros(s) for s in wanted[: 1 + (self.mode == "LSTM")])
        given = self._given(hx)
        if alone:
            for s in given:
                if s.dim() != 2:
                    raise RuntimeError(
                        "For unbatched 2-D input, hx should also be 2-D but got "
                        f"{s.dim()}-D tensor"
                    )
            given = tuple(s.unsqueeze(1) for s in given)
        for s, shape in zip(given, wanted):
            if tuple(s.shape) != shape:
                raise RuntimeError(f"Expected hidden size {shape}, got {list(s.shape)}")
        return given

    def extra_repr(self) -> str:
        """The sizes and what is not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        for name, default in usual.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """Layers of h = tanh(W x + b + W' h + b'), or with relu."""

    def __init__(
        self, input_size: int, hidden_size: int, *args: Any, **kwargs: Any
    ) -> None:
        more = list(args)
        if len(more) > 1 and isinstance(more[1], str):
            self_nonlinearity = more.pop(1)
        else:
            self_nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self_nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{self_nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        mode = f"RNN_{self_nonlinearity.upper()}"
        super().__init__(mode, input_size, hidden_size, *more, **kwargs)
        self.nonlinearity = self_nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); its state is (h, c)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def _shown(self, state: Any) -> Any:
        return state

    def _given(self, hx: Any) -> Any:
        return tuple(hx)


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """What cells share: the weights of one layer, and one step."""

    _mode = ""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        kind = {"device": device, "dtype": dtype}
        gates = num_chunks * hidden_size
        self.weight_ih = empty(gates, input_size, **kind)
        self.weight_hh = empty(gates, hidden_size, **kind)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty(gates, **kind) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform within 1 / sqrt(hidden_size)."""
        for weight in self.parameters():
            within(weight, 1.0 / math.sqrt(self.hidden_size) if self.hidden_size else 0)

    def _step(self, input: Any, state: Any) -> Any:
        name = self._get_name()
        if input.dim() not in (1, 2):
            raise ValueError(
                f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead"
            )
        alone = input.dim() == 1
        x = input.unsqueeze(0) if alone else input
        if x.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {x.shape[1]}, expected "
                f"{self.input_size}"
            )
        mode = self._mode or f"RNN_{self.nonlinearity.upper()}"
        if state is None:
            zeros = x.new_zeros(x.shape[0], self.hidden_size)
            state = (zeros, zeros) if mode == "LSTM" else (zeros,)
        elif alone:
            state = tuple(s.unsqueeze(0) for s in state)
        for s in state:
            if tuple(s.shape) != (x.shape[0], self.hidden_size):
                raise RuntimeError(
                    f"hidden has inconsistent hidden_size: got {list(s.shape)}, expected "
                    f"{[x.shape[0], self.hidden_size]}"
                )
        w = Weights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        new = STEPS[mode][0](affine(x, w.w_ih, w.b_ih), state, w)
        return tuple(s.squeeze(0) for s in new) if alone else new

    def extra_repr(self) -> str:
        """The sizes and what is not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One step of RNN."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {nonlinearity}")
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new state."""
        return self._step(input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of LSTM."""

    _mode = "LSTM"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new state (h, c)."""
        return self._step(input, hx)


class GRUCell(RNNCellBase):
    """One step of GRU."""

    _mode = "GRU"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new state."""
        return self._step(input, None if hx is None else (hx,))[0]
