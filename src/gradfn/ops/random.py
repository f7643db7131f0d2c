"""Random numbers: generators, and tensors filled from them.

Note [Random streams]
    Numbers come from NumPy's PCG64, so a seed gives other numbers than PyTorch's would;
    their distributions are the same. NumPy's random module is imported when the first
    number is drawn, which keeps `import gradfn` fast.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from gradfn._dtypes import INT64, default_dtype, to_numpy
from gradfn._state import TRANSFORMS, mode
from gradfn.graph.transforms import work
from gradfn.ops.create import _kind, _plain, checked, finished, wanted
from gradfn.ops.rule import op
from gradfn.ops.world import PUBLIC, public
from gradfn.tensor import Tensor, method, wrap

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_SEED = 67280421310721  # torch's, too


class Generator:
    """A source of random numbers with a state of its own."""

    def __init__(self, device: Any = "cpu") -> None:
        from gradfn._device import check_device
        from gradfn._device import device as device_type

        check_device(device)
        self.device = device_type(device)
        self._seed = DEFAULT_SEED
        self._source: Any = None

    @property
    def source(self) -> Any:
        """NumPy's generator."""
        if self._source is None:
            self._source = np.random.Generator(np.random.PCG64(self._seed))
        return self._source

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream that belongs to a seed; returns the generator."""
        self._seed = int(seed) % 2**64
        self._source = None
        return self

    def seed(self) -> int:
        """Starts a stream from a seed that cannot be foreseen, and returns that."""
        import secrets

        self.manual_seed(secrets.randbits(63))
        return self._seed

    def initial_seed(self) -> int:
        """The seed with which the stream was started."""
        return self._seed

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes, for `set_state`."""
        import pickle

        data = pickle.dumps((self._seed, self.source.bit_generator.state))
        return wrap(np.frombuffer(data, np.uint8).copy())

    def set_state(self, new_state: Tensor) -> Generator:
        """Goes on where `get_state` was called; returns the generator."""
        import pickle

        self._seed, state = pickle.loads(new_state._array.tobytes())
        self._source = None
        self.source.bit_generator.state = state
        return self

    def clone_state(self) -> Generator:
        """Another generator in the same state."""
        out = Generator()
        out.set_state(self.get_state())
        return out


PUBLIC["Generator"] = Generator
default_generator = PUBLIC["default_generator"] = Generator()


@public
def manual_seed(seed: int) -> Generator:
    """Starts the default generator's stream for a seed."""
    return default_generator.manual_seed(seed)


@public
def seed() -> int:
    """Starts the default generator from a seed that cannot be foreseen."""
    return default_generator.seed()


@public
def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


@public
def get_rng_state() -> Tensor:
    """The state of the default generator."""
    return default_generator.get_state()


@public
def set_rng_state(new_state: Tensor) -> None:
    """Sets the state of the default generator."""
    default_generator.set_state(new_state)


def source(generator: Any) -> Any:
    """NumPy's generator for the argument `generator`."""
    return (generator or default_generator).source


def drawing(function: F) -> F:
    """Decorates what draws: inside of vmap it does so as `randomness` says."""

    @wraps(function)
    def draw(*args: Any, **kwargs: Any) -> Any:
        if mode() & TRANSFORMS and work().batches:
            from gradfn.func.randomness import draw_in_vmap

            return draw_in_vmap(function, args, kwargs)
        return function(*args, **kwargs)

    return draw  # type: ignore[return-value]


# -- new tensors -----------------------------------------------------------------------


def uniform(shape: Any, dtype: Any, generator: Any) -> Any:
    """Numbers from [0, 1)."""
    if dtype.kind == "c":
        part = np.dtype("float32" if dtype.itemsize == 8 else "float64")
        return uniform(shape, part, generator) + 1j * uniform(shape, part, generator)
    if dtype.kind != "f":
        raise RuntimeError(f'"check_uniform_bounds" not implemented for {dtype}')
    work = dtype if dtype.itemsize > 2 else np.dtype("float32")
    return np.asarray(source(generator).random(shape, work)).astype(dtype, copy=False)


def gaussian(shape: Any, dtype: Any, generator: Any) -> Any:
    """Numbers from the standard normal distribution."""
    if dtype.kind == "c":
        part = np.dtype("float32" if dtype.itemsize == 8 else "float64")
        pair = gaussian(shape, part, generator) + 1j * gaussian(shape, part, generator)
        return (pair * np.sqrt(0.5)).astype(dtype)
    if dtype.kind != "f":
        raise RuntimeError(f'"normal_kernel_cpu" not implemented for {dtype}')
    work = dtype if dtype.itemsize > 2 else np.dtype("float32")
    drawn = source(generator).standard_normal(shape, work)
    return np.asarray(drawn).astype(dtype, copy=False)


def _of_shape(name: str, draw: Any, doc: str) -> None:
    def new(
        *size: Any, dtype: Any = None, generator: Any = None, **options: Any
    ) -> Tensor:
        size = size or (options.pop("size"),)
        return finished(draw(checked(size), wanted(dtype), generator), **options)

    new.__name__, new.__doc__ = name, f"{doc}, in a shape given as ints or one sequence."
    public(drawing(new))

    def like(
        input: Tensor, *, dtype: Any = None, generator: Any = None, **options: Any
    ) -> Tensor:
        return finished(
            draw(input._array.shape, _kind(input, dtype), generator), **options
        )

    like.__name__, like.__doc__ = (
        f"{name}_like",
        f"{doc}, in the tensor's shape and dtype.",
    )
    public(drawing(like))


_of_shape("rand", uniform, "Numbers from the uniform distribution on [0, 1)")
_of_shape("randn", gaussian, "Numbers from the standard normal distribution")


def _integers(low: Any, high: Any, shape: Any, dtype: Any, generator: Any) -> Any:
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    return np.asarray(source(generator).integers(low, high, shape)).astype(dtype)


@public
@drawing
def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    generator: Any = None,
    **options: Any,
) -> Tensor:
    """Integers from [low, high); `low` may be left out and is 0 then."""
    if size is None:
        low, high, size = 0, low, high
    kind = INT64 if dtype is None else to_numpy(dtype)
    return finished(_integers(low, high, checked((size,)), kind, generator), **options)


@public
@drawing
def randint_like(
    input: Tensor, low: int, high: Any = None, *, dtype: Any = None, **options: Any
) -> Tensor:
    """Integers from [low, high) in the tensor's shape and dtype."""
    if high is None:
        low, high = 0, low
    drawn = _integers(low, high, input._array.shape, _kind(input, dtype), None)
    return finished(drawn, **options)


@public
@drawing
def randperm(
    n: int, *, dtype: Any = None, generator: Any = None, **options: Any
) -> Tensor:
    """The integers below `n` in random order."""
    kind = INT64 if dtype is None else to_numpy(dtype)
    return finished(source(generator).permutation(n).astype(kind), **options)


@public
@drawing
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    **options: Any,
) -> Tensor:
    """Numbers from normal distributions whose mean or std may be tensors."""
    if size is not None:
        drawn = gaussian(checked((size,)), wanted(dtype), generator)
        return finished((drawn * std + mean).astype(drawn.dtype), **options)
    like = mean if isinstance(mean, Tensor) else std
    shape = np.broadcast_shapes(*(x.shape for x in (mean, std) if isinstance(x, Tensor)))
    kind = like._array.dtype if isinstance(like, Tensor) else default_dtype()
    drawn = wrap(gaussian(shape, kind, generator))
    return (drawn * std + mean).detach()


@public
@method
@drawing
def bernoulli(self: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """1 with the probability that each element (or `p`) gives, else 0."""
    chance = self._array if p is None else p
    if p is None and ((chance < 0) | (chance > 1)).any():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    drawn = source(generator).random(self._array.shape) < chance
    return wrap(np.asarray(drawn).astype(self._array.dtype))


@public
@method
@drawing
def multinomial(
    self: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Indices drawn with the weights in each row."""
    rows = np.atleast_2d(self._array).astype(np.float64)
    if (rows < 0).any() or not np.isfinite(rows).all():
        raise RuntimeError(
            "probability tensor contains either `inf`, `nan` or element < 0"
        )
    rng = source(generator)
    found = [
        rng.choice(rows.shape[1], num_samples, replacement, p=row / row.sum())
        for row in rows
    ]
    return wrap(np.array(found, INT64).reshape((*self._array.shape[:-1], num_samples)))


@public
@drawing
def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Counts from Poisson distributions with these rates."""
    drawn = source(generator).poisson(input._array)
    return wrap(np.asarray(drawn).astype(input._array.dtype))


# -- in place --------------------------------------------------------------------------

op(
    "_drawn(self, values)",
    lambda a, values: values,
    takes="values",
    function=False,
    method=False,
    inplace=True,
    node="Random",
    self=lambda g, xp: xp._zeros_like(g),
)


def _fill(name: str, draw: Any, defaults: dict[str, Any], doc: str) -> None:
    names = list(defaults)

    def fill(self: Tensor, *args: Any, generator: Any = None, **given: Any) -> Tensor:
        values = {**defaults, **dict(zip(names, args)), **given}
        plain = [_plain(values[n]) for n in names]
        drawn = draw(source(generator), self._array, *plain)
        return self._drawn_(wrap(np.asarray(drawn).astype(self._array.dtype)))  # type: ignore[no-any-return]

    fill.__name__, fill.__doc__ = name, doc
    method(drawing(fill))


def _random_ints(rng: Any, a: Any, low: Any, high: Any) -> Any:
    if high is None:
        if low:
            low, high = 0, low
        elif a.dtype.kind in "iu":
            high = int(np.iinfo(a.dtype).max)
        else:
            high = 2 ** {2: 11, 4: 24, 8: 53}.get(a.dtype.itemsize, 1)
    return rng.integers(low, high, a.shape)


_fill(
    "uniform_",
    lambda rng, a, low, high: rng.random(a.shape) * (high - low) + low,
    {"from": 0.0, "to": 1.0},
    "Writes numbers from the uniform distribution on [from, to).",
)
_fill(
    "normal_",
    lambda rng, a, mean, std: rng.standard_normal(a.shape) * std + mean,
    {"mean": 0.0, "std": 1.0},
    "Writes numbers from a normal distribution.",
)
_fill(
    "random_", _random_ints, {"from": 0, "to": None}, "Writes integers from [from, to)."
)
_fill(
    "exponential_",
    lambda rng, a, rate: rng.standard_exponential(a.shape) / rate,
    {"lambd": 1.0},
    "Writes numbers from an exponential distribution.",
)
_fill(
    "cauchy_",
    lambda rng, a, median, sigma: rng.standard_cauchy(a.shape) * sigma + median,
    {"median": 0.0, "sigma": 1.0},
    "Writes numbers from a Cauchy distribution.",
)
_fill(
    "log_normal_",
    lambda rng, a, mean, std: np.exp(rng.standard_normal(a.shape) * std + mean),
    {"mean": 1.0, "std": 2.0},
    "Writes numbers whose logarithm is normally distributed.",
)
_fill(
    "geometric_",
    lambda rng, a, p: rng.geometric(p, a.shape),
    {"p": 0.5},
    "Writes numbers of trials until the first success.",
)


@method
@drawing
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Writes 1 with probability `p` (a number or a tensor), else 0."""
    chance = p._array if isinstance(p, Tensor) else p
    drawn = source(generator).random(self._array.shape) < chance
    return self._drawn_(wrap(np.asarray(drawn).astype(self._array.dtype)))  # type: ignore[no-any-return]
