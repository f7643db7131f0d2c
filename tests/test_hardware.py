"""What programs ask of hardware and compilers that gradfn has not: honest answers."""

from __future__ import annotations

from typing import Any

import pytest

import gradfn as torch


def test_there_is_no_gpu() -> None:
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == torch.cuda.memory_reserved() == 0
    assert not torch.cuda._initialized
    torch.cuda.empty_cache()
    torch.cuda.manual_seed_all(0)
    assert torch.cuda.get_rng_state_all() == []


@pytest.mark.parametrize("name", ["current_device", "mem_get_info", "synchronize"])
def test_what_needs_a_gpu_says_that_there_is_none(name: str) -> None:
    with pytest.raises(AssertionError, match="not compiled with CUDA enabled"):
        getattr(torch.cuda, name)()


def test_streams_cannot_be_made() -> None:
    with pytest.raises(RuntimeError, match="requires CUDA support"):
        torch.cuda.Stream()


def test_functions_come_back_from_the_compilers_as_they_are() -> None:
    def double(x: Any) -> Any:
        return 2 * x

    for way in (
        torch.jit.script,
        torch.jit.ignore,
        torch.jit.unused,
        torch.jit.export,
        torch.jit.script_if_tracing,
        torch.jit.ignore(drop=True),
        torch.compile,
        torch.compile(fullgraph=True),
        torch.compiler.disable,
        torch.amp.custom_fwd,
        torch.amp.custom_bwd(device_type="cuda"),
        torch.cuda.amp.custom_fwd(cast_inputs=torch.float32),
        torch.cuda.amp.custom_bwd,
    ):
        assert way(double) is double
    assert torch.jit.trace(double, torch.ones(1)) is double
    assert not torch.jit.is_scripting()
    assert not torch.jit._state._enabled


def test_compiled_files_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="no TorchScript"):
        torch.jit.load("model.pt")


def test_mixed_precision_warns_and_changes_nothing() -> None:
    with (
        pytest.warns(UserWarning, match="no mixed precision"),
        torch.autocast("cuda", dtype=torch.float16),
    ):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32
    with torch.autocast("cpu", enabled=False):
        pass
    with pytest.warns(UserWarning, match="Disabling"):
        scaler = torch.amp.GradScaler()
    p = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=1.0)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    assert p.item() == 0


def test_switches_keep_what_is_written() -> None:
    assert not torch.backends.cudnn.is_available()
    assert not torch.backends.mps.is_available()
    with torch.backends.cudnn.flags(benchmark=True):
        assert torch.backends.cudnn.benchmark
    assert not torch.backends.cudnn.benchmark


def test_threads_are_counted() -> None:
    before = torch.get_num_threads()
    assert before >= 1
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    with pytest.raises(RuntimeError, match="positive integer"):
        torch.set_num_threads(0)
    torch.set_num_threads(before)


def test_fork_rng_gives_the_stream_back() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    with torch.random.fork_rng():
        torch.rand(100)
    assert torch.equal(torch.rand(4), expected)
    with torch.random.fork_rng(enabled=False):
        torch.manual_seed(3)
    assert torch.equal(torch.rand(4), expected)
    with pytest.raises(AssertionError, match="CUDA"), torch.random.fork_rng([0]):
        pass
