"""The modules."""

from __future__ import annotations

from gradfn.nn.modules.activation import *
from gradfn.nn.modules.container import *
from gradfn.nn.modules.layer import *
from gradfn.nn.modules.loss import *
from gradfn.nn.modules.module import Module
