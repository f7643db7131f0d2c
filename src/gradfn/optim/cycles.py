"""Schedules that go up and down, with the momentum against the rate."""

from __future__ import annotations

import math
from typing import Any

from gradfn.optim.schedule import LRScheduler


def _each(name: str, value: Any, groups: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ValueError(f"expected {len(groups)} values for {name}, got {len(value)}")
    return list(value)


class _WithMomentum(LRScheduler):
    """A schedule that sets the momentum, too, under its name in the optimizer."""

    cycle_momentum: bool
    _by_betas: bool

    def _find_momentum(self, optimizer: Any) -> None:
        self._by_betas = "betas" in optimizer.defaults
        if not self._by_betas and "momentum" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )

    def _put_momentum(self, group: Any, value: float) -> None:
        if self._by_betas:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """Between two rates, up and down again (Smith, 2015)."""

    def __init__(
        self,
        optimizer: Any,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Any = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        groups = optimizer.param_groups
        base_lrs = _each("base_lr", base_lr, groups)
        if last_epoch == -1:
            for group, lr in zip(groups, base_lrs, strict=True):
                group["lr"] = lr
        self.max_lrs = _each("max_lr", max_lr, groups)
        up, down = float(step_size_up), step_size_down
        self.total_size = up + (up if down is None else float(down))
        self.step_ratio = up / self.total_size
        self.mode, self.gamma, self.cycle_momentum = mode, gamma, cycle_momentum
        self._scale_fn = scale_fn
        iterations = scale_fn is None and mode == "exp_range"
        self.scale_mode = "iterations" if iterations else scale_mode
        if cycle_momentum:
            self._find_momentum(optimizer)
            self.base_momentums = _each("base_momentum", base_momentum, groups)
            self.max_momentums = _each("max_momentum", max_momentum, groups)
            if last_epoch == -1:
                for group, high in zip(groups, self.max_momentums, strict=True):
                    self._put_momentum(group, high)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """How high the wave is in cycle (or iteration) x."""
        if self._scale_fn is not None:
            return float(self._scale_fn(x))
        if self.mode == "triangular":
            return 1.0
        return float(0.5 ** (x - 1) if self.mode == "triangular2" else self.gamma**x)

    def get_lr(self) -> list[float]:
        """base + height; sets the momentum."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        first = x <= self.step_ratio
        part = x / self.step_ratio if first else (x - 1) / (self.step_ratio - 1)
        high = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            groups = self.optimizer.param_groups
            ends = zip(groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, top in ends:
                self._put_momentum(group, top - (top - low) * part * high)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [base + (top - base) * part * high for base, top in pairs]


class OneCycleLR(_WithMomentum):
    """Once up and down, to far below the beginning (Smith and Topin, 2017)."""

    def __init__(
        self,
        optimizer: Any,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "You must define either total_steps OR (epochs AND steps_per_epoch)"
                )
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0:
            raise ValueError(
                f"Expected positive integer total_steps, but got {total_steps}"
            )
        if not 0 <= pct_start <= 1:
            raise ValueError(
                f"Expected float between 0 and 1 pct_start, but got {pct_start}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        self.total_steps, self._anneal, self.cycle_momentum = (
            total_steps,
            anneal_strategy,
            cycle_momentum,
        )
        rise = float(pct_start * total_steps)
        end = total_steps - 1
        names = [("initial", "max"), ("max", "min")]
        if three_phase:
            names = [("initial", "max"), ("max", "initial"), ("initial", "min")]
            self._phases = [(rise - 1, *names[0]), (2 * rise - 2, *names[1])]
            self._phases.append((end, *names[2]))
        else:
            self._phases = [(rise - 1, *names[0]), (end, *names[1])]
        if last_epoch == -1:
            groups = optimizer.param_groups
            for group, top in zip(groups, _each("max_lr", max_lr, groups), strict=True):
                first = top / div_factor
                group.update(
                    initial_lr=first, max_lr=top, min_lr=first / final_div_factor
                )
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _begin_momentum(self, optimizer: Any, base: Any, top: Any, epoch: int) -> None:
        self._find_momentum(optimizer)
        if epoch != -1:
            return
        groups = optimizer.param_groups
        lows = _each("base_momentum", base, groups)
        tops = _each("max_momentum", top, groups)
        for group, low, high in zip(groups, lows, tops, strict=True):
            self._put_momentum(group, high)
            group["base_momentum"], group["max_momentum"] = low, high

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def get_lr(self) -> list[float]:
        """The rate in the phase; sets the momentum. ValueError behind the last step."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        i = 0
        while i < len(self._phases) - 1 and step > self._phases[i][0]:
            i += 1
        end, first, last = self._phases[i]
        begin = self._phases[i - 1][0] if i else 0
        part = (step - begin) / (end - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[f"{first}_lr"], group[f"{last}_lr"], part))
            if self.cycle_momentum:
                ends = [
                    group["base_momentum" if name == "max" else "max_momentum"]
                    for name in (first, last)
                ]
                self._put_momentum(group, self._between(ends[0], ends[1], part))
        return rates


class CosineAnnealingWarmRestarts(LRScheduler):
    """Halves of cosine waves, each T_mult times as long (Loshchilov and Hutter)."""

    def __init__(
        self,
        optimizer: Any,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min = T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """eta_min + (base - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2."""
        half = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * half for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Goes on by one epoch, or to any, also between two."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            self._go_to(epoch)
        self._step_count += 1
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())

    def _go_to(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            begin = self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i, self.T_cur = self.T_0 * self.T_mult**n, epoch - begin
