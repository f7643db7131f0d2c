"""torch.optim: optimizers and schedules of their learning rates."""

from __future__ import annotations

from gradfn.optim import lr_scheduler
from gradfn.optim.algorithms import *
from gradfn.optim.asgd import ASGD
from gradfn.optim.lbfgs import LBFGS
from gradfn.optim.optimizer import Optimizer
from gradfn.optim.radam import RAdam
