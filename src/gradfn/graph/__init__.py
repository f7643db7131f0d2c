"""How gradients flow; knows no op. Importing it completes Tensor with its attributes."""

from gradfn.graph import properties  # noqa: F401
