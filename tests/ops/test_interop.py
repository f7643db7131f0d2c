"""NumPy's functions on tensors: they record, and hand back tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradfn

A = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
B = np.array([[1.0, 2.0, 0.5], [0.1, 3.0, 1.0]])

CALLS: list[Any] = [
    lambda x, y: np.sin(x),
    lambda x, y: np.add(x, y),
    lambda x, y: np.multiply(B, x),
    lambda x, y: B - x,
    lambda x, y: B / (x * x + 1),
    lambda x, y: B @ x.mT,
    lambda x, y: np.float64(2) ** x,
    lambda x, y: np.power(np.abs(x) + 1, 1.5),
    lambda x, y: np.logaddexp(x, y),
    lambda x, y: np.maximum(x, 0.3),
    lambda x, y: np.arctan2(x, y),
    lambda x, y: np.add.reduce(x),
    lambda x, y: np.add.reduce(x, axis=None),
    lambda x, y: np.maximum.reduce(x, axis=1, keepdims=True),
    lambda x, y: np.multiply.accumulate(x, axis=1),
    lambda x, y: np.subtract.outer(x, y),
    lambda x, y: np.sum(x),
    lambda x, y: np.sum(x, axis=(0, 1), keepdims=True),
    lambda x, y: np.mean(x, axis=0),
    lambda x, y: np.prod(x),
    lambda x, y: np.max(x, axis=-1),
    lambda x, y: np.std(x),
    lambda x, y: np.var(x, axis=1, ddof=1),
    lambda x, y: np.median(x, axis=1),
    lambda x, y: np.cumsum(x),
    lambda x, y: np.cumprod(x, axis=0),
    lambda x, y: np.concatenate([x, B, y], axis=1),
    lambda x, y: np.stack((x, y), axis=-1),
    lambda x, y: np.vstack([x, y]),
    lambda x, y: np.transpose(x),
    lambda x, y: np.reshape(x, (3, 2)),
    lambda x, y: np.moveaxis(x, 0, 1),
    lambda x, y: np.expand_dims(x, (0, -1)),
    lambda x, y: np.flip(x, 1),
    lambda x, y: np.flip(x),
    lambda x, y: np.tile(x, 2),
    lambda x, y: np.repeat(x, 2, axis=1),
    lambda x, y: np.roll(x, 1, 1),
    lambda x, y: np.split(x, [1], axis=1)[1],
    lambda x, y: np.take(x, [2, 0], axis=1),
    lambda x, y: np.where(A > 0, x, y),
    lambda x, y: np.clip(x, -0.5, 1.0),
    lambda x, y: np.clip(x, -0.5, None),
    lambda x, y: np.dot(x, np.transpose(y)),
    lambda x, y: np.tensordot(x, y, 2),
    lambda x, y: np.einsum("ij,kj->ik", x, B),
    lambda x, y: np.outer(x[0], y[1]),
    lambda x, y: np.sort(x, axis=0),
    lambda x, y: np.diagonal(x, 1),
    lambda x, y: np.linalg.norm(x),
    lambda x, y: np.linalg.inv(x @ x.mT),
    lambda x, y: np.linalg.solve(x @ np.transpose(x), y),
    lambda x, y: np.linalg.det(x @ x.mT),
    lambda x, y: np.trace(x @ x.mT),
    lambda x, y: np.squeeze(x[:1]),
    lambda x, y: np.nan_to_num(x),
    lambda x, y: np.triu(x),
]


@pytest.mark.parametrize("i", range(len(CALLS)))
def test_numpy_records(i: int) -> None:
    call = CALLS[i]
    x = gradfn.tensor(A, requires_grad=True)
    y = gradfn.tensor(B, requires_grad=True)
    out = call(x, y)
    expected = call(A, B)
    assert type(out) is gradfn.Tensor
    assert out.grad_fn is not None
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12)
    weights = np.random.default_rng(0).standard_normal(np.shape(expected))
    (out * gradfn.tensor(weights)).sum().backward()
    step = 1e-6
    for i in np.ndindex(A.shape):
        up, down = A.copy(), A.copy()
        up[i] += step
        down[i] -= step
        slope = ((call(up, B) - call(down, B)) * weights).sum() / (2 * step)
        assert x.grad[i].item() == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_tensors_without_gradient_give_tensors() -> None:
    x = gradfn.tensor([1.0, 4.0])
    assert type(np.sqrt(x)) is gradfn.Tensor
    assert np.sqrt(x).dtype is gradfn.float32
    assert (np.float64(2) * x).dtype is gradfn.float32
    assert (np.ones(2) * x).dtype is gradfn.float64
    assert np.divmod(x, 3)[1].tolist() == [1, 1]
    assert np.shape(x) == (2,)
    assert np.argmax(x).item() == 1


def test_what_gradfn_has_not_is_numpys() -> None:
    x = gradfn.tensor([3.0, 1.0, 2.0])
    assert type(np.ptp(x)) is not gradfn.Tensor or np.ptp(x).item() == 2
    assert np.digitize(x, [1.5]).tolist() == [1, 0, 1]
    assert np.spacing(x).dtype is gradfn.float32
    with pytest.raises(RuntimeError, match=r"numpy\.spacing: gradfn has no such op"):
        np.spacing(x.requires_grad_())
    with pytest.raises(TypeError, match="where= is not supported"):
        np.sin(x, where=np.array([True, False, True]))


def test_arrays_are_written() -> None:
    a = np.ones(2)
    a += gradfn.tensor([1.0, 2.0])
    assert type(a) is np.ndarray
    assert a.tolist() == [2, 3]
    out = gradfn.zeros(2)
    assert np.add(gradfn.ones(2), 1, out=out) is out
    assert out.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="requires grad"):
        a += gradfn.ones(2, requires_grad=True)


def test_memory_is_shared_both_ways() -> None:
    a = np.arange(3.0)
    t = gradfn.from_dlpack(a)
    t[0] = 9
    assert a[0] == 9
    b = np.from_dlpack(t)
    b[1] = 8
    assert t[1].item() == 8
    assert np.asarray(t).ctypes.data == t.data_ptr()
