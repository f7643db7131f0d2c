"""What is saved comes back, and nothing in a file is executed."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradfn as torch


def same(a: Any, b: Any) -> bool:
    """Equal in type, value and all that is kept."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        grads = a.requires_grad == b.requires_grad
        return grads and a.dtype == b.dtype and torch.equal(a.detach(), b.detach())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


THINGS: dict[str, Any] = {
    "a": torch.arange(6.0).reshape(2, 3),
    "leaf": torch.ones(2, requires_grad=True),
    "parameter": torch.nn.Parameter(torch.zeros(1)),
    "nothing": torch.zeros(0, 3),
    "number": torch.tensor(3),
    "bool": torch.tensor([True, False]),
    "half": torch.ones(2, dtype=torch.float16),
    "complex": torch.tensor([1 + 2j]),
    "complexes": torch.tensor([[1 + 2j], [3j]], dtype=torch.complex128),
    "turned": torch.arange(6.0).reshape(2, 3).mT,
    "array": np.arange(3),
    "more": [1, 2.5, None, True, "text", (torch.ones(1), 1j), {"k": float("inf")}],
    "ordered": OrderedDict([(1, "one"), ((2, 3), torch.int64)]),
    "size": torch.Size([2, 3]),
}


@pytest.mark.parametrize("name", ["x.npz", "x.pt", "x.safetensors"])
def test_what_is_saved_comes_back(tmp_path: Path, name: str) -> None:
    torch.save(THINGS, tmp_path / name)
    assert same(torch.load(tmp_path / name), THINGS)
    for value in THINGS.values():
        torch.save(value, str(tmp_path / name))
        assert same(torch.load(tmp_path / name, map_location="cpu"), value)


def test_open_files_and_states(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 2)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    back = torch.load(file)
    other = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    other.load_state_dict(back["model"])
    assert torch.equal(other[0].weight, model[0].weight)
    second = torch.optim.Adam(other.parameters())
    second.load_state_dict(back["optimizer"])
    assert second.state[other[0].weight]["step"].item() == 1


def test_foreign_files_are_dicts_of_tensors(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.arange(3.0), b=np.ones((1, 2)))
    found = torch.load(tmp_path / "x.npz")
    assert found["a"].tolist() == [0, 1, 2]
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})
    data = np.array([1.0, 2.0], "<f4").tobytes()
    text = len(header).to_bytes(8, "little") + header.encode() + data
    (tmp_path / "x.safetensors").write_bytes(text)
    assert torch.load(tmp_path / "x.safetensors")["w"].tolist() == [1, 2]


def test_others_can_read_the_files(tmp_path: Path) -> None:
    torch.save({"layer.weight": torch.ones(2)}, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz", allow_pickle=False) as found:
        assert found["layer.weight"].tolist() == [1, 1]


class Evil:
    """An object whose unpickling runs code."""

    def __reduce__(self) -> Any:
        return pytest.fail, ("code in a file was executed",)


def test_nothing_is_executed(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="holds a pickle"):
        torch.load(path, weights_only=False)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="holds a pickle"):
        torch.load(path)
    np.savez(path.with_suffix(".npz"), a=np.array([Evil()], object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        torch.load(path.with_suffix(".npz"))
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="neither"):
        torch.load(path)


def test_what_is_no_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"given a Linear\..*state_dict"):
        torch.save(torch.nn.Linear(1, 1), tmp_path / "x.pt")
