"""Differentiate a root that Newton's method found, without its iterations.

Kepler's equation E - e sin E = M gives a planet's place on its orbit. NumPy
solves it; the implicit function theorem gives the derivatives:

    dE/dM = 1 / (1 - e cos E)        dE/de = sin E / (1 - e cos E)
"""

import numpy as np
import torch


class EccentricAnomaly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mean_anomaly, eccentricity):
        M, e = mean_anomaly.numpy(), eccentricity.numpy()
        E = M.copy()
        for _ in range(20):
            E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
        solution = torch.from_numpy(E)
        ctx.save_for_backward(solution, eccentricity)
        return solution

    @staticmethod
    def backward(ctx, grad_output):
        E, e = ctx.saved_tensors
        slope = grad_output / (1 - e * torch.cos(E))
        return slope, (slope * torch.sin(E)).sum()


M = torch.tensor([0.2, 1.0, 2.5], dtype=torch.float64, requires_grad=True)
e = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
E = EccentricAnomaly.apply(M, e)
print("E:     ", E.detach())
print("solves the equation:", torch.allclose(E - e * torch.sin(E), M, rtol=1e-14))

dM, de = torch.autograd.grad(E.sum(), (M, e), create_graph=True)
print("dE/dM: ", dM.detach())
print("dE/de: ", de.detach())

# backward is made of differentiable operations, so second derivatives follow.
(curvature,) = torch.autograd.grad(dM.sum(), M)
print("d2E/dM2:", curvature)

# Central differences agree.
h = 1e-4
with torch.no_grad():
    after, before = (EccentricAnomaly.apply(M + s, e) for s in (h, -h))
    first = (after - before) / (2 * h)
    second = (after - 2 * E + before) / h**2
print("differences agree:", torch.allclose(dM, first), end=", ")
print(torch.allclose(curvature, second, atol=1e-6))
