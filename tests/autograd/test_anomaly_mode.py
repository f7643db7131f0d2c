"""detect_anomaly: NaN in a gradient, and where the forward call stood."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from support import function, leaf

import gradfn as torch
from gradfn.autograd import detect_anomaly, set_detect_anomaly
from gradfn.autograd.anomaly_mode import is_anomaly_enabled


def fail(ctx: Any, g: Any) -> Any:
    raise ValueError("boo")


Fails = function(lambda ctx, x: x * 1, fail)


@pytest.fixture
def quiet() -> Iterator[None]:
    """Without the warning that comes with each error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Error detected")
        yield


# -- the mode --------------------------------------------------------------------------


def test_it_is_off_at_first() -> None:
    assert not is_anomaly_enabled()


def test_it_is_on_in_its_block() -> None:
    with detect_anomaly():
        inside = is_anomaly_enabled()
    assert (inside, is_anomaly_enabled()) == (True, False)


def test_it_can_be_switched() -> None:
    set_detect_anomaly(True)
    on = is_anomaly_enabled()
    set_detect_anomaly(False)
    assert (on, is_anomaly_enabled()) == (True, False)


def test_a_block_may_turn_it_off() -> None:
    with detect_anomaly(), set_detect_anomaly(False):
        assert not is_anomaly_enabled()


def test_it_is_as_before_after_an_error() -> None:
    with pytest.raises(KeyError), detect_anomaly():
        raise KeyError
    assert not is_anomaly_enabled()


def test_one_guard_serves_several_blocks() -> None:
    guard = detect_anomaly()
    with guard, guard:
        pass
    assert not is_anomaly_enabled()


def test_it_is_the_threads_own() -> None:
    seen = []
    with detect_anomaly():
        thread = threading.Thread(target=lambda: seen.append(is_anomaly_enabled()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_it_changes_no_result() -> None:
    x = leaf(1, 2)
    with detect_anomaly():
        (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]


# -- NaN -------------------------------------------------------------------------------


@pytest.mark.usefixtures("quiet")
def test_nan_in_a_gradient_raises_with_the_ops_name() -> None:
    with (
        pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values"),
        detect_anomaly(),
    ):
        leaf(-1).sqrt().backward()


@pytest.mark.usefixtures("quiet")
def test_nan_is_found_in_a_custom_function() -> None:
    bad = function(lambda ctx, x: x * 1, lambda ctx, g: g * float("nan"))
    with pytest.raises(RuntimeError, match="'MineBackward' returned"), detect_anomaly():
        bad.apply(leaf(1)).backward()


@pytest.mark.usefixtures("quiet")
def test_nan_is_found_with_create_graph() -> None:
    with pytest.raises(RuntimeError, match="returned nan values"), detect_anomaly():
        leaf(-1).sqrt().backward(create_graph=True)


@pytest.mark.usefixtures("quiet")
def test_the_error_says_which_argument_the_gradient_was_for() -> None:
    x, y = leaf(1), leaf(1)
    bad = function(lambda ctx, a, b: a + b, lambda ctx, g: (g, g * float("nan")))
    with pytest.raises(RuntimeError, match="in its 1th output"), detect_anomaly():
        bad.apply(x, y).backward()


def test_nan_may_be_let_through() -> None:
    x = leaf(-1)
    with detect_anomaly(check_nan=False):
        x.sqrt().backward()
    assert torch.isnan(x.grad).all()


def test_nan_in_a_value_is_no_error() -> None:
    x = leaf(1)
    with detect_anomaly():
        (x + float("nan")).backward()
    assert x.grad.item() == 1


@pytest.mark.usefixtures("quiet")
def test_infinities_are_found_if_asked_for() -> None:
    with pytest.raises(RuntimeError, match="inf values"), detect_anomaly(check_inf=True):
        leaf(0).sqrt().backward()


def test_infinities_are_no_error_else() -> None:
    x = leaf(0)
    with detect_anomaly():
        x.sqrt().backward()
    assert torch.isinf(x.grad).all()


# -- where forward stood ---------------------------------------------------------------


def build() -> Any:
    return Fails.apply(leaf(1))


def test_an_error_in_backward_warns_with_the_forward_traceback() -> None:
    text = r"Error detected in MineBackward. Traceback of forward call(?s:.*)in build"
    with (
        detect_anomaly(),
        pytest.warns(UserWarning, match=text),
        pytest.raises(ValueError, match="boo"),
    ):
        build().backward()


@pytest.mark.usefixtures("quiet")
def test_the_error_has_the_forward_traceback_as_a_note() -> None:
    with pytest.raises(ValueError, match="boo") as caught, detect_anomaly():
        build().backward()
    assert re.search(r"test_anomaly_mode\.py.*in build", caught.value.__notes__[0])


@pytest.mark.usefixtures("quiet")
def test_the_traceback_leaves_gradfns_own_frames_out() -> None:
    with pytest.raises(ValueError, match="boo") as caught, detect_anomaly():
        build().backward()
    assert "gradfn/ops" not in caught.value.__notes__[0]


@pytest.mark.usefixtures("quiet")
def test_an_error_in_a_second_derivative_tells_of_both_passes() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    made = function(forward, lambda ctx, g: Fails.apply(g * ctx.saved_tensors[0]))
    x = leaf(1)
    with detect_anomaly():
        (g,) = torch.autograd.grad(made.apply(x), x, create_graph=True)
        with pytest.raises(ValueError, match="boo") as caught:
            g.backward()
    assert "Previous calculation was induced by MineBackward" in caught.value.__notes__[0]


def test_what_was_recorded_outside_has_no_traceback() -> None:
    y = build()
    with pytest.raises(ValueError, match="boo") as caught, detect_anomaly():
        y.backward()
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.usefixtures("quiet")
def test_it_is_usable_after_an_error() -> None:
    x = leaf(1)
    with detect_anomaly():
        with pytest.raises(ValueError, match="boo"):
            build().backward()
        (x * 2).backward()
    assert x.grad.item() == 2
