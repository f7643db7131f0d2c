"""torch.backends: switches of libraries that gradfn does not use.

They keep what is written to them, and none is available.
"""

from __future__ import annotations

from gradfn._names import late as _late

_NAMES = ("cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum")
__getattr__ = _late(__name__, _NAMES)
