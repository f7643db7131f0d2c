"""torch.nn: networks and their parts."""

from __future__ import annotations

from gradfn.nn import common_types, functional, init, parallel, parameter, utils
from gradfn.nn.modules import *
from gradfn.nn.modules.module import Module
from gradfn.nn.parallel import DataParallel
from gradfn.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)
