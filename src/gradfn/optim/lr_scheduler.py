"""Schedules of learning rates.

Note [Rates from the last ones]
    `get_lr` goes on from the rate that a group has now, so that several schedules can
    work on one optimizer. Where there is a formula for any epoch, `_get_closed_form_lr`
    has it; it is used when `step(epoch)` names one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from typing import Any

from gradfn.optim.cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from gradfn.optim.plateau import ReduceLROnPlateau
from gradfn.optim.schedule import LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
_LRScheduler = LRScheduler


class _Lambdas(LRScheduler):
    """Schedules by a function of the epoch, one for all groups or one each."""

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        n = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != n:
                raise ValueError(f"Expected {n} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas: list[Callable[[int], float]] = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * n
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions, which cannot be saved."""
        found = super().state_dict()
        found["lr_lambdas"] = [None] * len(self.lr_lambdas)
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state; the functions stay."""
        kept = self.lr_lambdas
        super().load_state_dict(state_dict)
        self.lr_lambdas = kept


class LambdaLR(_Lambdas):
    """The initial rate times a function of the epoch."""

    def get_lr(self) -> list[float]:
        """base * lambda(epoch)."""
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * f(self.last_epoch) for base, f in pairs]


class MultiplicativeLR(_Lambdas):
    """The last rate times a function of the epoch."""

    def get_lr(self) -> list[float]:
        """rate * lambda(epoch)."""
        if self.last_epoch <= 0:
            return self.rates()
        pairs = zip(self.rates(), self.lr_lambdas, strict=True)
        return [lr * f(self.last_epoch) for lr, f in pairs]


class StepLR(LRScheduler):
    """Times gamma every step_size epochs."""

    def __init__(
        self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """rate * gamma where a step ends."""
        same = self.last_epoch == 0 or self.last_epoch % self.step_size
        return self.scaled(1 if same else self.gamma)

    def _get_closed_form_lr(self) -> list[float]:
        times = self.last_epoch // self.step_size
        return [base * self.gamma**times for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times gamma at each milestone."""

    def __init__(
        self, optimizer: Any, milestones: Any, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """rate * gamma at a milestone."""
        return self.scaled(self.gamma ** self.milestones.get(self.last_epoch, 0))

    def _get_closed_form_lr(self) -> list[float]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times gamma each epoch."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """rate * gamma."""
        return self.scaled(self.gamma if self.last_epoch else 1)

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times factor for the first epochs."""

    def __init__(
        self,
        optimizer: Any,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(
                "Constant multiplicative factor expected to be between 0 and 1, but got "
                f"{factor}."
            )
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """rate * factor at first, and back at the end."""
        if self.last_epoch == 0:
            return self.scaled(self.factor)
        return self.scaled(1 / self.factor if self.last_epoch == self.total_iters else 1)

    def _get_closed_form_lr(self) -> list[float]:
        scale = 1.0 if self.last_epoch >= self.total_iters else self.factor
        return [base * scale for base in self.base_lrs]


class LinearLR(LRScheduler):
    """From one factor to another in equal steps."""

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or "
                f"equal to 1, but got {start_factor}."
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(
                "Ending multiplicative factor expected to be between 0 and 1, but got "
                f"{end_factor}."
            )
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """rate * (this factor / the last one)."""
        epoch, total, start = self.last_epoch, self.total_iters, self.start_factor
        if epoch == 0:
            return self.scaled(start)
        if epoch > total:
            return self.rates()
        rise = self.end_factor - start
        return self.scaled(1.0 + rise / (total * start + (epoch - 1) * rise))

    def _get_closed_form_lr(self) -> list[float]:
        done = min(self.last_epoch, self.total_iters) / self.total_iters
        scale = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base * scale for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Down to 0 by a power of what is left."""

    def __init__(
        self,
        optimizer: Any,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """rate * (what is left / what was left) ** power."""
        epoch, total = self.last_epoch, self.total_iters
        if epoch == 0 or epoch > total:
            return self.rates()
        left, before = 1.0 - epoch / total, 1.0 - (epoch - 1) / total
        return self.scaled((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[float]:
        left = 1.0 - min(self.last_epoch, self.total_iters) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Waves of a cosine between the initial rate and eta_min (Loshchilov and Hutter)."""

    def __init__(
        self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _wave(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def get_lr(self) -> list[float]:
        """What is above eta_min, times this wave / the last one."""
        epoch, low = self.last_epoch, self.eta_min
        if epoch == 0:
            return self.rates()
        if self._step_count == 1:
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            pairs = zip(self.rates(), self.base_lrs, strict=True)
            turn = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - low) * turn for lr, base in pairs]
        ratio = self._wave(epoch) / self._wave(epoch - 1)
        return [ratio * (lr - low) + low for lr in self.rates()]

    def _get_closed_form_lr(self) -> list[float]:
        half = self._wave(self.last_epoch) / 2
        return [self.eta_min + (base - self.eta_min) * half for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """One schedule after the other, changing at milestones."""

    def __init__(
        self, optimizer: Any, schedulers: Any, milestones: Any, last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler to be chained")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more "
                f"than the number of milestone points, but got {len(schedulers)} schedulers "
                f"and {len(milestones)} milestones"
            )
        if any(s.optimizer is not optimizer for s in schedulers):
            raise ValueError("all schedulers of SequentialLR must have its optimizer")
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        for group in optimizer.param_groups:  # as if none had begun
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0]._initial_step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self, epoch: Any = None) -> None:
        """A step of the schedule whose turn it is, from its beginning at a milestone."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i and self._milestones[i - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The states of all schedules, too."""
        return _with_parts(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state."""
        _load_parts(self, state_dict)


class ChainedScheduler(LRScheduler):
    """Several schedules at once."""

    def __init__(self, schedulers: Any, optimizer: Any = None) -> None:
        self._schedulers = list(schedulers)
        if not self._schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler")
        self.optimizer = optimizer or self._schedulers[0].optimizer
        if any(s.optimizer is not self.optimizer for s in self._schedulers):
            raise ValueError("all schedulers of ChainedScheduler must have its optimizer")
        self._last_lr = self.rates()

    def step(self, epoch: Any = None) -> None:
        """A step of each."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self.rates()

    def state_dict(self) -> dict[str, Any]:
        """The states of all schedules, too."""
        return _with_parts(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state."""
        _load_parts(self, state_dict)


def _with_parts(schedule: Any) -> dict[str, Any]:
    state = LRScheduler.state_dict(schedule)
    state["_schedulers"] = [s.state_dict() for s in schedule._schedulers]
    return state


def _load_parts(schedule: Any, state: dict[str, Any]) -> None:
    parts = state["_schedulers"]
    LRScheduler.load_state_dict(
        schedule, {k: v for k, v in state.items() if k != "_schedulers"}
    )
    for scheduler, part in zip(schedule._schedulers, parts, strict=True):
        scheduler.load_state_dict(part)
