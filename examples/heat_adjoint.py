"""Recover the conductivity of a rod from its final temperatures.

SciPy solves the heat equation u_t = (k u_x)_x with fixed ends; k is unknown in
three zones. The Function around the solver has a hand-derived adjoint:

    step      A(k) u[n+1] = u[n]                 A = I + dt/dx^2 K(k), tridiagonal
    adjoint   A(k) p[n]   = p[n+1]               A is symmetric; p starts as the
                                                 gradient of the loss
    gradient  dL/dk_j    -= dt/dx^2 (D p[n])_j (D u[n+1])_j

where D takes differences between neighbours, across each of the cells.
"""

import numpy as np
import torch
from scipy.linalg import solveh_banded

CELLS, STEPS, DT = 60, 40, 0.002
RATIO = DT * CELLS**2  # dt / dx^2 on a rod of length one


def matrix(k):
    """The upper bands of A for conductivities k, one for each cell."""
    bands = np.zeros((2, CELLS - 1))
    bands[0, 1:] = -RATIO * k[1:-1]
    bands[1] = 1 + RATIO * (k[:-1] + k[1:])
    return bands


def differences(u):
    return np.diff(u, prepend=0.0, append=0.0)


class HeatFlow(torch.autograd.Function):
    """Temperatures after STEPS implicit steps, from conductivities of cells."""

    @staticmethod
    def forward(ctx, conductivity, start):
        bands = matrix(conductivity.numpy())
        states = [start.numpy()]
        for _ in range(STEPS):
            states.append(solveh_banded(bands, states[-1]))
        ctx.bands, ctx.states = bands, states
        return torch.from_numpy(states[-1])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        adjoint = grad_output.numpy()
        gradient = np.zeros(CELLS)
        for state in ctx.states[:0:-1]:
            adjoint = solveh_banded(ctx.bands, adjoint)
            gradient -= RATIO * differences(adjoint) * differences(state)
        return torch.from_numpy(gradient), torch.from_numpy(adjoint)


place = np.linspace(0, 1, CELLS + 1)[1:-1]
start = torch.from_numpy(np.sin(np.pi * place) + 0.5 * np.sin(3 * np.pi * place))
zone = torch.from_numpy(np.arange(CELLS) * 3 // CELLS)
truth = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
measured = HeatFlow.apply(truth[zone], start)

# The adjoint against a central difference, for the middle zone.
guess = torch.ones(3, dtype=torch.float64, requires_grad=True)


def loss_of(zones):
    return ((HeatFlow.apply(zones[zone], start) - measured) ** 2).sum()


(gradient,) = torch.autograd.grad(loss_of(guess), guess)
h = torch.tensor([0.0, 1e-5, 0.0], dtype=torch.float64)
with torch.no_grad():
    difference = (loss_of(guess + h) - loss_of(guess - h)) / 2e-5
print(f"adjoint {gradient[1].item():.5f}, difference {difference.item():.5f}")

# Descent with momentum on the logarithms, which keeps conductivities positive.
log_k = torch.zeros(3, dtype=torch.float64, requires_grad=True)
velocity = torch.zeros_like(log_k)
for step in range(201):
    loss = loss_of(log_k.exp())
    (gradient,) = torch.autograd.grad(loss, log_k)
    velocity = 0.9 * velocity - 0.2 * gradient
    with torch.no_grad():
        log_k += velocity
    if step % 50 == 0:
        zones = ", ".join(f"{k:.4f}" for k in log_k.exp().tolist())
        print(f"step {step:3d}   loss {loss.item():.1e}   conductivities {zones}")
