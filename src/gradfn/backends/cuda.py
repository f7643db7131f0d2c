"""torch.backends.cuda: not there."""

from __future__ import annotations


class _Switches:
    """Switches of matrix products on a GPU."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True


matmul = _Switches()


def is_built() -> bool:
    """False."""
    return False
