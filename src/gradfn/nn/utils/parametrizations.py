"""Parametrizations that are ready: weight_norm, spectral_norm, orthogonal."""

from __future__ import annotations

from typing import Any

from gradfn.autograd.grad_mode import no_grad
from gradfn.nn import functional as F
from gradfn.nn.modules.module import Module
from gradfn.nn.utils.parametrize import register_parametrization
from gradfn.ops.world import PUBLIC

__all__ = ["spectral_norm", "weight_norm"]


def norm_except(v: Any, dim: int) -> Any:
    """The 2-norm over all dims but one (-1: over all)."""
    if dim == -1:
        return v.norm()
    dims = [d for d in range(v.dim()) if d != dim % v.dim()]
    return (v * v).sum(dims, keepdim=True).sqrt() if dims else v.abs()


class _WeightNorm(Module):
    """g * v / |v| (Salimans and Kingma, 2016)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        """The weight."""
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> Any:
        """Length and direction."""
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Computes a weight from its lengths along `dim` and its directions."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """A matrix divided by its largest singular value (Miyato et al., 2018).

    That is found by power iteration, which goes on at each use in training.
    """

    def __init__(
        self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + weight.dim()
        self.n_power_iterations, self.eps = n_power_iterations, eps
        if weight.dim() > 1:
            matrix = self._matrix(weight)
            rows, columns = matrix.shape
            for name, n in (("_u", rows), ("_v", columns)):
                start = PUBLIC["randn"](n, dtype=weight.dtype)
                self.register_buffer(name, F.normalize(start, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Any) -> Any:
        if self.dim:
            rest = [d for d in range(weight.dim()) if d != self.dim]
            weight = weight.permute(self.dim, *rest)
        return weight.flatten(1)

    def _iterate(self, matrix: Any, times: int) -> None:
        with no_grad():
            for _ in range(times):
                u = F.normalize(matrix @ self._v, dim=0, eps=self.eps)
                self._u.copy_(u)
                self._v.copy_(F.normalize(matrix.mT @ u, dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        """The weight, of norm 1."""
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(matrix @ v)

    def right_inverse(self, value: Any) -> Any:
        """The value itself."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Keeps the largest singular value of a weight at 1."""
    weight = getattr(module, name, None)
    if weight is None:
        raise ValueError(
            f"Module '{module}' has no parameter or buffer with name '{name}'"
        )
    if dim is None:
        dim = int(getattr(module, "transposed", False))
    made = _SpectralNorm(weight.detach(), n_power_iterations, dim, eps)
    return register_parametrization(module, name, made)
