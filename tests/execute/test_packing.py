"""Filters are packed in the background during planning: plans and results do not change."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.kernels import background_packer, native, set_threads
from deconv_ir.kernels.runtime.extension import compiled_module

pytestmark = pytest.mark.skipif(compiled_module() is None, reason="packs in C")

SAME = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
CHANNELS, SIZE = 96, 20


def even(weights: np.ndarray) -> None:
    """Return the weights unchanged."""


def without_a_tap(weights: np.ndarray) -> None:
    """Remove a tap: such filters are not transformed for Winograd."""
    weights[7, :, 1, 2] = 0


def infinite(weights: np.ndarray) -> None:
    weights[3, 5, 0, 0] = np.inf


def network(folder: Path, change: Callable[[np.ndarray], None]) -> Path:
    """Build three convolutions with filters large enough to be read in C, then a smaller one.

    The second filter is changed; the last two are equal.
    """
    rng, ir = np.random.default_rng(3), IR()
    y = ir.parameter("x", f"1,{CHANNELS},{SIZE},{SIZE}")
    filters = [
        rng.normal(0, 0.03, (n, CHANNELS, 3, 3)).astype(np.float32)
        for n in (CHANNELS, CHANNELS, CHANNELS, 4)
    ]
    assert filters[0].nbytes > native.LARGE_BYTES > filters[3].nbytes
    change(filters[1])
    for weights in (*filters[:3], filters[2], filters[3]):
        y = ir.layer("Convolution", [y, ir.const(weights)], SAME)
    ir.result(y)
    return ir.save(folder)


@pytest.fixture(autouse=True)
def two_threads():
    """Use two threads: one for the caller, one that packs."""
    set_threads(2)
    yield
    set_threads(None)


def run(path: Path) -> tuple[str, np.ndarray]:
    """Return the plan as text, and the output."""
    model = deconv_ir.load(path)
    x = np.random.default_rng(4).normal(size=(1, CHANNELS, SIZE, SIZE)).astype(np.float32)
    bound = model.bind([x])
    plan = bound.plan
    shown = "\n".join(map(str, (*(step.algorithm for step in plan.steps), plan.peak_bytes)))
    (y,) = bound.run().values()
    return shown, y


@pytest.mark.parametrize(
    ("change", "outcomes"), [(even, {0}), (without_a_tap, {0, 1}), (infinite, {2})]
)
def test_plans_and_results_are_those_of_filters_packed_at_once(
    change: Callable[[np.ndarray], None],
    outcomes: set[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second layer without a tap is planned again where Winograd would be faster."""
    path = network(tmp_path, change)
    found: list[int] = []

    class Watched:
        """A packer that records its results."""

        def __init__(self) -> None:
            self._packer = background_packer()
            self.add = self._packer.add

        def finish(self) -> int:
            found.append(self._packer.finish())
            return found[-1]

    monkeypatch.setattr("deconv_ir.kernels.background_packer", Watched)
    shown, y = run(path)
    assert len(found) == 1
    assert set(found) <= outcomes
    monkeypatch.setattr("deconv_ir.kernels.background_packer", lambda: None)
    expected_plan, expected = run(path)
    assert len(found) == 1
    assert shown == expected_plan
    np.testing.assert_array_equal(y, expected)


def test_layers_are_planned_again_where_weights_are_not_fit_for_winograd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Winograd is forced here, so that the choice does not depend on the processor."""
    monkeypatch.setenv("DECONV_IR_KERNEL", "winograd")
    counts = []
    for change in (even, without_a_tap):
        path = network(tmp_path, change)
        shown, _ = run(path)
        set_threads(1)  # without a packer; plans are made for two threads, however many run
        counts.append(shown.count("Winograd"))
        assert counts[-1] == run(path)[0].count("Winograd")
        set_threads(2)
    assert counts[0] > counts[1] > 0


def test_a_file_that_becomes_too_short_is_one_error(tmp_path: Path) -> None:
    model = deconv_ir.load(network(tmp_path, even))
    with (tmp_path / "model.bin").open("r+b") as file:
        file.truncate(500_000)
    for _ in range(2):
        with pytest.raises(deconv_ir.WeightsError, match="cut short"):
            _ = model.bind().plan


def layer(path: Path, packer: object) -> native.CompiledKernel:
    """Prepare a layer whose filter lies in a file."""
    from deconv_ir.ir.lazy_tensor import LazyTensor
    from deconv_ir.kernels.activation import Activation
    from deconv_ir.kernels.problem import Problem

    shape = (64, 64, 5, 5)
    weights = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    weights.tofile(path)
    descriptor = os.open(path, os.O_RDONLY)
    flat = weights.ravel()
    lazy = LazyTensor(
        shape, weights.dtype, lambda first, last: flat[first:last], file=(descriptor, 0)
    )
    problem = Problem.of_filter(shape, (1, 1), (1, 1), 1, forward=True)
    return native.CompiledKernel(problem, lazy, None, Activation(), packer=packer)


def test_what_a_packer_leaves_undone_is_packed_later(tmp_path: Path) -> None:
    """A packer that is dropped releases the layer; one that has finished accepts no more layers."""
    packer = background_packer()
    kernel = layer(tmp_path / "a", packer)
    assert not kernel.is_filled
    del packer
    expected = layer(tmp_path / "b", None).unpacked()
    np.testing.assert_array_equal(kernel.unpacked(), expected)
    packer = background_packer()
    assert packer.finish() == 0
    assert layer(tmp_path / "c", packer).is_filled


def test_one_thread_packs_at_once() -> None:
    set_threads(1)
    assert background_packer() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_packs_again(tmp_path: Path) -> None:
    """A forked child, which lacks its parent's threads, neither waits for them nor ends them."""
    packer = background_packer()
    kernel = layer(tmp_path / "a", packer)
    child = os.fork()
    if not child:
        status = 1
        try:
            found = packer.finish()
            del packer
            status = 0 if found == 2 and layer(tmp_path / "a", None).is_filled else 1
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert packer.finish() == 0
    assert kernel.is_filled


def test_only_layers_are_packed() -> None:
    packer = background_packer()
    with pytest.raises(TypeError, match="not a Kernel"):
        packer.add(packer, 0, 0)
