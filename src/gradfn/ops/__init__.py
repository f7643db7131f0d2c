"""The ops: importing this package fills the table."""

from gradfn.ops import (  # noqa: F401
    compare,
    convert,
    create,
    elementwise,
    override,
    reduce,
    shape,
    unary,
)
