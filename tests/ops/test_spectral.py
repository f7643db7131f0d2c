"""Fourier transforms: what samples don't show."""

from __future__ import annotations

import pytest

import gradfn as torch


def test_empty_batches_have_empty_spectra() -> None:
    assert torch.fft.fft(torch.zeros(0, 4)).shape == (0, 4)
    assert torch.fft.rfft2(torch.zeros(0, 4, 5)).shape == (0, 4, 3)
    assert torch.fft.irfft(torch.zeros(2, 0, 4)).shape == (2, 0, 6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f, x: f.fft(x, 0), "Invalid number of data points"),
        (lambda f, x: f.irfft(x[:, :1]), "Invalid number of data points"),
        (lambda f, x: f.fft(x, norm="no"), "Invalid normalization mode"),
        (lambda f, x: f.rfft(x * 1j), "rfft expects a real input"),
        (lambda f, x: f.ihfft(x * 1j), "ihfft expects a real input"),
        (lambda f, x: f.fftn(x, (2, 2, 2)), "only has 2 dimensions"),
        (lambda f, x: f.fftn(x, (2, 2), (0,)), "must have the same length"),
        (lambda f, x: f.fftn(x, dim=(0, 0)), "dims must be unique"),
        (lambda f, x: f.rfftn(x, dim=()), "rfftn must transform at least one axis"),
        (lambda f, x: f.fft(x.half()), "Unsupported dtype"),
    ],
)
def test_what_cannot_be_transformed(call: object, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        call(torch.fft, torch.ones(3, 4))  # type: ignore[operator]


def test_dims_that_are_not_there() -> None:
    with pytest.raises(IndexError, match="out of range"):
        torch.fft.fft(torch.ones(3), dim=2)
    with pytest.raises(IndexError, match="no dimensions"):
        torch.fft.fft(torch.tensor(1.0))


def test_out_is_written() -> None:
    x = torch.randn(3, 4)
    out = torch.empty(3, 4, dtype=torch.complex64)
    assert torch.fft.fft(x, out=out) is out
    assert torch.equal(out, torch.fft.fft(x))


@pytest.mark.parametrize("transform", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_all_samples_of_a_batch_at_once(transform: str) -> None:
    x = torch.randn(5, 3, 4, dtype=torch.float64)
    f = getattr(torch.fft, transform)
    for dim in (0, 1):
        each = torch.stack([f(row, 6, dim) for row in x])
        assert torch.allclose(torch.func.vmap(lambda row: f(row, 6, dim))(x), each)  # noqa: B023


WINDOW = torch.hann_window(8, dtype=torch.float64)


def test_a_long_signal_has_the_derivative_of_its_spectra() -> None:
    # The margin is read through an index of many places.
    x = torch.randn(10, 100, dtype=torch.float64, requires_grad=True)
    y = torch.stft(x, 8, window=WINDOW, return_complex=True)
    y.abs().square().sum().backward()
    way = torch.randn(10, 100, dtype=torch.float64)

    def energy(h: float) -> float:
        at = x.detach() + h * way
        spectra = torch.stft(at, 8, window=WINDOW, return_complex=True)
        return float(spectra.abs().square().sum())

    slope = (energy(1e-5) - energy(-1e-5)) / 2e-5
    assert float((x.grad * way).sum()) == pytest.approx(slope, rel=1e-7)


def test_istft_is_the_inverse() -> None:
    x = torch.randn(2, 50, dtype=torch.float64)
    y = torch.stft(x, 8, window=WINDOW, return_complex=True)
    assert torch.allclose(torch.istft(y, 8, window=WINDOW, length=50), x)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_fft": 80, "center": False}, "expected 0 < n_fft"),
        ({"n_fft": 8, "hop_length": 0}, "expected hop_length > 0"),
        ({"n_fft": 8, "win_length": 9}, "0 < win_length <= n_fft"),
        ({"n_fft": 8, "win_length": 6}, "expected a 1D window tensor"),
        ({"n_fft": 8, "return_complex": None}, "requires the return_complex"),
    ],
)
def test_stft_refuses_sizes_that_do_not_fit(options: dict[str, int], words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        torch.stft(
            torch.ones(50), **{"return_complex": True, "window": WINDOW, **options}
        )


def test_stft_warns_of_a_missing_window() -> None:
    with pytest.warns(UserWarning, match="A window was not provided"):
        torch.stft(torch.ones(50), 8, return_complex=True)


def test_istft_refuses_gaps_and_other_sizes() -> None:
    y = torch.stft(torch.randn(50).double(), 8, window=WINDOW, return_complex=True)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        torch.istft(y, 8, window=WINDOW, center=False)
    with pytest.raises(RuntimeError, match="expected the frequency dimension"):
        torch.istft(y, 10, window=torch.ones(10))
    with pytest.raises(RuntimeError, match="complex-valued input"):
        torch.istft(y.real, 8, window=WINDOW)


def test_windows_refuse_bad_lengths_and_dtypes() -> None:
    with pytest.raises(RuntimeError, match="non-negative window_length"):
        torch.hann_window(-1)
    with pytest.raises(RuntimeError, match="expects floating point dtypes"):
        torch.hann_window(3, dtype=torch.int64)
    with pytest.raises(ValueError, match="non-negative window length, got M=-1"):
        torch.signal.windows.hann(-1)
    with pytest.raises(ValueError, match="Tau must be positive"):
        torch.signal.windows.exponential(3, tau=0)
