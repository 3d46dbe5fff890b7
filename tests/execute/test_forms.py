"""Plans count the filters that transformed weights replace, and batches that a model fixes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.execute.scratchpad import choose_winograd, missing_bytes
from deconv_ir.ir.scratchpad import UNLIMITED, AlgorithmCandidate, ScratchpadBudget
from deconv_ir.kernels import native, pack_convolution
from deconv_ir.kernels.plan import ConvolutionPlan, RunShapes
from deconv_ir.kernels.runtime.extension import compiled_module

pytestmark = pytest.mark.skipif(compiled_module() is None, reason="packs in C")

SAME = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
CHANNELS, EXTENT = 96, 14
K = 1 << 10


def layer(path: Path, layers: int = 2, batch: str = "?") -> tuple[Path, list[np.ndarray]]:
    """Write convolutions with large filters, whose weights are of similar sizes."""
    rng, ir = np.random.default_rng(3), IR()
    y = ir.parameter("x", f"{batch},{CHANNELS},{EXTENT},{EXTENT}")
    filters = []
    for _ in range(layers):
        shape = (CHANNELS, CHANNELS, 3, 3)
        weights = rng.uniform(0.02, 0.04, shape) * rng.choice([-1, 1], shape)
        filters.append(weights.astype(np.float32))
        assert filters[-1].nbytes > native.LARGE_BYTES
        y = ir.layer("Convolution", [y, ir.const(filters[-1])], SAME)
    ir.result(y, "y")
    return ir.save(path), filters


def convolve(x: np.ndarray, filters: Sequence[np.ndarray]) -> np.ndarray:
    """Convolve by the definition, in f64."""
    y = x.astype(np.float64)
    for weights in filters:
        padded = np.pad(y, [(0, 0), (0, 0), (1, 1), (1, 1)])
        seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        y = np.einsum("nchwij,ocij->nohw", seen, weights.astype(np.float64), optimize=True)
    return y


@pytest.fixture
def winograd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use Winograd where it is possible, whatever it costs."""
    monkeypatch.setenv("DECONV_IR_KERNEL", "winograd")


def draw(batch: int = 1) -> np.ndarray:
    x = np.random.default_rng(4).normal(size=(batch, CHANNELS, EXTENT, EXTENT))
    return x.astype(np.float32)


@pytest.mark.usefixtures("winograd")
def test_a_plan_has_either_form_of_a_filter_without_a_limit(tmp_path: Path) -> None:
    """With a limit it has both, since data with outliers need both."""
    path, filters = layer(tmp_path)
    free = deconv_ir.load(path)
    plan = free.bind([draw()]).plan
    limited = deconv_ir.load(path, memory_limit=1 << 40).bind([draw()]).plan
    assert "Winograd" in str(plan.steps[0].algorithm)
    assert limited.weight_bytes - plan.weight_bytes == sum(w.nbytes for w in filters)
    assert limited.peak_bytes - plan.peak_bytes == sum(w.nbytes for w in filters)
    (found,) = free.run([draw()]).values()
    np.testing.assert_allclose(found, convolve(draw(), filters), rtol=0, atol=1e-4)
    later = free.bind([draw(2)]).plan
    assert later.weight_bytes == plan.weight_bytes


@pytest.mark.usefixtures("winograd")
def test_shapes_in_turns_and_outliers_keep_their_results(tmp_path: Path) -> None:
    """Each run has the bits of a model that ran nothing else."""
    path, _ = layer(tmp_path)
    odd = draw(2)
    odd[1, 5, 3, 3] = 1e7
    inputs = [draw(), odd, draw(3)]
    kept = deconv_ir.load(path, memory_limit=1 << 40)
    expected = [next(iter(kept.run([x]).values())) for x in inputs]
    free = deconv_ir.load(path)
    for _ in range(2):
        for x, result in zip(inputs, expected, strict=True):
            (found,) = free.run([x]).values()
            np.testing.assert_array_equal(found, result)
    plan = free.bind([draw(4)]).plan
    assert plan.weight_bytes == kept.bind([draw(4)]).plan.weight_bytes


@pytest.mark.usefixtures("winograd")
def test_the_peak_of_a_free_plan_is_a_limit_that_runs(tmp_path: Path) -> None:
    path, filters = layer(tmp_path)
    peak = deconv_ir.load(path).bind([draw()]).plan.peak_bytes
    for limit in (peak, peak + filters[0].nbytes, 1 << 40):
        model = deconv_ir.load(path, memory_limit=limit)
        (found,) = model.run([draw()]).values()
        assert model.bind([draw()]).plan.peak_bytes <= limit
        np.testing.assert_allclose(found, convolve(draw(), filters), rtol=0, atol=1e-4)


def test_a_filter_that_is_replaced_leaves_memory_for_others() -> None:
    direct = AlgorithmCandidate(100 * K, K, 0)
    fast = AlgorithmCandidate(50 * K, K, 900 * K)
    replacing = fast._replace(filter_bytes=-500 * K)
    assert missing_bytes(replacing) == 400 * K
    assert missing_bytes(direct._replace(filter_bytes=500 * K)) == 500 * K
    assert missing_bytes(replacing._replace(packed=True)) == 0
    layers = {0: (direct, fast), 1: (direct, replacing), 2: (direct, replacing)}
    for budget, expected in ((401, [1]), (801, [1, 2]), (1700, [1, 2]), (1701, [1, 2, 0])):
        assert [g.layer for g in choose_winograd(layers, budget * K)] == expected


def test_algorithms_are_compared_for_a_batch_that_is_fixed() -> None:
    weights = np.ones((64, 64, 3, 3), np.float32)
    kernel = pack_convolution(weights, strides=(1, 1), dilations=(1, 1))

    def direct_cycles(batch: int, *, fixed: bool) -> float:
        budget = UNLIMITED._replace(fixed_batch=fixed)
        return kernel.plan((batch, 64, 20, 20), (1, 1), (20, 20), budget).candidates[0].cycles

    one = direct_cycles(1, fixed=False)
    assert direct_cycles(16, fixed=False) == direct_cycles(1, fixed=True) == one
    assert direct_cycles(16, fixed=True) > 4 * one


@pytest.mark.parametrize(("batch", "fixed"), [("?", False), ("1..32", False), ("16", True)])
def test_a_model_tells_whether_its_batch_is_fixed(
    batch: str, fixed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The algorithms of a model that leaves it open are chosen for one image."""
    seen: list[bool] = []
    plans = native.CompiledKernel.plan_shapes

    def watch(
        self: native.CompiledKernel, shapes: RunShapes, budget: ScratchpadBudget
    ) -> ConvolutionPlan:
        seen.append(budget.fixed_batch)
        return plans(self, shapes, budget)

    monkeypatch.setattr(native.CompiledKernel, "plan_shapes", watch)
    path, _ = layer(tmp_path, batch=batch)
    model = deconv_ir.load(path)
    assert model.bind(shapes={"x": (16, CHANNELS, EXTENT, EXTENT)}).plan.peak_bytes > 0
    assert any(seen) is fixed
