"""gradfn standing in under the name torch, inside one process."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import Run

import gradfn
from gradfn import compat


def _is_torch(name: str) -> bool:
    return name.partition(".")[0] == "torch"


@pytest.fixture(autouse=True)
def _as_if_torch_had_not_been_imported() -> Iterator[None]:
    """The parity tests may have imported PyTorch in this process: put it aside."""
    aside = {name: sys.modules.pop(name) for name in [*filter(_is_torch, sys.modules)]}
    finders = list(sys.meta_path)
    yield
    compat.uninstall()
    assert not [*filter(_is_torch, sys.modules)]
    assert sys.meta_path == finders
    sys.modules.update(aside)


@pytest.fixture
def extra_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which ``gradfn.x`` is looked for as well."""
    before = set(sys.modules)
    monkeypatch.setattr(gradfn, "__path__", [*gradfn.__path__, str(tmp_path)])
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("gradfn.extra"):
            del sys.modules[name]
    for name in [name for name in vars(gradfn) if name.startswith("extra")]:
        delattr(gradfn, name)


# --- names that gradfn has ----------------------------------------------------------


def test_torch_is_gradfn() -> None:
    with compat.install():
        import torch
    assert torch is gradfn


def test_submodules_are_the_same_objects_in_every_spelling() -> None:
    with compat.install():
        import torch.autograd.function as by_alias
        from torch import autograd
        from torch.autograd import Function

        assert sys.modules["torch.autograd"] is gradfn.autograd is autograd
    assert by_alias is importlib.import_module("gradfn.autograd.function")
    assert Function is gradfn.autograd.Function


def test_modules_keep_their_identity() -> None:
    with compat.install():
        importlib.import_module("torch.autograd.function")
    module = gradfn.autograd.function
    assert module.__name__ == module.__spec__.name == "gradfn.autograd.function"
    assert module.__package__ == "gradfn.autograd"
    assert gradfn.__spec__.name == "gradfn"


def test_a_module_loads_when_it_is_imported_and_not_before(extra_module: Path) -> None:
    (extra_module / "extra_lazy.py").write_text("loaded = True\n")
    with compat.install():
        found = importlib.util.find_spec("torch.extra_lazy")
        assert found is not None
        assert found.origin == str(extra_module / "extra_lazy.py")
        assert "gradfn.extra_lazy" not in sys.modules
        module = importlib.import_module("torch.extra_lazy")
        assert module is sys.modules["gradfn.extra_lazy"]
        assert module.loaded


def test_an_attribute_that_is_a_module_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = types.ModuleType("gradfn.made")
    monkeypatch.setattr(gradfn, "made", made, raising=False)
    with compat.install():
        assert importlib.import_module("torch.made") is made


def test_find_spec_knows_torch() -> None:
    with compat.install():
        found = importlib.util.find_spec("torch")
        assert found is not None
        assert found.origin == gradfn.__file__


# --- names that gradfn lacks --------------------------------------------------------


def test_a_missing_module_is_said_to_be_gradfns() -> None:
    with compat.install():
        for statement in ("import torch.no_such", "from torch.no_such.x import y"):
            with pytest.raises(ModuleNotFoundError) as caught:
                exec(statement)
            assert caught.value.name == "torch.no_such"
            assert str(caught.value) == (
                "No module named 'torch.no_such': gradfn (standing in for torch) "
                "has no such module"
            )


def test_a_missing_name_is_said_to_be_gradfns() -> None:
    with compat.install():
        with pytest.raises(ImportError, match=r"'no_such' from 'gradfn'"):
            exec("from torch import no_such")
        with pytest.raises(ImportError, match=r"'no_such' from 'gradfn\.autograd'"):
            exec("from torch.autograd import no_such")
        with pytest.raises(AttributeError, match=r"gradfn.*no_such"):
            importlib.import_module("torch").no_such


def test_a_failing_module_of_gradfn_is_not_called_missing(extra_module: Path) -> None:
    (extra_module / "extra_broken.py").write_text("import no_such_dependency\n")
    with compat.install():
        with pytest.raises(ModuleNotFoundError) as caught:
            importlib.import_module("torch.extra_broken")
        assert caught.value.name == "no_such_dependency"
        assert "torch.extra_broken" not in sys.modules


def test_what_a_package_imports_for_itself_is_no_module_of_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gradfn, "np", importlib.import_module("numpy"), raising=False)
    with compat.install(), pytest.raises(ModuleNotFoundError, match="gradfn"):
        importlib.import_module("torch.np")


def test_a_function_is_not_replaced_by_the_module_that_it_hides() -> None:
    # gradfn/tensor.py and gradfn.tensor(); PyTorch has no module of that name
    function = gradfn.tensor
    with compat.install():
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("torch.tensor")
        assert importlib.import_module("torch").tensor is function


# --- install and uninstall ----------------------------------------------------------


def test_install_twice_is_harmless_and_the_first_decides() -> None:
    with compat.install():
        with compat.install():
            pass
        assert importlib.import_module("torch") is gradfn
        assert len(sys.meta_path) == len(set(map(id, sys.meta_path)))


def test_uninstall_twice_is_harmless() -> None:
    compat.install()
    compat.uninstall()
    compat.uninstall()


def test_install_refuses_when_pytorch_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    before = list(sys.meta_path)
    with pytest.raises(RuntimeError, match="already imported"):
        compat.install()
    assert sys.meta_path == before
    monkeypatch.undo()


def test_uninstall_restores_a_torch_that_was_blocked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with compat.install():
        assert importlib.import_module("torch") is gradfn
    assert sys.modules["torch"] is None
    monkeypatch.undo()


def test_an_exception_leaves_the_with_statement_and_undoes_it() -> None:
    with pytest.raises(ZeroDivisionError), compat.install():
        1 / 0
    assert "torch" not in sys.modules


def test_a_pytorch_that_is_installed_stays_hidden(tmp_path: Path, python: Run) -> None:
    (tmp_path / "torch.py").write_text("raise AssertionError('the real one')\n")
    ran = python(
        "-c",
        "import gradfn.compat; gradfn.compat.install(); import torch; "
        "print(torch.__name__); gradfn.compat.uninstall(); import torch",
    )
    assert ran.stdout == "gradfn\n"
    assert "the real one" in ran.stderr


def test_compat_is_not_loaded_by_gradfn(python: Run) -> None:
    ran = python("-c", "import sys, gradfn; print('gradfn.compat' in sys.modules)")
    assert ran.stdout == "False\n", ran.stderr
