"""The modules."""

from __future__ import annotations

from gradfn.nn.modules.activation import *
from gradfn.nn.modules.adaptive import *
from gradfn.nn.modules.batchnorm import *
from gradfn.nn.modules.channelshuffle import *
from gradfn.nn.modules.container import *
from gradfn.nn.modules.conv import *
from gradfn.nn.modules.distance import *
from gradfn.nn.modules.dropout import *
from gradfn.nn.modules.flatten import *
from gradfn.nn.modules.fold import *
from gradfn.nn.modules.instancenorm import *
from gradfn.nn.modules.lazy import *
from gradfn.nn.modules.linear import *
from gradfn.nn.modules.linear_cross_entropy import *
from gradfn.nn.modules.loss import *
from gradfn.nn.modules.module import Module
from gradfn.nn.modules.normalization import *
from gradfn.nn.modules.padding import *
from gradfn.nn.modules.pixelshuffle import *
from gradfn.nn.modules.pooling import *
from gradfn.nn.modules.rnn import *
from gradfn.nn.modules.sparse import *
from gradfn.nn.modules.transformer import *
from gradfn.nn.modules.upsampling import *

__all__ = [
    name
    for name, value in globals().items()
    if isinstance(value, type) and issubclass(value, Module)
]
