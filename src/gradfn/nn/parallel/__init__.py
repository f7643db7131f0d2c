"""torch.nn.parallel: copies of a module on several GPUs. There is one CPU."""

from __future__ import annotations

from typing import Any

from gradfn.nn.modules.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """The module itself, called as it is: without a GPU PyTorch does no more either."""

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        if device_ids:
            from gradfn._device import check_device

            check_device("cuda")
        self.module, self.dim = module, dim
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module makes of the inputs."""
        return self.module(*inputs, **kwargs)
