"""The plan: what is folded, fused, overwritten and used again, and that results stay right."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support import IR, Out, traced_peak

import deconv_ir
from deconv_ir import kernels
from deconv_ir.execute import executor
from deconv_ir.execute.listing import PlanRow, as_rows
from deconv_ir.execute.profile import Profile
from deconv_ir.ir.operation import Operation
from deconv_ir.kernels.algorithm import Algorithm as Kernel
from deconv_ir.kernels.algorithm import preferred_algorithm

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def rows_of(model: deconv_ir.Model, inputs: object, **options: object) -> dict[str, PlanRow]:
    plan = model.bind(inputs, **options).plan  # type: ignore[arg-type]
    return {row.layer: row for row in as_rows(plan)}


def upsampling(
    dtype: str = "f32",
    addend: Sequence[int] = (1, 3, 1, 1),
    *,
    kind: str = "ConvolutionBackpropData",
    addend_first: bool = False,
    tap: bool = False,
) -> IR:
    """x -> kind -> Add of a constant -> ReLU."""
    ir = IR()
    numbers = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32}
    element = numbers[dtype]
    x = ir.parameter("x", "1,2,5,6", dtype)
    shape = (2, 3, 3, 3) if kind == "ConvolutionBackpropData" else (3, 2, 3, 3)
    w = ir.const((normal(*shape) * 4).astype(element), "w")
    bias = ir.const((normal(*addend) * 4).astype(element), "b")
    strides = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    up = ir.layer(kind, [x, w], strides, name="up")
    add = ir.layer("Add", [bias, up] if addend_first else [up, bias], name="add")
    ir.result(ir.layer("ReLU", [add], name="relu", names="y"))
    if tap:
        ir.result(ir.layer("Tanh", [up], name="tap"))
    return ir


def layer_by_layer(model: deconv_ir.Model, path: Path, x: np.ndarray) -> np.ndarray:
    """What `upsampling` gives when the sum is rounded before and after the addition."""
    up = model.run([x], outputs=["up"])["up"]
    declared = model.graph.find("b")
    assert declared is not None
    bias = np.frombuffer(path.with_suffix(".bin").read_bytes()[-declared.operation.size :], x.dtype)
    added = up + bias.reshape(declared.operation.shape)
    return np.maximum(added, x.dtype.type(0))


@pytest.mark.parametrize("kind", ["ConvolutionBackpropData", "Convolution"])
@pytest.mark.parametrize("addend_first", [False, True])
@pytest.mark.parametrize("addend", [(1, 3, 1, 1), (3, 1, 1), (1, 1, 1, 1), (1,), ()])
def test_bias_and_activation_are_computed_by_the_kernel(
    kind: str, addend: Sequence[int], addend_first: bool, tmp_path: Path
) -> None:
    path = upsampling(addend=addend, kind=kind, addend_first=addend_first).save(tmp_path)
    model = deconv_ir.load(path)
    x = normal(1, 2, 5, 6)
    (row,) = as_rows(model.bind([x]).plan)
    assert (row.layer, row.fused) == ("up", ("add", "relu"))
    np.testing.assert_allclose(
        model.run([x])["y"], layer_by_layer(model, path, x), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    ("dtype", "unit"), [("f16", 2.0**-10), ("bf16", 2.0**-7), ("i32", 0)], ids=str
)
def test_fused_results_are_those_of_the_layers_within_one_rounding(
    dtype: str, unit: float, tmp_path: Path
) -> None:
    path = upsampling(dtype).save(tmp_path)
    model = deconv_ir.load(path, warn=False)
    x = (normal(1, 2, 5, 6) * 4).astype(model.inputs["x"].element_type.numpy())
    assert rows_of(model, [x])["up"].fused == ("add", "relu")
    found = model.run([x])["y"].astype(np.float64)
    # The layers one by one round after the sum as well: off by a unit of that sum.
    up = model.run([x], outputs=["up"])["up"].astype(np.float64)
    expected = layer_by_layer(model, path, x).astype(np.float64)
    assert (np.abs(found - expected) <= unit * (np.abs(up) + np.abs(expected))).all()


@pytest.mark.parametrize(
    ("addend", "why"),
    [
        ((1, 3, 11, 1), "it varies along an axis"),
        ((1, 1, 1, 13), "it varies along the last axis"),
        ((2, 3, 1, 1), "it adds batches"),
        ((1, 1, 3, 1, 1), "it adds an axis"),
    ],
)
def test_additions_that_are_no_bias_stay_layers(
    addend: Sequence[int], why: str, tmp_path: Path
) -> None:
    path = upsampling(addend=addend).save(tmp_path)
    model = deconv_ir.load(path)
    x = normal(1, 2, 5, 6)
    assert rows_of(model, [x])["up"].fused == (), why
    np.testing.assert_allclose(
        model.run([x])["y"], layer_by_layer(model, path, x), rtol=1e-5, atol=1e-5
    )


def test_a_tensor_that_something_else_needs_is_not_fused_away(tmp_path: Path) -> None:
    model = deconv_ir.load(upsampling(tap=True).save(tmp_path))
    x = normal(1, 2, 5, 6)
    rows = rows_of(model, [x])
    assert rows["up"].fused == ()
    alone = deconv_ir.load(upsampling().save(tmp_path))
    assert rows_of(alone, [x], outputs=["relu"])["up"].fused == ("add", "relu")
    assert rows_of(alone, [x], outputs=["relu", "add"])["up"].fused == ("add",)
    assert rows_of(alone, [x], outputs=["up", "add"])["up"].fused == ()


@pytest.mark.parametrize(
    ("slope", "fused"), [((1,), ("prelu",)), ((3,), ()), ((1, 1, 1, 1), ("prelu",))]
)
def test_one_slope_is_fused_and_one_a_channel_overwrites(
    slope: Sequence[int], fused: tuple[str, ...], tmp_path: Path
) -> None:
    ir = IR()
    x = ir.parameter("x", "1,2,5,6")
    up = ir.layer("ConvolutionBackpropData", [x, ir.const(normal(2, 3, 2, 2))], name="up")
    slopes = np.abs(normal(*slope))
    ir.result(ir.layer("PReLU", [up, ir.const(slopes)], name="prelu", names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    data = normal(1, 2, 5, 6)
    rows = rows_of(model, [data])
    assert rows["up"].fused == fused
    if not fused:
        assert rows["prelu"].overwrites == "up"
    plain = model.run([data], outputs=["up"])["up"]
    factor = slopes.reshape(1, -1, 1, 1)
    expected = np.where(plain < 0, plain * factor, plain)
    np.testing.assert_allclose(model.run([data])["y"], expected, rtol=1e-5, atol=1e-6)


CHAINS: dict[str, tuple[str, dict[str, str], object]] = {
    "Add": ("Add", {}, np.add),
    "Subtract": ("Subtract", {}, np.subtract),
    "Multiply": ("Multiply", {}, np.multiply),
    "Divide": ("Divide", {}, np.divide),
    "Maximum": ("Maximum", {}, np.maximum),
    "SquaredDifference": ("SquaredDifference", {}, lambda a, b: (a - b) * (a - b)),
    "ReLU": ("ReLU", {}, lambda a: np.maximum(a, 0)),
    "Sigmoid": ("Sigmoid", {}, lambda a: 1 / (1 + np.exp(-a))),
    "Tanh": ("Tanh", {}, np.tanh),
    "Clamp": ("Clamp", {"min": "-0.5", "max": "0.25"}, lambda a: np.clip(a, -0.5, 0.25)),
    "Elu": ("Elu", {"alpha": "0.5"}, lambda a: np.where(a < 0, 0.5 * np.expm1(a), a)),
    "Swish": ("Swish", {}, lambda a: a / (1 + np.exp(-a))),
    "HSwish": ("HSwish", {}, lambda a: a * np.clip(a + 3, 0, 6) / 6),
}


@pytest.mark.parametrize("name", CHAINS)
def test_an_input_that_dies_is_overwritten(name: str, tmp_path: Path) -> None:
    """And the user's array, which dies nowhere, is not."""
    kind, attributes, function = CHAINS[name]
    version = "opset4" if kind in ("Swish", "HSwish") else "opset1"
    ir = IR()
    x, other = ir.parameter("x", "2,3,4"), ir.parameter("other", "3,1")
    own = ir.layer("Sinh", [x], name="own")
    inputs = [own, other] if kind in list(CHAINS)[:6] else [own]
    ir.result(ir.layer(kind, inputs, attributes, name="op", names="y", version=version))
    model = deconv_ir.load(ir.save(tmp_path))
    given = [normal(2, 3, 4), normal(3, 1)]
    copies = [a.copy() for a in given]
    rows = rows_of(model, given)
    assert rows["own"].overwrites is None
    assert rows["op"].overwrites == "own"
    arrays = [np.sinh(given[0].astype(np.float64)), given[1]][: len(inputs)]
    np.testing.assert_allclose(model.run(given)["y"], function(*arrays), rtol=2e-6)  # type: ignore[operator]
    for array, copy in zip(given, copies, strict=True):
        assert np.array_equal(array, copy)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        pytest.param(lambda ir, e: ir.layer("Add", [e, e]), lambda e: e + e, id="both inputs"),
        pytest.param(
            lambda ir, e: ir.layer("Add", [ir.layer("ReLU", [e]), e]),
            lambda e: np.maximum(e, 0) + e,
            id="used later",
        ),
        pytest.param(
            lambda ir, e: ir.layer(
                "Add",
                [ir.layer("Tanh", [e]), ir.layer("Transpose", [e, ir.const(np.array([1, 0]))])],
            ),
            lambda e: np.tanh(e) + e.T,
            id="a view used later",
        ),
        pytest.param(
            lambda ir, e: ir.layer(
                "Subtract", [e, ir.layer("Transpose", [e, ir.const(np.array([1, 0]))])]
            ),
            lambda e: e - e.T,
            id="both are the same memory",
        ),
        pytest.param(
            lambda ir, e: ir.layer(
                "Tanh",
                [
                    ir.layer(
                        "Reshape",
                        [
                            ir.layer("Transpose", [e, ir.const(np.array([1, 0]))]),
                            ir.const(np.array([4, 4])),
                        ],
                        {"special_zero": "false"},
                    )
                ],
            ),
            lambda e: np.tanh(e.T),
            id="a view of a view",
        ),
    ],
)  # fmt: skip
def test_memory_that_is_shared_is_not_overwritten(build, expected, tmp_path: Path) -> None:
    """Right results whatever the plan proposes; each case is one a careless plan gets wrong."""
    ir = IR()
    e = ir.layer("Sinh", [ir.parameter("x", "4,4")], name="e")
    ir.result(build(ir, e))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    x = normal(4, 4)
    (found,) = model.run([x]).values()
    np.testing.assert_allclose(found, expected(np.sinh(x.astype(np.float64))), rtol=1e-5)


def test_outputs_are_arrays_of_their_own(tmp_path: Path) -> None:
    """Two outputs that are views of one array, and one that was overwritten if nobody looked."""
    ir = IR()
    e = ir.layer("Exp", [ir.parameter("x", "4,4")], name="e")
    halves = ir.layer(
        "Split", [e, ir.const(np.array(0))], {"num_splits": "2"}, outputs=("", ""), name="s"
    )
    ir.result(e)
    ir.result(halves)
    ir.result(ir.layer("Sqrt", [e], name="r"))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    x = normal(4, 4)
    results = model.run([x])
    expected = np.exp(x)
    assert len(results) == 3
    for name, want in zip(results, (expected, expected[:2], np.sqrt(expected)), strict=True):
        np.testing.assert_allclose(results[name], want, rtol=1e-6)
        results[name][...] = -1
    np.testing.assert_allclose(next(iter(model.run([x]).values())), expected, rtol=1e-6)


def chain(ir: IR, y: Out, count: int, kinds: Sequence[str] = ("Tanh", "Sinh")) -> Out:
    for i in range(count):
        y = ir.layer(kinds[i % len(kinds)], [y])
    return y


def test_constants_are_folded_once_and_dead_layers_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ir = IR()
    x = ir.parameter("x", "2,3")
    packed = ir.const(normal(2, 3).astype(np.float16), "packed")
    weights = ir.layer("Convert", [packed], {"destination_type": "f32"}, name="unpack")
    twice = ir.layer("Add", [weights, weights], name="twice")
    ir.result(ir.layer("Multiply", [x, twice], name="times"))
    chain(ir, x, 3)
    model = deconv_ir.load(ir.save(tmp_path))
    ran: list[str] = []
    for kind in ("Add", "Convert", "Tanh", "Sinh"):
        operation = type(model.graph.of_type(kind)[0].operation)
        for method in ("execute", "bind"):
            original = getattr(operation, method)

            def record(self: Operation, *arguments: object, kind=kind, original=original) -> object:  # type: ignore[no-untyped-def]
                ran.append(kind)
                return original(self, *arguments)

            monkeypatch.setattr(operation, method, record)
    profile = Profile()
    for _ in range(3):
        model.run([normal(2, 3)], profile=profile)
    assert ran == ["Convert", "Add"]
    assert [row.layer for row in profile.layers] == ["times"] * 3


def test_the_unpacked_copy_of_a_filter_is_dropped(tmp_path: Path) -> None:
    """f16 weights become f32, then packed; afterwards only the packed ones are there."""
    ir = IR()
    x = ir.parameter("x", "1,64,1,1")
    size = 64 * 512 * 9 * 4
    raw = ir.const(normal(64, 512, 3, 3).astype(np.float16))
    w = ir.layer("Convert", [raw], {"destination_type": "f32"})
    ir.result(ir.layer("ConvolutionBackpropData", [x, w], names="y"))
    model, data = deconv_ir.load(ir.save(tmp_path)), normal(1, 64, 1, 1)
    tracemalloc.start()
    try:
        bound = model.bind(data)
        bound.run()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # NumPy's packed weights are traced, compiled ones are not.
    assert held < (0.5 if kernels.kernel_info().available else 1.5) * size


def test_a_second_run_plans_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ir = IR()
    x = ir.parameter("x", "?,3")
    ir.result(ir.layer("ReLU", [x], names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    model.run([normal(2, 3)])
    model.run([normal(5, 3)])

    def never(*_: object, **__: object) -> None:
        raise AssertionError("planned again")

    monkeypatch.setattr("deconv_ir.model.infer", never)
    monkeypatch.setattr(executor, "make_plan", never)
    for batch in (2, 5, 2):
        assert model.run([normal(batch, 3)])["y"].shape == (batch, 3)
    with pytest.raises(AssertionError, match="planned again"):
        model.run([normal(4, 3)])


def test_a_plan_is_for_a_number_of_threads(tmp_path: Path) -> None:
    """What layers are bound to, and the scratch that they may take, depend on it."""
    ir = IR()
    x = ir.parameter("x", "1,4,6,6")
    y = ir.layer(
        "Convolution", [x, ir.const(normal(8, 4, 3, 3))],
        {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"},
    )  # fmt: skip
    ir.result(y)
    model = deconv_ir.load(ir.save(tmp_path))
    data = normal(1, 4, 6, 6)
    plans, results = [], []
    try:
        for threads in (1, 2, 2, 1):
            kernels.set_threads(threads)
            plans.append(model.bind([data]).plan)
            results.append(next(iter(model.run([data]).values())))
    finally:
        kernels.set_threads(None)
    assert plans[0] is plans[3] is not plans[1]
    assert plans[1] is plans[2]
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-5, atol=1e-5)


def test_plans_that_are_kept_are_bounded_and_the_last_used_stay(tmp_path: Path) -> None:
    from deconv_ir.execute.lru_cache import LRUCache

    made: list[int] = []
    recent: LRUCache[int, int] = LRUCache(3)

    def get(key: int) -> int:
        return recent.get(key, lambda: made.append(key) or key)  # type: ignore[func-returns-value]

    for key in (1, 2, 3, 1, 4, 1, 3, 2):
        get(key)
    assert made == [1, 2, 3, 4, 2]


def test_small_integer_values_have_plans_of_their_own(tmp_path: Path) -> None:
    ir = IR()
    x, shape = ir.parameter("x", "?,?"), ir.parameter("shape", "2", "i64")
    ir.result(ir.layer("Reshape", [x, shape], {"special_zero": "false"}, names="y"))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    x = normal(4, 6)
    for target in ([3, 8], [24, 1], [3, 8]):
        assert model.run([x, np.array(target)])["y"].shape == tuple(target)


def test_many_threads_many_shapes(tmp_path: Path) -> None:
    """Results are those of one thread, and each plan is made once."""
    ir = IR()
    x = ir.parameter("x", "1,2,?,?")
    y = ir.layer("ConvolutionBackpropData", [x, ir.const(normal(2, 3, 3, 3))], {"strides": "2,2"})
    y = ir.layer("Tanh", [ir.layer("Add", [y, ir.const(normal(1, 3, 1, 1))])])
    ir.result(ir.layer("Multiply", [y, y], names="y"))
    path = ir.save(tmp_path)
    inputs = [normal(1, 2, 4 + i % 3, 5) for i in range(6)]
    expected = [deconv_ir.load(path).run([x])["y"] for x in inputs]
    model = deconv_ir.load(path)
    wrong: list[int] = []
    barrier = threading.Barrier(6)

    def work(i: int) -> None:
        barrier.wait()
        for _ in range(20):
            if not np.array_equal(model.run([inputs[i]])["y"], expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def u_net(size: int = 192) -> IR:
    """A small U-Net: convolutions, pooling, deconvolutions, and what is skipped to the end."""
    ir = IR()
    pads = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}
    twice = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    pool = {"strides": "2,2", "kernel": "2,2", "pads_begin": "0,0", "pads_end": "0,0",
            "rounding_type": "floor"}  # fmt: skip

    def conv(y: Out, i: int, o: int) -> Out:
        y = ir.layer("Convolution", [y, ir.const(normal(o, i, 3, 3) / 8)], pads)
        y = ir.layer("Add", [y, ir.const(normal(1, o, 1, 1))])
        return ir.layer("Swish", [y], version="opset4")

    y = ir.parameter("x", f"1,3,{size},{size}")
    skips = []
    for i, o in ((3, 16), (16, 32)):
        y = conv(y, i, o)
        skips.append(y)
        y = ir.layer("MaxPool", [y], pool)
    y = conv(y, 32, 64)
    for i, o in ((64, 32), (32, 16)):
        up = ir.layer("ConvolutionBackpropData", [y, ir.const(normal(i, o, 2, 2) / 8)], twice)
        y = conv(ir.layer("Concat", [up, skips.pop()], {"axis": "1"}), 2 * o, o)
    ir.result(ir.layer("Sigmoid", [y], names="y"))
    return ir


def decoder() -> IR:
    """Deconvolutions one after the other, each larger than the last."""
    ir = IR()
    y = ir.parameter("x", "1,16,24,24")
    for channels in (16, 16, 8):
        w = ir.const(normal(16, channels, 4, 4) / 8)
        attributes = {"strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}
        y = ir.layer("ConvolutionBackpropData", [y, w], attributes)
        y = ir.layer("Tanh", [ir.layer("Add", [y, ir.const(normal(1, channels, 1, 1))])])
    ir.result(y, "y")
    return ir


def elementwise() -> IR:
    ir = IR()
    x = ir.parameter("x", "1,8,256,256")
    y = ir.layer("Exp", [x])
    for i in range(8):
        y = ir.layer("Tanh", [ir.layer("Add", [y, x])]) if i % 3 else ir.layer("Add", [y, y])
    ir.result(y)
    return ir


@pytest.mark.usefixtures("plain_memory")
@pytest.mark.parametrize("build", [u_net, decoder, elementwise])
def test_peak_memory_is_near_the_lower_bound(build, tmp_path: Path) -> None:
    """NumPy reports its arrays to tracemalloc; weights are packed when that begins."""
    scratch = 1 << 20
    model = deconv_ir.load(build().save(tmp_path), scratch_bytes=scratch)
    (port,) = model.inputs.values()
    x = normal(*port.shape)
    model.run([x])
    plan = model.bind([x]).plan
    assert plan.known
    running = plan.peak_bytes - plan.weight_bytes
    assert plan.tensor_bytes <= running <= 1.1 * plan.tensor_bytes + plan.scratch_bytes
    peak = traced_peak(lambda: model.run([x]))
    # Only the NumPy path has its scratch from NumPy.
    allowed = 1.3 * (plan.tensor_bytes + plan.weight_bytes) + scratch * (
        preferred_algorithm() is not Kernel.COMPILED
    )
    assert peak + plan.weight_bytes <= allowed
    # The bound is one: what the plan says is alive at once really is.
    assert peak >= 0.95 * plan.tensor_bytes


def test_big_buffers_are_used_again(tmp_path: Path) -> None:
    ir = IR()
    y = ir.parameter("x", "1,4,256,256")
    for _ in range(6):
        w = ir.const(normal(4, 4, 1, 1))
        y = ir.layer("ConvolutionBackpropData", [y, w])
    ir.result(y)
    model = deconv_ir.load(ir.save(tmp_path))
    x = normal(1, 4, 256, 256)
    buffers = [row.buffer for row in rows_of(model, [x]).values()]
    # Input and output of a layer cannot be one; the result is the caller's own.
    assert buffers == [0, 1, 0, 1, 0, None]
    assert len(model.bind([x]).plan.capacities) == 2


def large() -> IR:
    """A result so large that the kernels take its memory from their pool, then overwritten."""
    ir = IR()
    y = ir.parameter("x", "1,1,1600,1600")
    for _ in range(3):
        y = ir.layer("ConvolutionBackpropData", [y, ir.const(normal(1, 1, 1, 1))])
    ir.result(ir.layer("Tanh", [y]))
    return ir


@pytest.mark.parametrize("build", [lambda: u_net(64), large], ids=["U-Net", "large"])
def test_what_the_plan_proposes_is_done(
    build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of reference counts never refuses what the plan rightly says."""
    model = deconv_ir.load(build().save(tmp_path))
    (port,) = model.inputs.values()
    x = normal(*port.shape)
    refused: list[int] = []
    alone, free = executor.is_alone, executor.is_free

    def watch_alone(*arguments: object) -> bool:
        found = alone(*arguments)  # type: ignore[arg-type]
        if not found:
            refused.append(1)
        return found

    def watch_free(*arguments: object) -> bool:
        found = free(*arguments)  # type: ignore[arg-type]
        if not found:
            refused.append(2)
        return found

    monkeypatch.setattr(executor, "is_alone", watch_alone)
    monkeypatch.setattr(executor, "is_free", watch_free)
    for _ in range(2):
        model.run([x])
    assert refused == []
    assert any(row.overwrites for row in rows_of(model, [x]).values())


def test_an_array_that_something_holds_is_not_overwritten() -> None:
    array = np.zeros(3)
    values: list[object] = [np.zeros(3), array, np.zeros((2, 3)).reshape(6), array[:2], None]
    assert executor.is_alone(values, 0, [], None)
    assert not executor.is_alone(values, 1, [], None)
    assert executor.is_alone(values, 2, [], None)
    assert not executor.is_alone(values, 3, [], None)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    values[4] = frozen
    del frozen
    assert not executor.is_alone(values, 4, [], None)
    buffers: list[object] = [np.zeros(64, np.uint8)]
    values[0] = buffers[0][:8].view(np.float32)  # type: ignore[index]
    assert executor.is_alone(values, 0, buffers, 0)
    assert not executor.is_free(buffers, 0)
    other = values[0][:1]  # type: ignore[index]
    assert not executor.is_alone(values, 0, buffers, 0)
    del other
    values[0] = None
    assert executor.is_free(buffers, 0)


def test_outputs_of_operations_that_share_memory_say_so() -> None:
    """Only operations with `sharing` return views; the plan counts on it."""
    from deconv_ir.ir.operation import Context, Sharing
    from deconv_ir.ops import all_operations
    from deconv_ir.ops.examples import parse_example

    silent = []
    for operation in all_operations():
        for text in operation.examples:
            example = parse_example(text)
            arrays = [t.array(seed) for seed, t in enumerate(example.inputs)]
            results = example.operation(operation).execute(arrays, Context())
            for result in results:
                shared = [i for i, a in enumerate(arrays) if np.shares_memory(a, result)]
                if shared and (operation.sharing is Sharing.NONE or shared != [0]):
                    silent.append((operation.type, text))
    assert silent == []
