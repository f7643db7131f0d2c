"""Storages, the classes of old, and in-place functions."""

from __future__ import annotations

import pytest

import gradfn as torch


def test_a_storage_is_the_memory_of_all_views() -> None:
    x = torch.arange(4.0)
    view = x[1:3]
    assert view.storage().tolist() == [0, 1, 2, 3]
    assert view.untyped_storage().nbytes() == 16
    assert view.storage().data_ptr() == x.data_ptr()
    assert len(x.untyped_storage()) == 16
    x.storage()[2] = 7
    assert view.tolist() == [1, 7]
    assert x.storage() == view.storage()
    assert x.storage() != x.clone().storage()
    assert repr(x[:1].clone().storage()) == (
        " 0.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 1]"
    )


def test_classes_of_old_make_and_know_tensors() -> None:
    assert torch.LongTensor([1.5, 2]).tolist() == [1, 2]
    assert torch.LongTensor([1]).dtype is torch.int64
    assert torch.FloatTensor(2, 3).shape == (2, 3)
    assert torch.DoubleTensor().shape == (0,)
    assert isinstance(torch.tensor([1]), torch.LongTensor)
    assert not isinstance(torch.tensor([1.0]), torch.LongTensor)
    assert torch.ones(1).type(torch.LongTensor).dtype is torch.int64
    with pytest.raises(TypeError, match=r"expected a tensor of torch\.int64"):
        torch.LongTensor(torch.ones(1))
    with pytest.raises(TypeError, match="must be a sequence"):
        torch.LongTensor(1.0)


def test_functions_that_write_in_place() -> None:
    x = torch.zeros(2)
    assert torch.cos_(x) is x
    assert x.tolist() == [1, 1]
    assert torch.clamp_(x, max=0.5).tolist() == [0.5, 0.5]
    assert torch.zero_(x).tolist() == [0, 0]


def test_as_subclass_keeps_memory_and_history() -> None:
    class Mine(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    y = (x * 2).as_subclass(Mine)
    assert type(y) is Mine
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(TypeError, match="subclass of Tensor"):
        x.as_subclass(int)
