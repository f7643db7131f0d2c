"""What is reported of a measurement, and the table of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Self

from catalogue import Unit
from rich.box import SIMPLE_HEAD
from rich.table import Table

Round = dict[str, float]  # "torch", "candidate" and, mostly, "numpy"


@dataclass(frozen=True)
class Figure:
    """The candidate's and NumPy's figures have the unit, PyTorch's its own."""

    name: str
    limit: float
    unit: Unit
    candidate: float
    numpy: float | None
    torch: float
    torch_unit: str
    rounds: Sequence[Round]

    @classmethod
    def of_times(cls, name: str, limit: float, rounds: Sequence[Round]) -> Self:
        """Ratios are taken within a round, and PyTorch's time as information."""
        by_hand = "numpy" in rounds[0]
        return cls(
            name,
            limit,
            "×",
            median(ratios(rounds, "candidate")),
            median(ratios(rounds, "numpy")) if by_hand else None,
            median(each["torch"] for each in rounds) * 1e6,
            "µs",
            rounds,
        )

    @classmethod
    def of_sizes(cls, name: str, limit: float, sizes: Round) -> Self:
        torch = sizes["torch"]
        candidate, numpy = sizes["candidate"] / torch, sizes["numpy"] / torch
        return cls(name, limit, "×", candidate, numpy, torch / 1e6, "MB", [sizes])

    @classmethod
    def absolute(cls, name: str, limit: float, unit: Unit, sizes: Round) -> Self:
        """Sizes that are themselves limited, whatever PyTorch's may be."""
        mine, numpy, torch = sizes["candidate"], sizes.get("numpy"), sizes["torch"]
        return cls(name, limit, unit, mine, numpy, torch, unit, [sizes])

    @property
    def missed(self) -> bool:
        """As shown: 1.002 times PyTorch's memory is PyTorch's memory."""
        return round(self.candidate, 2) > self.limit

    @property
    def spread(self) -> tuple[float, float] | None:
        """The quartiles of the rounds' ratios."""
        if len(self.rounds) < 2:
            return None
        low, _, high = quantiles(ratios(self.rounds, "candidate"), method="inclusive")
        return low, high


def ratios(rounds: Iterable[Round], role: str) -> list[float]:
    return [each[role] / each["torch"] for each in rounds]


def table(figures: Iterable[Figure], candidate: str) -> Table:
    made = Table(box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    made.caption = "ratios to torch, but for figures with a unit; !: misses its limit"
    made.add_column("workload", no_wrap=True)
    for heading in (candidate, "quartiles", "limit", "", "numpy", "torch"):
        style = "dim" if heading in ("quartiles", "numpy", "torch") else ""
        made.add_column(heading, justify="right", no_wrap=True, style=style)
    for figure in figures:
        made.add_row(*cells(figure))
    return made


def cells(figure: Figure) -> list[str]:
    unit = "" if figure.unit == "×" else f" {figure.unit}"
    spread, numpy = figure.spread, figure.numpy
    return [
        figure.name,
        number(figure.candidate) + unit,
        "–".join(map(number, spread)) if spread else "",
        number(figure.limit),
        "[bold red]![/]" if figure.missed else "",
        "" if numpy is None else number(numpy) + unit,
        f"{number(figure.torch)} {figure.torch_unit}",
    ]


def number(value: float) -> str:
    """With decimals while they tell something."""
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{decimals}f}"
