"""The ops: importing this package fills the table."""

from gradfn.ops import (  # noqa: F401
    compare,
    complexes,
    convert,
    create,
    elementwise,
    gather,
    index,
    join,
    matmul,
    override,
    power,
    random,
    reduce,
    restride,
    scan,
    shape,
    sort,
    statistics,
    strided,
    unary,
)
