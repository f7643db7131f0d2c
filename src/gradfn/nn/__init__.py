"""torch.nn: networks and their parts."""

from __future__ import annotations

from gradfn.nn import functional, init, parameter, utils
from gradfn.nn.modules import *
from gradfn.nn.modules.module import Module
from gradfn.nn.parameter import Buffer, Parameter
