"""Scratchpads of layers: as large as is useful, with the peak near its lower bound."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import IR, Out, traced_peak

import deconv_ir
from deconv_ir.execute import executor
from deconv_ir.execute.scratchpad import (
    MIN_SCRATCHPAD,
    Grant,
    choose_winograd,
    extra_bytes,
    fit_grants,
)
from deconv_ir.ir.lazy_tensor import whole
from deconv_ir.ir.operation import Context, LayerPlan, TensorInfo
from deconv_ir.ir.operation import Kernel as PreparedKernel
from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget
from deconv_ir.kernels.algorithm import Algorithm as Kernel
from deconv_ir.kernels.algorithm import preferred_algorithm
from deconv_ir.ops.linear_algebra.matmul import MatMul

RNG = np.random.default_rng(0)
COMPILED = preferred_algorithm() is Kernel.COMPILED
K = 1 << 10


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def layer(
    direct: float, winograd: float, weights: int, *, packed: bool = False
) -> Sequence[AlgorithmCandidate]:
    """Make a layer that can use Winograd: times in K cycles, a scratchpad of 100 KiB."""
    return (
        AlgorithmCandidate(direct * K, 100 * K, 0),
        AlgorithmCandidate(winograd * K, 100 * K, weights, packed),
    )


def choose(*layers: Sequence[AlgorithmCandidate], budget: int) -> list[int]:
    return [grant.layer for grant in choose_winograd(dict(enumerate(layers)), budget)]


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (499, []),  # the scratchpad and the weights that save most
        (500, [2]),
        (900, [2, 0]),
        (1399, [2, 0]),
        (1400, [2, 1]),
        (1800, [2, 1, 0]),
    ],
)
def test_weights_go_where_they_save_most(budget: int, expected: list[int]) -> None:
    layers = [layer(100, 90, 400 * K), layer(100, 40, 900 * K), layer(100, 50, 400 * K)]
    assert choose(*layers, budget=budget * K) == expected


def test_direct_sums_are_chosen_where_they_are_faster() -> None:
    assert choose(layer(100, 101, 10 * K), (AlgorithmCandidate(1, K, 0),), budget=1 << 30) == []
    assert choose(budget=0) == []


def test_weights_that_save_little_for_their_size_are_not_transformed() -> None:
    """They would take memory, and the time of many runs."""
    assert choose(layer(100, 98, 99 * K), layer(100, 98, 101 * K), budget=1 << 30) == [0]


def test_weights_that_are_packed_change_no_choice() -> None:
    """Otherwise results would depend on earlier runs."""
    other = layer(100, 60, 300 * K)
    for budget in (100 * K, 700 * K, 1024 * K, 4096 * K):
        fresh, warm = layer(100, 50, 700 * K), layer(100, 50, 700 * K, packed=True)
        assert choose(fresh, other, budget=budget) == choose(warm, other, budget=budget)


def test_a_limit_takes_the_least_useful_back() -> None:
    packed = AlgorithmCandidate(1, 60 * K, 300 * K, packed=True)
    grants = [Grant(2, AlgorithmCandidate(1, 50 * K, 400 * K)), Grant(0, packed)]
    grants += [Grant(1, AlgorithmCandidate(1, 70 * K, 900 * K))]
    assert fit_grants(grants, 1370 * K) == grants
    assert fit_grants(grants, 1370 * K - 1) == grants[:2]
    assert fit_grants(grants, 460 * K) == grants[:2]
    assert fit_grants(grants, 450 * K) == grants[:1]
    assert fit_grants(grants, 450 * K - 1) == fit_grants(grants, -5) == []


@pytest.mark.parametrize("budget", [-5, 0, 1, MIN_SCRATCHPAD])
def test_every_layer_gets_a_minimal_scratchpad(budget: int) -> None:
    assert choose(layer(1, 0.5, 1), budget=budget) == []
    assert choose(budget=budget) == []


def test_a_plan_may_use_a_quarter_or_64_mib_more() -> None:
    assert extra_bytes(0) == extra_bytes(256 << 20) == 64 << 20
    assert extra_bytes(1 << 30) == 256 << 20


# --- networks -------------------------------------------------------------------------------

ONCE = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}
TWICE = ONCE | {"strides": "2,2"}
POOL = {"kernel": "2,2", "strides": "2,2"}


def conv(ir: IR, y: Out, inputs: int, outputs: int) -> Out:
    return ir.layer("Convolution", [y, ir.const(normal(outputs, inputs, 3, 3))], ONCE)


def up(ir: IR, y: Out, inputs: int, outputs: int) -> Out:
    filter_ = ir.const(normal(inputs, outputs, 4, 4))
    return ir.layer("ConvolutionBackpropData", [y, filter_], TWICE)


def decoder(channels: int, size: int) -> IR:
    """Build deconvolutions with activations."""
    ir = IR()
    y = ir.parameter("x", f"1,{channels},{size},{size}")
    for _ in range(2):
        y = ir.layer("Gelu", [up(ir, y, channels, channels)], version="opset7")
    ir.result(ir.layer("Sigmoid", [conv(ir, y, channels, 3)]))
    return ir


def encoder(channels: int, size: int) -> IR:
    """Build convolutions, norms, poolings, and upsampling by interpolation."""
    ir = IR()
    y = conv(ir, ir.parameter("x", f"1,{channels},{size},{size}"), channels, channels)
    axes = ir.const(np.array([2, 3]))
    how = {"normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"}
    y = ir.layer("MVN", [y, axes], how, version="opset6")
    y = ir.layer("PReLU", [y, ir.const(np.full(channels, 0.1, np.float32))])
    y = ir.layer("MaxPool", [conv(ir, y, channels, channels)], POOL)
    y = ir.layer("Swish", [conv(ir, y, channels, channels)], version="opset4")
    how = {"mode": "linear_onnx", "shape_calculation_mode": "sizes"}
    extents = ir.const(np.array([size, size]))
    y = ir.layer("Interpolate", [y, extents, axes], how, version="opset11")
    ir.result(ir.layer("Elu", [y], {"alpha": "1"}))
    return ir


def heavy(channels: int, size: int) -> IR:
    """Build a network whose weights are larger than all tensors."""
    ir = IR()
    y = ir.parameter("x", f"1,{channels},{size},{size}")
    for _ in range(4):
        y = ir.layer("ReLU", [conv(ir, y, channels, channels)])
    ir.result(y)
    return ir


def recurrent(channels: int, size: int) -> IR:
    """Build an LSTM over a long sequence."""
    ir = IR()
    x = ir.parameter("x", f"1,{size},{channels}")
    states = [ir.const(np.zeros((1, 1, channels), np.float32)) for _ in range(2)]
    weights = [normal(1, 4 * channels, channels), normal(1, 4 * channels, channels)]
    constants = [np.array([size]), *weights, normal(1, 4 * channels)]
    given = [x, *states, *map(ir.const, constants)]
    how = {"hidden_size": str(channels), "direction": "forward"}
    y = ir.layer("LSTMSequence", given, how, version="opset5", outputs=("", "", ""))
    ir.result(y)
    return ir


NETWORKS = [
    (decoder, 3, 8), (decoder, 8, 24), (decoder, 32, 32), (decoder, 64, 16),
    (encoder, 4, 16), (encoder, 16, 64), (encoder, 64, 96), (encoder, 3, 300),
    (heavy, 16, 6), (heavy, 64, 12), (heavy, 256, 14),
    (recurrent, 16, 100), (recurrent, 64, 2000),
]  # fmt: skip


@pytest.mark.usefixtures("plain_memory")
@pytest.mark.parametrize(("build", "channels", "size"), NETWORKS)
def test_the_peak_is_within_its_bound(
    build: Callable[[int, int], IR], channels: int, size: int, tmp_path: Path
) -> None:
    """A quarter or 64 MiB above the largest set of tensors alive at once, with every weight once.

    NumPy reports its arrays to tracemalloc: the plan must cover their bytes.
    """
    model = deconv_ir.load(build(channels, size).save(tmp_path))
    (port,) = model.inputs.values()
    x = normal(*port.shape)
    model.run([x])
    plan = model.bind([x]).plan
    if COMPILED:  # the NumPy fallback takes as much scratch as it needs
        assert plan.peak_bytes <= plan.bound_bytes + extra_bytes(plan.bound_bytes)
    measured = traced_peak(lambda: model.run([x]))
    assert measured <= plan.peak_bytes - plan.weight_bytes + 64 * K
    assert measured >= 0.9 * plan.tensor_bytes


@pytest.mark.skipif(not COMPILED, reason="NumPy's paths have no further weights")
@pytest.mark.usefixtures("plain_memory")
@pytest.mark.parametrize(("build", "channels", "size"), [(heavy, 64, 12), (encoder, 64, 96)])
def test_a_limit_bounds_the_peak(
    build: Callable[[int, int], IR], channels: int, size: int, tmp_path: Path
) -> None:
    """The lower bound and all, a half, a quarter and none of what a free plan adds to it."""
    path = build(channels, size).save(tmp_path)
    free = deconv_ir.load(path)
    (port,) = free.inputs.values()
    x = normal(*port.shape)
    (expected,) = free.run([x]).values()
    plan = free.bind([x]).plan
    peaks = []
    for share in (1, 2, 4):
        limit = plan.bound_bytes + (plan.peak_bytes - plan.bound_bytes) // share
        model = deconv_ir.load(path, memory_limit=limit)
        (found,) = model.run([x]).values()
        peaks.append(model.bind([x]).plan.peak_bytes)
        assert peaks[-1] <= limit
        assert np.allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    assert peaks == sorted(peaks, reverse=True)
    with pytest.raises(deconv_ir.ResourceError):
        deconv_ir.load(path, memory_limit=plan.tensor_bytes).run([x])


@pytest.mark.skipif(not COMPILED, reason="NumPy's paths have no further weights")
@pytest.mark.parametrize(
    ("build", "channels", "size", "batch"),
    [(heavy, 64, 28, 7), (decoder, 64, 16, 2)],
)
def test_every_limit_from_the_least_is_kept(
    build: Callable[[int, int], IR], channels: int, size: int, batch: int, tmp_path: Path
) -> None:
    """From the least peak to that of a free plan."""
    path = build(channels, size).save(tmp_path)
    path.write_text(path.read_text().replace('shape="1,', 'shape="?,', 1))
    x = normal(batch, channels, size, size)
    free = deconv_ir.load(path).bind([x]).plan
    least = deconv_ir.load(path, memory_limit=free.bound_bytes).bind([x]).plan.peak_bytes
    for limit in np.linspace(least, free.peak_bytes, 12).astype(int):
        model = deconv_ir.load(path, memory_limit=int(limit))
        assert model.bind([x]).plan.peak_bytes <= limit


@pytest.mark.skipif(not COMPILED, reason="NumPy's paths have no further weights")
def test_weights_of_other_batches_are_freed_where_they_do_not_fit(tmp_path: Path) -> None:
    """A small batch leaves memory for Winograd, whose weights the large one has no memory for."""
    path = heavy(64, 28).save(tmp_path)
    path.write_text(path.read_text().replace('shape="1,', 'shape="?,', 1))
    x = normal(7, 64, 28, 28)
    limit = deconv_ir.load(path).bind([x]).plan.bound_bytes + 300 * K
    (expected,) = deconv_ir.load(path, memory_limit=limit).run([x]).values()
    planned_later, planned_first = (deconv_ir.load(path, memory_limit=limit) for _ in range(2))
    assert planned_first.bind([x]).plan.peak_bytes <= limit
    for model in (planned_later, planned_first):
        (small,) = model.run([x[:1]]).values()
        for _ in range(2):
            (found,) = model.run([x]).values()
            assert np.array_equal(found, expected)
            assert np.array_equal(*model.run([x[:1]]).values(), small)


def windows(y: np.ndarray, w: np.ndarray, step: int = 1) -> np.ndarray:
    """Convolve by the definition, padded by one."""
    padded = np.pad(y, [(0, 0), (0, 0), (1, 1), (1, 1)])
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", seen[:, :, ::step, ::step], w)


def test_equal_layers_share_a_packed_filter(tmp_path: Path) -> None:
    """Layers are equal by attributes, constants and the operations fused behind them."""
    ir = IR()
    w, b = normal(4, 4, 3, 3), normal(1, 4, 1, 1)
    filters = [ir.const(w), ir.const(w.astype(np.float16)), ir.const(w.astype(np.float16))]
    bias = ir.const(b)
    half = {"destination_type": "f32"}

    def layer(y: Out, filter_: Out, how: dict[str, str] = ONCE) -> Out:
        return ir.layer("Convolution", [y, filter_], how)

    def biased(y: Out) -> Out:
        return ir.layer("ReLU", [ir.layer("Add", [layer(y, filters[0]), bias])])

    x = ir.parameter("x", "1,4,12,12")
    y = layer(layer(x, filters[0]), filters[0])
    y = biased(ir.layer("MaxPool", [biased(y)], POOL))
    decompressed = [ir.layer("Convert", [f], half) for f in (filters[1], filters[1], filters[2])]
    for filter_ in decompressed:
        y = layer(y, filter_)
    ir.result(ir.layer("Add", [y, layer(y, filters[0])]))
    ir.result(layer(y, filters[0], TWICE))
    model = deconv_ir.load(ir.save(tmp_path))
    data = normal(1, 4, 12, 12)
    plan = model.bind(data).plan
    # Without and with bias and ReLU, twice from f16 (equal constants in the file are not merged),
    # with an addition, and with another stride.
    assert plan.constant_bytes == w.nbytes + 2 * w.nbytes // 2 + b.nbytes
    if COMPILED:
        assert plan.weight_bytes == 6 * w.nbytes + b.nbytes
    y = windows(windows(data, w), w)
    y = np.maximum(windows(y, w) + b, 0).reshape(1, 4, 6, 2, 6, 2).max((3, 5))
    y = np.maximum(windows(y, w) + b, 0)
    for _ in range(3):
        y = windows(y, w.astype(np.float16).astype(np.float32))
    for _ in range(2):
        for found, expected in zip(
            model.bind(data).run(once=True).values(),
            (y + windows(y, w), windows(y, w, 2)),
            strict=True,
        ):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.skipif(sys.platform != "linux", reason="the system's figures are Linux's")
def test_a_process_stays_within_it_as_well(tmp_path: Path) -> None:
    """The peak resident memory of deconv-run, for networks of 33 MiB and of 1 KiB."""
    small, large = tmp_path / "small", tmp_path / "large"
    for folder, size in ((small, 3), (large, 330)):
        folder.mkdir()
        encoder(16, size + size % 2).save(folder)
    code = """
import sys, pathlib, numpy as np, deconv_ir
from deconv_cli.run.resources import hand_back
def peak():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
def run(path):
    model = deconv_ir.load(path)
    (port,) = model.inputs.values()
    x = np.ones(port.shape, np.float32)
    model.run([x])
    plan = model.bind([x]).plan
    return x.nbytes + plan.bound_bytes
hand_back()
run(sys.argv[1])
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = peak()
bound = run(sys.argv[2])
print((peak() - before) / bound)
"""
    arguments = [str(folder / "model.xml") for folder in (small, large)]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert 0.9 <= float(done.stdout) <= 2


@pytest.mark.skipif(not COMPILED, reason="the NumPy fallback keeps the filter as it is")
@pytest.mark.parametrize("kind", ["Convolution", "ConvolutionBackpropData"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_filter_is_not_there_twice_while_it_is_packed(
    kind: str, compressed: bool, tmp_path: Path
) -> None:
    """The filter is read, decompressed and packed one part at a time."""
    ir = IR()
    x, filter_ = ir.parameter("x", "1,512,4,4"), normal(512, 512, 3, 3)
    w = ir.const(filter_.astype(np.float16) if compressed else filter_)
    if compressed:
        w = ir.layer("Convert", [w], {"destination_type": "f32"})
    ir.result(ir.layer(kind, [x, w], ONCE, names="y"))
    path = ir.save(tmp_path)
    assert deconv_ir.load(path).bind().plan.known
    plan = deconv_ir.load(path).bind().plan
    peak = traced_peak(lambda: deconv_ir.load(path).bind().plan)
    assert plan.constant_bytes == filter_.nbytes // (2 if compressed else 1)
    assert peak < 3 << 20 < filter_.nbytes / 2
    with (tmp_path / "model.bin").open("r+b") as file:
        file.truncate(filter_.nbytes // 4)
    with pytest.raises(deconv_ir.WeightsError, match="cut short"):
        _ = deconv_ir.load(path, warn=False).bind().plan


class Choice(NamedTuple):
    """The algorithms of a plan, and the one that its budget allows."""

    candidates: tuple[AlgorithmCandidate, ...]
    algorithm: AlgorithmCandidate
    whole: None = None


class Chosen(PreparedKernel):
    """A kernel that is not a convolution's, with the forms of its weights by the rows of data."""

    def __init__(self, weights: np.ndarray, forms: Mapping[int, int]) -> None:
        self.weights = weights
        self.forms = forms
        self.kept: set[int] = set()
        self.settled: ScratchpadBudget | None = None
        self.used: ScratchpadBudget | None = None

    @property
    def packed_bytes(self) -> int:
        return 1000 * K + sum(self.forms[rows] for rows in self.kept)

    def release(self) -> None:
        self.kept.clear()

    def plan(self, inputs: Sequence[TensorInfo], budget: ScratchpadBudget) -> LayerPlan:
        self.settled = budget
        assert inputs[0].shape is not None
        rows = int(inputs[0].shape[0])
        candidates = [AlgorithmCandidate(2e9, 7 * K, 0)]
        if rows in self.forms:
            form = AlgorithmCandidate(1e9, 7 * K, self.forms[rows], rows in self.kept)
            candidates.append(form)
        chosen = candidates[-1] if budget.winograd else candidates[0]
        return LayerPlan(partial(self, budget=budget), Choice(tuple(candidates), chosen))

    def __call__(
        self,
        inputs: Sequence[Any],
        out: np.ndarray | None = None,
        budget: ScratchpadBudget | None = None,
    ) -> Sequence[np.ndarray]:
        self.used = budget
        if budget is not None and budget.winograd:
            self.kept.add(len(inputs[0]))
        return (inputs[0] @ self.weights,)


def product(folder: Path) -> Path:
    """Write a product of x [?,3] with a constant."""
    ir = IR()
    y = ir.layer("MatMul", [ir.parameter("x", "?,3"), ir.const(normal(3, 4))], names="y")
    ir.result(y)
    return ir.save(folder)


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[int, int], list[Chosen]]:
    """Products use the kernel above: the sizes of its forms, and the kernels that were made."""
    sizes: dict[int, int] = {}
    made: list[Chosen] = []

    def prepare(self: MatMul, constants: Sequence[Any], context: Context) -> Chosen:
        made.append(Chosen(whole(constants[1]), sizes))
        return made[-1]

    monkeypatch.setattr(MatMul, "prepare", prepare)
    return sizes, made


def test_any_kernel_with_candidates_gets_a_budget(
    tmp_path: Path, forms: tuple[dict[int, int], list[Chosen]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor uses the interface of kernels: the kernel here is not a convolution's."""
    path, x = product(tmp_path), normal(2, 3)
    model = deconv_ir.load(path)
    plan = model.bind([x]).plan
    found = model.run([x])["y"]
    (kernel,) = forms[1]
    assert kernel.settled is not None
    assert kernel.used == kernel.settled
    monkeypatch.undo()
    plain = deconv_ir.load(path).bind([x]).plan
    np.testing.assert_allclose(found, deconv_ir.load(path).run([x])["y"], rtol=1e-6)
    constant = 3 * 4 * 4
    assert plan.weight_bytes - plain.weight_bytes == 1000 * K - constant
    taken = 7 * K - plain.scratch_bytes
    assert plan.peak_bytes - plain.peak_bytes == 1000 * K - constant + taken


@pytest.mark.parametrize(("size", "granted"), [(-1008 * K, True), (-1006 * K, False)])
def test_packed_weights_count_for_further_forms(
    size: int, granted: bool, tmp_path: Path, forms: tuple[dict[int, int], list[Chosen]]
) -> None:
    """A form, the 1000 KiB that are packed first, and a scratchpad of 7 KiB: 64 MiB for all."""
    sizes, made = forms
    sizes[2] = extra_bytes(0) + size
    plan = deconv_ir.load(product(tmp_path)).bind([normal(2, 3)]).plan
    assert plan.peak_bytes > 0
    (kernel,) = made
    assert kernel.settled is not None
    assert kernel.settled.winograd is granted


def test_a_run_whose_forms_were_freed_needs_its_whole_peak(
    tmp_path: Path,
    forms: tuple[dict[int, int], list[Chosen]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two forms do not fit at once: the second run frees the first's and packs its own again."""
    sizes, made = forms
    sizes |= {1: 600 * K, 9: 500 * K}
    path = product(tmp_path)
    one, nine = normal(1, 3), normal(9, 3)
    limit = deconv_ir.load(path).bind([one]).plan.peak_bytes
    required: list[int] = []
    monkeypatch.setattr(executor, "require_memory", lambda need, *_, **__: required.append(need))
    model = deconv_ir.load(path, memory_limit=limit)
    plans = [model.bind([x]).plan for x in (one, nine)]
    for x, plan in ((one, plans[0]), (nine, plans[1])):
        model.run([x])
        assert required[-1] == plan.peak_bytes <= limit
        assert made[-1].kept == {len(x)}
