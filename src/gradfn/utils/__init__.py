"""torch.utils, as far as autograd needs it."""

from __future__ import annotations

from gradfn._names import late as _late

__getattr__ = _late(__name__, ("_pytree", "checkpoint", "data"))
