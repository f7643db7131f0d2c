"""vmap: dims, chunks, indices of each sample's own, random draws."""

from __future__ import annotations

from typing import Any

import pytest

import gradfn as torch
import gradfn.nn.functional as F
from gradfn.func import grad, vmap

X = torch.arange(24.0, dtype=torch.float64).reshape(2, 3, 4) - 9.5
ROWS = torch.tensor([[2, 0, -1], [1, 1, 0]])
COLUMNS = torch.tensor([[0, 3, 1], [2, -4, 2]])


def each(function: Any, *args: Any) -> Any:
    """One call after the other, stacked."""
    return torch.stack([function(*some) for some in zip(*args, strict=True)])


INDEXED = {
    "rows": lambda x, i, j: x[i],
    "row": lambda x, i, j: x[i[0]],
    "columns": lambda x, i, j: x[:, j],
    "from behind": lambda x, i, j: x[..., j],
    "places": lambda x, i, j: x[i, j],
    "a place": lambda x, i, j: x[i[0], j[1]],
    "apart": lambda x, i, j: x[None][:, i, :, None][..., j % 1],
    "with one for all": lambda x, i, j: x[i, torch.tensor([0, 1, 2])],
    "a table": lambda x, i, j: x[i.reshape(3, 1), j],
    "new dims": lambda x, i, j: x[None, i, 1:],
    "of one for all": lambda x, i, j: X[0][i],
}


@pytest.mark.parametrize("name", INDEXED)
def test_each_sample_has_an_index(name: str) -> None:
    f = INDEXED[name]
    assert torch.equal(vmap(f)(X, ROWS, COLUMNS), each(f, X, ROWS, COLUMNS))

    def loss(x: Any, i: Any, j: Any) -> Any:
        return (f(x, i, j) ** 2).sum() + x.sum() * 0

    got = vmap(grad(loss))(X, ROWS, COLUMNS)
    assert torch.allclose(got, each(grad(loss), X, ROWS, COLUMNS))


WRITTEN = {
    "rows": lambda x, i, j: x.__setitem__(i[1:], x[0] * 2),
    "a row": lambda x, i, j: x.__setitem__(i[0], 7.0),
    "columns": lambda x, i, j: x.__setitem__((slice(1, None), j[:2]), x[:2, :2]),
    "places": lambda x, i, j: x.__setitem__((i[:2], j[:2]), x[0, :2] * 3),
    "added": lambda x, i, j: x.index_put_((i, j), x[0, :3] * 3, accumulate=True),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_each_sample_is_written_at_an_index(name: str) -> None:
    def f(x: Any, i: Any, j: Any) -> Any:
        x = x * 1
        WRITTEN[name](x, i, j)
        return x * x

    assert torch.equal(vmap(f)(X, ROWS, COLUMNS), each(f, X, ROWS, COLUMNS))
    g = grad(lambda *args: f(*args).sum())
    assert torch.allclose(vmap(g)(X, ROWS, COLUMNS), each(g, X, ROWS, COLUMNS))


def test_index_put_gives_a_copy() -> None:
    def f(x: Any, i: Any) -> Any:
        return x.index_put((i[:2],), x[0])

    assert torch.equal(vmap(f)(X, ROWS), each(f, X, ROWS))


def test_an_index_outside_is_found_in_any_sample() -> None:
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0"):
        vmap(lambda x, i: x[i])(X, torch.tensor([[0], [3]]))


def test_losses_of_classes_of_each_sample() -> None:
    logits, classes = X[:, 0], torch.tensor([1, 3])

    def loss(x: Any, c: Any) -> Any:
        return F.cross_entropy(x, c)

    got = vmap(grad(loss))(logits, classes)
    assert torch.allclose(got, each(grad(loss), logits, classes))
    hot = vmap(lambda c: F.one_hot(c, 4))(classes)
    assert torch.equal(hot, F.one_hot(classes, 4))


def test_functions_of_values_run_sample_by_sample() -> None:
    lines = X.reshape(2, -1)[:, :6]
    for f in (
        lambda t: torch.searchsorted(t, t * 0.5),
        lambda t: torch.bucketize(t, torch.tensor([-3.0, 0.0], dtype=torch.float64)),
        lambda t: t.histc(3),
        lambda t: torch.isin(t, t[:2]),
        lambda t: torch.linalg.matrix_rank(t.reshape(2, 3)),
        lambda t: torch.linalg.lstsq(t.reshape(3, 2), t[:3]).solution,
    ):
        assert torch.allclose(vmap(f)(lines), each(f, lines))
        nested = vmap(vmap(f))(torch.stack([lines, lines]))
        assert torch.allclose(nested[1], each(f, lines))


# -- dims and chunks -----------------------------------------------------------------------


def test_out_dims_none_passes_things_on() -> None:
    shared = torch.ones(2)
    got = vmap(lambda x: (x * 2, shared, "text"), out_dims=(-1, None, None))(X)
    assert torch.equal(got[0], (X * 2).movedim(0, -1))
    assert got[1] is shared
    assert got[2] == "text"


@pytest.mark.parametrize("size", [1, 2, 5, 7])
def test_chunks_are_joined(size: int) -> None:
    x = torch.arange(10.0).reshape(2, 5)
    chunked = vmap(lambda t: (t.sin(), None), 1, (1, None), chunk_size=size)
    got, nothing = chunked(x)
    assert torch.equal(got, x.sin())
    assert nothing is None


def test_views_and_strides_are_those_of_a_sample() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen[:] = [x.is_contiguous(), x.stride(), x.shape]
        return x.reshape(-1)

    turned = X.movedim(0, -1)
    assert torch.equal(vmap(f, in_dims=-1)(turned), X.reshape(2, -1))
    assert seen == [True, (4, 1), (3, 4)]
    vmap(f)(X.mT)
    assert seen == [False, (1, 4), (4, 3)]
    part = vmap(lambda x: x.as_strided((2, 2), (1, 1), 1))(X)
    assert torch.equal(part[1], X[1].clone().as_strided((2, 2), (1, 1), 1))


@pytest.mark.filterwarnings("ignore:Error detected")
def test_anomaly_mode_looks_into_samples() -> None:
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values"),
    ):
        vmap(grad(lambda x: x.sqrt()))(-torch.ones(3))


# -- random draws --------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [None, 2])
def test_the_same_numbers_for_all(chunk: Any) -> None:
    def f(x: Any) -> Any:
        return x * 0 + torch.rand(4) + F.dropout(torch.ones(4))

    got = vmap(f, randomness="same", chunk_size=chunk)(torch.zeros(6, 4))
    assert (got == got[0]).all()


def test_other_numbers_for_each() -> None:
    def f(x: Any) -> Any:
        out = x.clone().normal_() + torch.binomial(x + 50, x + 0.5) + F.dropout(x + 1)
        return out + F.alpha_dropout(x, training=True)

    got = vmap(f, randomness="different")(torch.zeros(5, 8))
    assert len({tuple(row) for row in got.tolist()}) == 5


def test_a_draw_into_each_sample_may_be_the_same() -> None:
    got = vmap(lambda x: x.normal_(), randomness="same")(torch.zeros(3, 4))
    assert (got == got[0]).all()
    assert float(got.abs().sum()) > 0


def test_binomial_counts_successes() -> None:
    torch.manual_seed(0)
    drawn = torch.binomial(torch.full((2000,), 10.0), torch.tensor(0.3))
    assert abs(float(drawn.mean()) - 3) < 0.2
    assert float(drawn.max()) <= 10
    with pytest.raises(RuntimeError, match="same floating-point dtype"):
        torch.binomial(torch.tensor([1]), torch.tensor([0.5]))


def test_one_index_for_all_and_one_value_for_all() -> None:
    def f(x: Any, value: Any) -> Any:
        x = x * 1
        x[:, torch.tensor([2, 0])] = value
        return x

    value = torch.ones(1, 3, 2, dtype=torch.float64)
    got = vmap(f, (0, None))(X, value)
    assert torch.equal(got, torch.stack([f(x, value) for x in X]))


def test_strides_of_samples_of_samples() -> None:
    nested = torch.stack([X, X * 2])
    got = vmap(vmap(lambda x: x.as_strided((2, 2), (4, 1))))(nested)
    assert torch.equal(got, nested[..., :2, :2])
