"""A schedule that goes by a metric."""

from __future__ import annotations

import math
from typing import Any

from gradfn.optim.schedule import LRScheduler


class ReduceLROnPlateau(LRScheduler):
    """Times factor when a metric has not improved for some epochs."""

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        self.optimizer, self.mode, self.factor = optimizer, mode, factor
        self.patience, self.threshold, self.threshold_mode = (
            patience,
            threshold,
            threshold_mode,
        )
        n = len(optimizer.param_groups)
        several = isinstance(min_lr, (list, tuple))
        if several and len(min_lr) != n:
            raise ValueError(f"expected {n} min_lrs, got {len(min_lr)}")
        self.min_lrs = list(min_lr) if several else [min_lr] * n
        self.default_min_lr = None if several else min_lr
        self.cooldown, self.eps = cooldown, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = self.rates()

    def is_better(self, metric: float) -> bool:
        """Is it an improvement by more than the threshold?"""
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "rel":
            limit = (
                self.best * (1 - sign * self.threshold)
                if math.isfinite(self.best)
                else self.best
            )
        else:
            limit = self.best - sign * self.threshold
        return sign * metric < sign * limit

    @property
    def in_cooldown(self) -> bool:
        """Is it too early for bad epochs to count?"""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: Any = None) -> None:  # type: ignore[override]
        """Takes note of an epoch's metric."""
        metric = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(metric):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, low in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                new = max(float(group["lr"]) * self.factor, low)
                if group["lr"] - new > self.eps:
                    group["lr"] = new
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self.rates()
