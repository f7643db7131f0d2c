"""Bad arguments of every op: the exception is one of PyTorch's kinds, never NumPy's."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

import pytest
from bad_input import groups, some
from samples import inputs

import gradfn as torch
import gradfn.linalg

KINDS = {
    IndexError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    gradfn.linalg.LinAlgError,
}


def error_of(call: str, given: dict[str, Any]) -> Exception | None:
    """What the call raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, {"torch": torch, **given})
    except Exception as error:
        return error
    return None


def is_ours(error: Exception) -> bool:
    """Was it raised in gradfn, not by the text of the call itself?"""
    return traceback.extract_tb(error.__traceback__)[-1].filename != "<string>"


@pytest.mark.parametrize("group", groups(), ids=lambda g: g[0])
def test_the_kind_of_error(group: list[str]) -> None:
    arrays = inputs()
    for sample in group:
        for call in some(sample, 8):
            error = error_of(call, {k: torch.tensor(v) for k, v in arrays.items()})
            if error is None or not is_ours(error):
                continue
            if "Padding_idx must be" in str(error):
                continue  # an AssertionError, as in PyTorch
            assert type(error) in KINDS, f"{call}: {error!r}"
            assert str(error), call


MESSAGES = [
    (lambda x: x.diff("a"), TypeError, r"diff\(\): argument 'n' .* must be int, not str"),
    (lambda x: torch.diff(3), TypeError, r"diff\(\): argument 'input' .* not int"),
    (lambda x: x.sum(0, 1), TypeError, r"sum\(\): argument 'keepdim' .* must be bool"),
    (lambda x: x.softmax(1.5), TypeError, r"softmax\(\): argument 'dim'"),
    (lambda x: x.sum(float("nan")), TypeError, r"sum\(\): argument 'dim' .* not float"),
    (lambda x: x.sum(7), IndexError, "Dimension out of range"),
    (lambda x: x.sum(10**30), ValueError, "Overflow when unpacking long long"),
    (lambda x: torch.cat([x, 3]), TypeError, "expected Tensor as element 1"),
    (lambda x: torch.vstack([x, None]), TypeError, "NoneType"),
    (lambda x: torch.linalg.inv("a"), TypeError, r"linalg_inv\(\): argument 'A'"),
    (lambda x: torch.fft.fft(x, norm=3), TypeError, r"fft_fft\(\): argument 'norm'"),
    (lambda x: torch.special.xlog1py("a", x), TypeError, "must be Tensor, not str"),
    (lambda x: torch.nn.functional.gelu(3), TypeError, r"gelu\(\): argument 'input'"),
    (lambda x: torch.nn.functional.linear(x, x, 1.5), TypeError, "'bias'"),
    (
        lambda x: x.cumsum(0, nonsense=1),
        TypeError,
        "unexpected keyword argument 'nonsense'",
    ),
    (lambda x: x.bool() & 1.5, RuntimeError, "not implemented"),
    (lambda x: torch.ones(2, device="cuda"), RuntimeError, "device"),
    (lambda x: torch.ones(2, device="meta"), RuntimeError, "device"),
]


@pytest.mark.parametrize(("call", "kind", "words"), MESSAGES)
def test_the_message(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call(torch.ones(2, 2))


def test_what_a_user_raises_passes() -> None:
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            raise ValueError("my own")

    x = torch.ones(2).as_subclass(Loud)
    with pytest.raises(ValueError, match="my own"):
        x.diff()
    with pytest.raises(ValueError, match="my own"):
        torch.vstack([x, x])
