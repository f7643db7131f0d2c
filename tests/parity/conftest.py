"""PyTorch, as the parity tests use it: quiet, on one thread."""

from __future__ import annotations

import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of PyTorch's own import, which is not under test
    import torch


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)  # pytest-xdist takes the cores
