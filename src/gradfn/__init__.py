"""gradfn: PyTorch's autograd on NumPy."""

from typing import Any

from gradfn import ops
from gradfn.graph import properties
from gradfn import autograd
from gradfn.tensor import Tensor, Size
from gradfn.autograd.grad_mode import *
from gradfn.ops.world import PUBLIC

globals().update(PUBLIC)
