"""The harness of the kernels' tests: problems, named or drawn, and their results by loops.

`tests/kernels/fuzz.py` draws from it as well.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.ir.scratchpad import ScratchpadBudget
from deconv_ir.kernels import naive, naive_convolution, pack_convolution, pack_deconvolution
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.bf16 import Bf16Kernel
from deconv_ir.kernels.native import supports
from deconv_ir.kernels.plan import ConvolutionKernel
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.runtime import cpu, extension
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES = {
    name: np.dtype(getattr(np, name, None) or getattr(ml_dtypes, name))
    for name in FLOATS + INTEGERS
}
OTHERS = [name for name in DTYPES if name != "float32"]
KINDS = ["convolution", "transposed"]
ISAS: list[str] = [] if compiled_module() is None else compiled_module().isas()
SCRATCH = 64 << 20
# Two names may describe one machine.
MACHINES = list({machine: name for name, machine in cpu.MACHINES.items()}.values())
# Relative to the sum of absolute products: half an ulp of the accumulator for each term, plus an
# ulp of the result, in case two sums lie on different sides of a tie.
TOLERANCE = {"float32": 2e-6, "float64": 4e-15, "float16": 1e-3, "bfloat16": 8e-3}


@contextmanager
def without_extension() -> Iterator[None]:
    """Compute as an installation that has no compiled kernel."""
    cpu.instruction_set()  # known from now on
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "deconv_ir.kernels._compiled", None)
        extension.load_extension.cache_clear()
        assert compiled_module() is None
        try:
            yield
        finally:
            extension.load_extension.cache_clear()


@contextmanager
def computing_with(isa: str | None) -> Iterator[None]:
    """Compute with an instruction set; None: without the extension."""
    if isa is None:
        with without_extension():
            yield
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DECONV_IR_ISA", isa)
            yield


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


def lazy_tensor(
    array: Any, part_bytes: int = 1 << 20, asked: list[tuple[int, int]] | None = None
) -> LazyTensor:
    """Return a lazy tensor of an array; its reads are appended to `asked`."""

    def read(start: int, stop: int) -> Any:
        if asked is not None:
            asked.append((start, stop))
        return array.reshape(-1)[start:stop].copy()

    return LazyTensor(array.shape, array.dtype, read, part_bytes)


def as_bf16(values: Any) -> Any:
    """Round f32 to bf16 by another library than the one under test."""
    with np.errstate(invalid="ignore", over="ignore"):
        return values.astype(ml_dtypes.bfloat16).astype(np.float32)


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

    def kernel(self, **options: Any) -> ConvolutionKernel:
        """Pack the filter for the kernel under test."""
        kind = pack_convolution if self.forward else pack_deconvolution
        return kind(self.filter, **self.static, **options)

    def actual(self, **options: Any) -> Any:
        """Compute by the kernel under test."""
        return self.kernel(**options).run(self.data, self.pads_begin, self.output)

    def rounded(self) -> Case:
        """Return the case whose data and filter are rounded to bf16."""
        data, weights = as_bf16(self.data), as_bf16(self.filter)
        return dataclasses.replace(self, data=data, filter=weights, answer=None, magnitude=None)

    @property
    def fits_bf16(self) -> bool:
        """Whether the compiled kernel has products of bf16 for it."""
        problem = Problem.of_filter(
            self.filter.shape, self.strides, self.dilations, self.groups, forward=self.forward
        )
        return self.data.dtype == np.float32 and supports(problem, self.data.dtype)

    def kernel_of_bf16(
        self,
        activation: Activation | None = None,
        *,
        adds: bool = False,
        scratch_bytes: int = SCRATCH,
    ) -> Bf16Kernel:
        """Pack the filter of f32 for products of bf16, whether they are faster or not."""
        problem = Problem.of_filter(
            self.filter.shape, self.strides, self.dilations, self.groups, forward=self.forward
        )
        return Bf16Kernel(
            problem,
            self.filter,
            self.bias,
            activation or Activation(),
            adds=adds,
            scratch_bytes=scratch_bytes,
        )

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


class Layer(NamedTuple):
    """A named layer: channels are those of one group, tuples run over the spatial axes."""

    groups: int
    channels_in: int
    channels_out: int
    extents: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    output: tuple[int, ...]

    def case(self, kind: str, dtype: np.dtype[Any], batch: int = 3) -> Case:
        """Draw arrays with a bias; the seed is made of the layer's numbers."""
        rng = np.random.default_rng([self.channels_in, self.channels_out, *self.extents])
        inputs, outputs = self.groups * self.channels_in, self.groups * self.channels_out
        forward = kind == "convolution"
        ends = (outputs, self.channels_in) if forward else (inputs, self.channels_out)
        return Case(
            random_array(rng, (batch, inputs, *self.extents), dtype),
            random_array(rng, (*ends, *self.kernel), dtype),
            random_array(rng, (outputs,), dtype),
            self.strides,
            self.dilations,
            self.groups,
            self.pads_begin,
            self.output,
            forward,
        )


def among_others(data: Any) -> Any:
    """Return a view of equal data whose neighbours in memory are NaN, or 7 for integers."""
    other = 7 if data.dtype.kind in "iu" else np.nan
    inside = np.full([n + 2 for n in data.shape], other, data.dtype)[(slice(1, -1),) * data.ndim]
    inside[...] = data
    return inside


def same_bits(found: Any, expected: Any, told: str = "") -> None:
    """Assert that arrays agree in every bit, signs of zeros and NaN included."""
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes(), told


def check_direct_sums(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the direct sums of each instruction set with the loops.

    Neither threads, small scratchpads and so other tiles, the other images, the layout of the data
    nor its neighbours in memory change a bit.
    """
    where = case.pads_begin, case.output
    around = among_others(case.data)
    for isa in ISAS:
        monkeypatch.setenv("DECONV_IR_ISA", isa)
        kernel = case.kernel(algorithm="direct")
        set_threads(1)
        found = kernel.run(case.data, *where)
        case.check(found)
        for threads, scratch_bytes in ((1, 1), (2, SCRATCH), (3, 8 << 10), (5, 1)):
            set_threads(threads)
            budget = ScratchpadBudget(scratch_bytes)
            same_bits(kernel.run(around, *where, budget=budget), found, isa)
        same_bits(kernel.run(around[-1:], *where), found[-1:], isa)
