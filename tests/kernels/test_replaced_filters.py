"""Weights transformed for Winograd replace the packed filter, which is packed again on demand."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.ir.scratchpad import DIRECT, UNLIMITED, ScratchpadBudget
from deconv_ir.kernels import native
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.algorithm import Algorithm
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.runtime.extension import compiled_module

pytestmark = pytest.mark.skipif(compiled_module() is None, reason="packs in C")

RNG = np.random.default_rng(0)


class Layer(NamedTuple):
    """Filter, groups and stride of a layer, and whether it is a convolution."""

    filter: tuple[int, ...]
    groups: int
    stride: int
    forward: bool


LAYERS = {
    "deconvolution": Layer((96, 72, 4, 4), 1, 2, False),
    "convolution": Layer((70, 128, 3, 3), 1, 1, True),
    "groups": Layer((96, 70, 3, 4), 3, 2, False),
    "long kernel": Layer((64, 40, 5, 6), 1, 1, True),
    "one axis": Layer((160, 120, 6), 1, 2, False),
}


class Stored:
    """A filter that counts how often it is read."""

    def __init__(self, layer: Layer, *, is_reread: bool) -> None:
        rng = np.random.default_rng(1)
        # Weights of similar sizes: others are not transformed.
        size = rng.uniform(0.5, 1, layer.filter) * rng.choice([-1, 1], layer.filter)
        self.weights, self.reads = size.astype(np.float32), 0
        assert self.weights.nbytes >= native.LARGE_BYTES
        flat = self.weights.ravel()

        def read(first: int, last: int) -> np.ndarray:
            self.reads += first == 0
            return flat[first:last]

        lazy = LazyTensor(layer.filter, np.dtype(np.float32), read, is_reread=is_reread)
        steps = (layer.stride,) * (len(layer.filter) - 2)
        ones = (1,) * len(steps)
        self.problem = Problem.of_filter(
            layer.filter, steps, ones, layer.groups, forward=layer.forward
        )
        bias = rng.normal(size=self.problem.groups * self.problem.channels_out)
        self.kernel = native.CompiledKernel(
            self.problem,
            lazy,
            bias.astype(np.float32),
            Activation(),
            algorithm=Algorithm.WINOGRAD,
        )

    def run(self, data: np.ndarray, budget: ScratchpadBudget = UNLIMITED) -> np.ndarray:
        axes = range(len(self.problem.kernel))
        pads = (1,) * len(axes)
        if self.problem.forward:
            output = [data.shape[2 + i] + 3 - self.problem.kernel[i] for i in axes]
        else:
            stride, kernel = self.problem.strides, self.problem.kernel
            output = [stride[i] * (data.shape[2 + i] - 1) + kernel[i] - 2 for i in axes]
        return self.kernel.run(data, pads, output, None, budget)


def both(name: str) -> tuple[Stored, Stored]:
    """Return a layer that frees its packed filter, and one that does not."""
    return Stored(LAYERS[name], is_reread=True), Stored(LAYERS[name], is_reread=False)


def draw(layer: Stored, extent: int = 12, batch: int = 2) -> np.ndarray:
    problem = layer.problem
    extents = range(extent, extent + len(problem.kernel))
    channels = problem.groups * problem.channels_in
    return RNG.normal(size=(batch, channels, *extents)).astype(np.float32)


@pytest.mark.parametrize("name", LAYERS)
def test_results_are_those_of_a_filter_that_is_kept(name: str) -> None:
    freed, kept = both(name)
    data = draw(freed)
    filter_bytes = kept.kernel.packed_bytes
    for _ in range(2):
        np.testing.assert_array_equal(freed.run(data), kept.run(data))
    assert kept.kernel.packed_bytes - freed.kernel.packed_bytes == freed.weights.nbytes
    assert kept.kernel.packed_bytes > filter_bytes
    assert freed.reads == kept.reads == 1
    np.testing.assert_array_equal(freed.kernel.unpacked(), freed.weights)


@pytest.mark.parametrize("name", LAYERS)
def test_alternating_plans_read_the_filter_once_more(name: str) -> None:
    """A run of direct sums packs the filter again; from then on both forms are kept."""
    freed, kept = both(name)
    data, other = draw(freed), draw(freed, 15)
    for _ in range(3):
        for budget in (UNLIMITED, DIRECT):
            for x in (data, other):
                np.testing.assert_array_equal(freed.run(x, budget), kept.run(x, budget))
    assert freed.reads == 2
    assert freed.kernel.packed_bytes == kept.kernel.packed_bytes


@pytest.mark.parametrize("odd", [1e6, np.inf, np.nan])
@pytest.mark.parametrize("name", LAYERS)
def test_data_with_outliers_pack_the_filter_again(name: str, odd: float) -> None:
    """Their windows are summed directly."""
    freed, kept = both(name)
    data = draw(freed)
    freed.run(data)
    data[1, 3, 5] = odd
    for _ in range(3):
        np.testing.assert_array_equal(freed.run(data), kept.run(data))
    assert freed.reads == 2


def test_plans_count_what_is_packed() -> None:
    """Also before a run, and for the form that is missing."""
    freed, kept = both("convolution")
    data = draw(freed)
    filter_bytes = freed.weights.nbytes

    def planned(layer: Stored, budget: ScratchpadBudget) -> int:
        found = layer.kernel.plan(data.shape, (1, 1), data.shape[2:], budget).algorithm
        more = 0 if found.packed else found.weight_bytes + found.filter_bytes
        return layer.kernel.packed_bytes + more

    for layer, freed_bytes in ((freed, filter_bytes), (kept, 0)):
        expected = planned(layer, UNLIMITED)
        layer.kernel.run(data, (1, 1), data.shape[2:], None, UNLIMITED)
        assert layer.kernel.packed_bytes == expected == planned(layer, UNLIMITED)
        expected = planned(layer, DIRECT)
        assert expected == layer.kernel.packed_bytes + freed_bytes
        layer.kernel.run(data, (1, 1), data.shape[2:], None, DIRECT)
        assert layer.kernel.packed_bytes == expected == planned(layer, UNLIMITED)


def test_released_filters_are_read_again() -> None:
    freed, kept = both("deconvolution")
    data = draw(freed)
    expected = kept.run(data)
    before = freed.kernel.packed_bytes
    for _ in range(2):
        np.testing.assert_array_equal(freed.run(data), expected)
        freed.kernel.release()
        assert freed.kernel.packed_bytes == before
    assert freed.reads == 2


def test_candidates_do_not_depend_on_what_is_packed() -> None:
    freed, kept = both("convolution")
    data = draw(freed)

    def candidates(layer: Stored) -> Any:
        plan = layer.kernel.plan(data.shape, (1, 1), data.shape[2:])
        return [found._replace(packed=False) for found in plan.candidates]

    before = candidates(freed)
    assert candidates(kept) == before
    assert before[-1].filter_bytes == -freed.weights.nbytes
    freed.kernel.run(data, (1, 1), data.shape[2:], None, UNLIMITED)
    assert candidates(freed) == before


@pytest.mark.parametrize("name", ["deconvolution", "groups"])
def test_requests_at_once_share_the_forms(name: str) -> None:
    """Some need the filter while others free it, or find windows that need it."""
    freed, kept = both(name)
    work = [
        (draw(freed, extent), budget) for extent in (9, 12, 14) for budget in (UNLIMITED, DIRECT)
    ]
    work[2][0][0, 1, 4] = 1e6
    expected = [kept.run(*each) for each in work]
    wrong: list[int] = []

    def compute(first: int) -> None:
        for step in range(3 * len(work)):
            at = (first + step) % len(work)
            if not np.array_equal(freed.run(*work[at]), expected[at]):
                wrong.append(at)

    threads = [threading.Thread(target=compute, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert freed.reads <= 2
