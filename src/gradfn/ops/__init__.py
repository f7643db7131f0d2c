"""The ops: importing this package fills the table."""

from gradfn.ops import (  # noqa: F401
    compare,
    complexes,
    convert,
    create,
    elementwise,
    fill,
    finite,
    gather,
    grids,
    index,
    interop,
    join,
    late,
    matmul,
    matrices,
    override,
    pads,
    power,
    random,
    ranges,
    reduce,
    restride,
    scan,
    shape,
    softmax,
    sort,
    statistics,
    storage,
    strided,
    unary,
)
from gradfn.ops.methods import guard_methods
from gradfn.tensor import Tensor

guard_methods(vars(Tensor))
