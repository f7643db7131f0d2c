"""torch.autograd.profiler: what is measured, its sums, table and trace."""

from __future__ import annotations

import gzip
import json
import threading
from inspect import unwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import Run, function, leaf

import gradfn as torch
from gradfn.autograd.profiler import profile, record_function
from gradfn.autograd.profiler_util import EventList, memory_text, time_text
from gradfn.ops import instrument
from gradfn.ops.rule import TABLE

Square = function(
    lambda ctx, x: (ctx.save_for_backward(x), x * x)[1],
    lambda ctx, g: 2 * ctx.saved_tensors[0] * g,
)


def names(prof: profile) -> list[str]:
    return [event.name for event in prof.function_events]


def one(prof: profile, name: str) -> Any:
    (event,) = [e for e in prof.function_events if e.name == name]
    return event


# -- what is measured ----------------------------------------------------------------------


def test_ops_forward_and_nodes_backward_are_measured() -> None:
    x = leaf()
    with profile() as prof:
        (x * 2).exp().sum().backward()
    assert names(prof) == [
        "aten::mul",
        "aten::exp",
        "aten::sum",
        "autograd::engine",
        "SumBackward0",
        "ExpBackward0",
        "MulBackward0",
        "torch::autograd::AccumulateGrad",
    ]
    assert x.grad is not None


def test_custom_functions_are_measured_with_what_runs_inside() -> None:
    apply = Square.apply  # held since before
    x = leaf()
    with profile() as prof:
        apply(x).sum().backward()
    forward, backward = one(prof, "Mine"), one(prof, "MineBackward")
    assert [e.name for e in forward.cpu_children] == ["aten::mul"]
    assert [e.name for e in backward.cpu_children] == ["aten::mul", "aten::mul"]
    assert backward.cpu_parent.name == "autograd::engine"


def test_operators_methods_functions_and_in_place_forms_have_torchs_names() -> None:
    x = torch.ones(2)
    with profile() as prof:
        1 - x
        x.sub(1)
        torch.sub(x, 1)
        x.sub_(1)
        x **= 2
        torch.nn.functional.linear(torch.ones(1, 2), torch.ones(3, 2))
    assert names(prof)[:4] == ["aten::rsub", "aten::sub", "aten::sub", "aten::sub_"]
    assert "aten::linear" in names(prof)
    linear = one(prof, "aten::linear")
    assert {"aten::t", "aten::matmul"} <= {e.name for e in linear.cpu_children}


def test_an_op_that_is_called_for_the_first_time_is_measured() -> None:
    with profile() as prof:
        torch.special.log_ndtr(torch.ones(2))
        torch.logaddexp2(torch.ones(2), torch.ones(2))
    assert "aten::logaddexp2" in names(prof)


def test_blocks_have_names_of_their_own() -> None:
    @record_function("decorated")
    def work() -> Any:
        return x.sin()

    x = leaf()
    with profile() as prof:
        with record_function("block") as block:
            work()
        work()
    assert block.name == "block"
    assert names(prof) == ["block", "decorated", "aten::sin", "decorated", "aten::sin"]
    assert one(prof, "block").cpu_children[0].name == "decorated"
    assert one(prof, "block").is_user_annotation


def test_blocks_cost_nothing_to_programs_without_a_profile() -> None:
    with record_function("block"):
        y = leaf() * 2
    assert y.tolist() == [2, 4]


def test_grad_and_recorded_passes_are_measured() -> None:
    x = leaf(2.0)
    with profile() as prof:
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
    assert h.item() == 12
    assert names(prof).count("autograd::engine") == 2
    assert "PowBackward0" in names(prof)


def test_errors_pass_through_and_are_measured() -> None:
    def fail(ctx: Any, g: Any) -> Any:
        raise ValueError("boo")

    y = function(lambda ctx, x: x * 1, fail).apply(leaf()).sum()
    with profile() as prof:
        with pytest.raises(ValueError, match="boo"):
            y.backward()
        with pytest.raises(RuntimeError, match="must match the size"):
            torch.ones(2) + torch.ones(3)
    assert {"MineBackward", "aten::add"} <= set(names(prof))


def test_another_thread_is_left_alone() -> None:
    with profile() as prof:
        thread = threading.Thread(target=lambda: (leaf() * 2).sum().backward())
        thread.start()
        thread.join()
    assert names(prof) == []


def test_a_profile_inside_another() -> None:
    x = leaf()
    with profile() as outer:
        x.sin()
        with profile() as inner:
            x.cos()
        x.tan()
    assert names(inner) == ["aten::cos"]
    assert names(outer) == ["aten::sin", "aten::cos", "aten::tan"]


# -- while nobody measures ---------------------------------------------------------------


def test_everything_is_as_it_was_afterwards() -> None:
    from gradfn.autograd.backward import tensor_backward
    from gradfn.graph import engine

    torch.nn.functional.linear(torch.ones(1, 1), torch.ones(1, 1))
    matmul = unwrap(torch.matmul)
    watched = [
        *(row.function for row in TABLE.values()),
        torch.zeros,
        matmul,
        torch.var,
        torch.nn.functional.linear,
        torch.autograd.Function.apply.__func__,
        engine.backward,
        tensor_backward,
    ]
    parts = [(f.__code__, f.__defaults__, f.__kwdefaults__) for f in watched]
    spaces = [set(f.__globals__) for f in watched]
    with pytest.raises(ZeroDivisionError), profile():
        1 / (matmul.__code__ is parts[watched.index(matmul)][0])
    assert [(f.__code__, f.__defaults__, f.__kwdefaults__) for f in watched] == parts
    assert [set(f.__globals__) for f in watched] == spaces
    assert instrument._before == {}


def test_a_program_that_does_not_profile_loads_nothing_of_it(python: Run) -> None:
    code = (
        "import sys, gradfn as torch\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "(x * x).sum().backward()\n"
        "print([m for m in sys.modules if 'profiler' in m or 'instrument' in m])"
    )
    assert python("-c", code).stdout == "[]\n"


# -- times ---------------------------------------------------------------------------------


def test_self_times_are_without_what_runs_inside_and_add_up() -> None:
    with profile() as prof:
        Square.apply(leaf()).sum().backward()
    for event in prof.function_events:
        inner = sum(e.cpu_time_total for e in event.cpu_children)
        assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - inner)
        assert event.self_cpu_time_total >= 0
        start, end = event.time_range
        for child in event.cpu_children:
            assert start <= child.time_range.start <= child.time_range.end <= end
    top = [e for e in prof.function_events if e.cpu_parent is None]
    assert prof.self_cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in top))
    assert prof.self_cpu_time_total * 1000 <= prof.wall_ns


def test_sums_of_one_name() -> None:
    x = leaf()
    with profile() as prof:
        for _ in range(3):
            x.sin()
        x.cos()
    sums = {row.key: row for row in prof.key_averages()}
    assert [sums[k].count for k in ("aten::sin", "aten::cos")] == [3, 1]
    sines = [e for e in prof.function_events if e.name == "aten::sin"]
    total = sum(e.cpu_time_total for e in sines)
    assert sums["aten::sin"].cpu_time_total == pytest.approx(total)
    assert sums["aten::sin"].cpu_time == pytest.approx(total / 3)
    whole = prof.total_average()
    assert (whole.key, whole.count) == ("Total", 4)


def test_shapes_group() -> None:
    with profile(record_shapes=True) as prof:
        torch.ones(2, 3) @ torch.ones(3, 4)
        torch.ones(5, 3) @ torch.ones(3, 4)
        torch.ones(5, 3) @ torch.ones(3, 4)
    rows = prof.key_averages(group_by_input_shape=True)
    found = {str(r.input_shapes): r.count for r in rows if r.key == "aten::mm"}
    assert found == {"[[2, 3], [3, 4]]": 1, "[[5, 3], [3, 4]]": 2}
    assert [r.count for r in prof.key_averages() if r.key == "aten::mm"] == [3]


def test_lines_of_the_program_group(tmp_path: Path) -> None:
    with profile(with_stack=True) as prof:
        leaf().sin()
        leaf().sin()
    rows = prof.key_averages(group_by_stack_n=1)
    sines = [r for r in rows if r.key == "aten::sin"]
    assert len(sines) == 2
    assert all(__file__ in r.stack[0] for r in sines)
    path = tmp_path / "stacks"
    prof.export_stacks(str(path), "self_cpu_time_total")
    assert all(line.rsplit(" ", 1)[1].isdigit() for line in path.read_text().splitlines())
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(path), "memory")
    with profile() as bare, pytest.raises(RuntimeError, match="with_stack=True"):
        bare.export_stacks(str(path))


def test_memory_that_an_op_leaves_allocated() -> None:
    x = torch.ones(1000, 1000)
    with profile(profile_memory=True) as prof:
        y = x * 2
        z = (x + y).sum()
    product, total = one(prof, "aten::mul"), one(prof, "aten::sum")
    assert 4e6 <= product.cpu_memory_usage < 4.01e6
    assert abs(total.self_cpu_memory_usage) < 1e4
    assert prof.peak_bytes is not None
    assert 8e6 <= prof.peak_bytes < 9e6
    assert z.item() == 3e6
    assert "CPU Mem" in prof.table()


# -- the table -----------------------------------------------------------------------------


def test_the_table_has_torchs_columns_and_order() -> None:
    with profile() as prof:
        for _ in range(5):
            torch.ones(100, 100) @ torch.ones(100, 100)
        leaf().sin()
    rows = prof.key_averages()
    text = rows.table(sort_by="count", row_limit=1, header="mine")
    lines = text.splitlines()
    assert set(lines[0]) == {"="}
    assert lines[1] == "mine"
    heads = [" ".join(h.split()) for h in lines[3].split("  ") if h.strip()]
    assert heads == [
        "Name",
        "Self CPU %",
        "Self CPU",
        "CPU total %",
        "CPU total",
        "CPU time avg",
        "# of Calls",
    ]
    assert len(lines) == 8
    assert text.splitlines()[-1].startswith("Self CPU time total: ")
    assert "aten::sin" in rows.table()
    assert lines[5].split()[-1] == str(max(r.count for r in rows))


def test_rows_can_be_sorted_by_any_number_and_by_nothing_else() -> None:
    with profile() as prof:
        leaf().sin()
    prof.key_averages().table(sort_by="cuda_time_total")
    with pytest.raises(AttributeError, match="foo"):
        prof.key_averages().table(sort_by="foo")


def test_top_level_events_alone() -> None:
    with profile() as prof:
        Square.apply(leaf())
    text = prof.table(top_level_events_only=True)
    assert "Mine" in text
    assert "aten::mul" not in text


def test_times_and_bytes_as_torch_writes_them() -> None:
    assert [time_text(us) for us in (0.5, 12.0, 1234.5, 2.5e6)] == [
        "0.500us",
        "12.000us",
        "1.234ms",
        "2.500s",
    ]
    assert time_text(1500.0, "us") == "1500.000us"
    assert [memory_text(n) for n in (4, 2048, -3 << 20, 5 << 30)] == [
        "4 B",
        "2.00 KB",
        "-3.00 MB",
        "5.00 GB",
    ]


def test_an_empty_profile_is_a_table_without_rows() -> None:
    with profile() as prof:
        pass
    assert prof.function_events == []
    assert len(prof.table().splitlines()) == 5


# -- its life ------------------------------------------------------------------------------


def test_results_before_the_end_are_refused() -> None:
    prof = profile()
    with pytest.raises(RuntimeError, match="didn't finish running"):
        prof.key_averages()
    with prof:
        assert str(prof) == repr(prof) == "<unfinished torch.autograd.profile>"
        with pytest.raises(RuntimeError, match="didn't finish running"):
            prof.function_events
    with pytest.raises(RuntimeError, match="not reentrant"), prof:
        pass


def test_a_profile_that_is_not_enabled_measures_nothing() -> None:
    with profile(enabled=False) as prof:
        leaf().sin()
    assert isinstance(prof.function_events, EventList)
    assert prof.function_events == []


def test_there_is_no_cuda() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(use_cuda=True)


# -- traces --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_the_trace_has_each_event_and_arrows_to_backward(
    tmp_path: Path, name: str
) -> None:
    x = leaf()
    with profile(record_shapes=True) as prof:
        torch.nn.functional.linear(x[None], torch.ones(1, 2)).sum().backward()
        Square.apply(x)
    path = tmp_path / name
    prof.export_chrome_trace(str(path))
    content = path.read_bytes()
    trace = json.loads(gzip.decompress(content) if name.endswith("gz") else content)
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert [e["name"] for e in events] == names(prof)
    for drawn, event in zip(events, prof.function_events, strict=True):
        assert drawn["ts"] == event.time_range.start
        assert drawn["dur"] == pytest.approx(event.time_range.elapsed_us())
    assert {e["cat"] for e in events} == {"cpu_op", "custom_function"}
    assert any(e["args"].get("Input Dims") == [[1, 2], [1, 2]] for e in events)
    starts = {e["id"]: e["ts"] for e in trace["traceEvents"] if e["ph"] == "s"}
    ends = {e["id"]: e["ts"] for e in trace["traceEvents"] if e["ph"] == "f"}
    at = {e["ts"]: e["name"] for e in events}
    pairs = {(at[starts[i]], at[ends[i]]) for i in starts}
    assert ("aten::sum", "SumBackward0") in pairs
    assert ("aten::mm", "MmBackward0") in pairs


# -- values --------------------------------------------------------------------------------


def test_a_profile_changes_no_value() -> None:
    def train() -> tuple[list[float], Any]:
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
        )
        optimizer = torch.optim.Adam(net.parameters())
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = (net(torch.randn(4, 3)) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, [p.detach().numpy().copy() for p in net.parameters()]

    plain = train()
    with profile(record_shapes=True, profile_memory=True, with_stack=True):
        measured = train()
    assert plain[0] == measured[0]
    for a, b in zip(plain[1], measured[1], strict=True):
        np.testing.assert_array_equal(a, b)


def test_passes_may_nest_deeply() -> None:
    def backward(ctx: Any, g: Any) -> Any:
        if ctx.depth:
            with torch.enable_grad():
                inner = Nested.apply(leaf(), ctx.depth - 1).sum()
            inner.backward()
        return g, None

    def forward(ctx: Any, x: Any, depth: int) -> Any:
        ctx.depth = depth
        return x * 1

    Nested = function(forward, backward)
    y = Nested.apply(leaf(), 120).sum()
    with profile() as prof:
        y.backward()
    assert names(prof).count("MineBackward") == 121
