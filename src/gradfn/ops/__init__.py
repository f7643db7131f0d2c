"""The ops: importing this package fills the table."""

from gradfn.ops import (  # noqa: F401
    compare,
    convert,
    create,
    elementwise,
    gather,
    index,
    join,
    matmul,
    override,
    random,
    reduce,
    scan,
    shape,
    sort,
    statistics,
    strided,
    unary,
)
