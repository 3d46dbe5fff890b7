"""Seeded random problems, and their expected results computed by loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deconv_ir.kernels import naive, naive_convolution, pack_convolution, pack_deconvolution
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES = {
    name: np.dtype(getattr(np, name, None) or getattr(ml_dtypes, name))
    for name in FLOATS + INTEGERS
}
# Relative to the sum of absolute products: half an ulp of the accumulator for each term, plus an
# ulp of the result, in case two sums lie on different sides of a tie.
TOLERANCE = {"float32": 2e-6, "float64": 4e-15, "float16": 1e-3, "bfloat16": 8e-3}


def random_array(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """Draw normal floats, or integers over the whole range of the type, ends included."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, tuple(shape), dtype=dtype, endpoint=True)
    return rng.standard_normal(tuple(shape)).astype(dtype)


def random_filter(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """As random_array, but floats keep away from 0: Winograd refuses taps that almost vanish."""
    values = random_array(rng, shape, dtype)
    return values if dtype.kind in "iu" else (values + np.copysign(0.3, values)).astype(dtype)


@dataclass
class Case:
    """One transposed convolution, with extents and pads."""

    data: Any
    filter: Any
    bias: Any
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int
    pads_begin: tuple[int, ...]
    output: tuple[int, ...]
    forward: bool = False
    answer: Any = None
    magnitude: Any = None

    @property
    def static(self) -> dict[str, Any]:
        """The arguments with which the filter is packed."""
        return {
            "strides": self.strides,
            "dilations": self.dilations,
            "groups": self.groups,
            "bias": self.bias,
        }

    def expected(self) -> Any:
        """Compute the result by loops, once."""
        if self.answer is None:
            self.answer = self.by_loops(self.data, self.filter, self.bias)
        return self.answer

    def by_loops(self, data: Any, weights: Any, bias: Any) -> Any:
        """Compute the result by loops."""
        static = {name: value for name, value in self.static.items() if name != "bias"}
        static |= {"pads_begin": self.pads_begin, "output": self.output, "bias": bias}
        return (naive_convolution if self.forward else naive)(data, weights, **static)

    def actual(self, **options: Any) -> Any:
        """Compute by the kernel under test."""
        kind = pack_convolution if self.forward else pack_deconvolution
        kernel = kind(self.filter, **self.static, **options)
        return kernel.run(self.data, self.pads_begin, self.output)

    def largest(self) -> Any:
        """Bound the products that Winograd sums for each output channel.

        Its products mix the data of a window and the weights of a sub-convolution, so that an error
        is relative to the largest of them, which may not be part of the output.
        """
        data = np.abs(self.data.astype(np.float64)).max((*range(2, self.data.ndim),), initial=0)
        weights = np.abs(self.filter.astype(np.float64)).sum((*range(2, self.filter.ndim),))
        n, g = self.data.shape[0], self.groups
        split = weights.reshape(g, weights.shape[0] // g, weights.shape[1])
        if self.forward:
            split = split.swapaxes(1, 2)
        sums = np.einsum("ngi,gio->ngo", data.reshape(n, g, split.shape[1]), split).reshape(
            n, g * split.shape[2]
        )
        if self.bias is not None:
            sums = sums + np.abs(self.bias.astype(np.float64))
        return sums.reshape(*sums.shape, *(1,) * (self.data.ndim - 2))

    def check(self, actual: Any, algorithm: str = "") -> None:
        """Compare with the oracle: bit by bit for integers, by the sum of magnitudes for floats.

        If `algorithm` may be Winograd, the largest magnitudes are used.
        """
        expected = self.expected()
        assert actual.dtype == expected.dtype
        if expected.dtype.kind in "iu":
            np.testing.assert_array_equal(actual, expected)
            return
        difference = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        if algorithm in ("compiled", "winograd"):
            assert np.all(difference <= TOLERANCE[expected.dtype.name] * self.largest()), self
            return
        if self.magnitude is None:
            bias = None if self.bias is None else np.abs(self.bias.astype(np.float64))
            data, weights = (np.abs(a.astype(np.float64)) for a in (self.data, self.filter))
            self.magnitude = self.by_loops(data, weights, bias)
        least = float(ml_dtypes.finfo(expected.dtype).smallest_subnormal)
        bound = TOLERANCE[expected.dtype.name] * self.magnitude + least
        assert np.all(difference <= bound), self


def draw(
    seed: int, dtype: np.dtype[Any], axes: int | None = None, channels: int = 4, **fixed: Any
) -> Case:
    """Draw a problem of up to `channels` channels per group; `fixed` overrides drawn values."""
    rng = np.random.default_rng(seed)
    axes = axes or int(rng.integers(1, 5))

    def vector(low: int, high: int) -> tuple[int, ...]:
        return tuple(int(v) for v in rng.integers(low, high + 1, axes))

    kind = rng.choice(["plain", "groups", "depthwise"])
    groups = {"plain": 1, "groups": int(rng.integers(2, 4)), "depthwise": int(rng.integers(2, 6))}[
        kind
    ]
    channels_in = 1 if kind == "depthwise" else int(rng.integers(1, channels + 1))
    channels_out = 1 if kind == "depthwise" else int(rng.integers(1, channels + 1))
    extents = vector(0 if seed % 11 == 0 else 1, (12, 7, 4, 3)[axes - 1])
    kernel = fixed.get("kernel", vector(1, (9, 5, 3, 2)[axes - 1]))
    strides = fixed.get("strides", vector(1, 4))
    dilations = fixed.get("dilations", vector(1, 3))
    pads_begin = fixed.get("pads_begin", vector(-3, 7))
    natural = [
        s * (x - 1) + d * (k - 1) + 1
        for s, x, d, k in zip(strides, extents, dilations, kernel, strict=True)
    ]
    output = tuple(
        max(0, f - p + int(rng.integers(-4, 5))) for f, p in zip(natural, pads_begin, strict=True)
    )
    if seed % 7 == 5:
        output = extents  # as in typical networks
    batch = int(rng.integers(0, 4))
    return Case(
        random_array(rng, (batch, groups * channels_in, *extents), dtype),
        random_filter(rng, (groups * channels_in, channels_out, *kernel), dtype),
        random_array(rng, (groups * channels_out,), dtype) if rng.random() < 0.5 else None,
        strides,
        dilations,
        groups,
        pads_begin,
        fixed.get("output", output),
    )


def draw_odd(seed: int, dtype: np.dtype[Any]) -> Case:
    """Draw a problem of a shape that networks do not have, transposed or not.

    Up to six axes, of one or two positions each if they are many; extents of 0;
    pads that crop all of the data, or leave only the zeros around them.
    """
    rng = np.random.default_rng([seed, 7])
    axes = int(rng.integers(1, 7))

    def vector(low: int, high: int) -> tuple[int, ...]:
        return tuple(int(v) for v in rng.integers(low, high + 1, axes))

    groups = int(rng.integers(1, 4))
    channels_in, channels_out = (1, 1) if rng.random() < 0.4 else map(int, rng.integers(1, 4, 2))
    most = (9, 5, 3, 2, 2, 2)[axes - 1]
    extents = vector(int(rng.integers(0, 2)), most)
    kernel, strides, dilations = vector(1, most), vector(1, 5), vector(1, 5)
    pads_begin, output = vector(-9, 20) if seed % 2 else vector(-2, 4), vector(0, most + 4)
    forward = bool(rng.random() < 0.3)
    inputs, outputs = groups * channels_in, groups * channels_out
    first, second = (outputs, channels_in) if forward else (inputs, channels_out)
    return Case(
        random_array(rng, (int(rng.integers(0, 3)), inputs, *extents), dtype),
        random_array(rng, (first, second, *kernel), dtype),
        random_array(rng, (outputs,), dtype) if rng.random() < 0.5 else None,
        strides,
        dilations,
        groups,
        pads_begin,
        output,
        forward,
    )


def draw_leftovers(seed: int, dtype: np.dtype[Any]) -> Case:
    """Draw a problem that tiles do not divide evenly: many output channels on a tiny plane.

    One to three positions of an axis, or a single row; blocks of output channels that fill
    vectors in all tiles but the last, or in none.
    """
    rng = np.random.default_rng([seed, 9])
    axes = int(rng.integers(1, 3))
    groups, channels_in = int(rng.choice([1, 1, 1, 2])), int(rng.integers(1, 200))
    whole = int(rng.choice([1, 8, 8, 16]))
    channels_out = int(rng.integers(65, 601)) // groups // whole * whole
    extents = tuple(int(v) for v in rng.integers(1, 4, axes))
    if rng.random() < 0.3:
        extents = (*(1 for _ in extents[1:]), int(rng.integers(1, 20)))
    kernel = tuple(int(rng.choice([1, 1, 2, 3])) for _ in extents)
    strides = tuple(int(rng.choice([1, 1, 1, 2])) for _ in extents)
    pads_begin = tuple(int(rng.integers(0, k)) for k in kernel)
    forward = bool(rng.random() < 0.6)
    inputs, outputs = groups * channels_in, groups * channels_out
    first, second = (outputs, channels_in) if forward else (inputs, channels_out)
    return Case(
        random_array(rng, (int(rng.integers(1, 10)), inputs, *extents), dtype),
        random_filter(rng, (first, second, *kernel), dtype),
        random_array(rng, (outputs,), dtype) if rng.random() < 0.5 else None,
        strides,
        (1,) * axes,
        groups,
        pads_begin,
        tuple(map(max, extents, kernel)) if rng.random() < 0.3 else extents,
        forward,
    )


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    """Restore the number of threads after each test."""
    yield
    set_threads(None)


@pytest.fixture
def draw_odd_case() -> Callable[..., Case]:
    """Return the function that draws odd problems."""
    return draw_odd


@pytest.fixture
def draw_case() -> Callable[..., Case]:
    """Return the function that draws problems."""
    return draw


@pytest.fixture
def random_values() -> Callable[..., Any]:
    """Return the function that draws arrays of any dtype."""
    return random_array


@pytest.fixture(params=list(DTYPES))
def dtype(request: pytest.FixtureRequest) -> np.dtype[Any]:
    """Run the test for each element type."""
    return DTYPES[request.param]


@pytest.fixture(params=["direct", "winograd", "im2col", "gemm_col2im"])
def algorithm(request: pytest.FixtureRequest) -> str:
    """Run the test for each algorithm that is available."""
    if request.param in ("direct", "winograd") and compiled_module() is None:
        pytest.skip("the compiled kernel was not built")
    return str(request.param)


@pytest.fixture
def dtype_of() -> Callable[[str], np.dtype[Any]]:
    """Return a function from the name of a type to its dtype, NumPy's or not."""
    return DTYPES.__getitem__
