"""Steps and weights that a plan leaves out, and when a plan is made."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from plan_rows import normal
from support import IR, Out, traced_peak

import deconv_ir
from deconv_ir import kernels
from deconv_ir.execute.profile import Profile
from deconv_ir.ir.operation import Operation


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
    """f16 weights become f32, then are packed; afterwards only the packed weights remain."""
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


def test_a_second_run_plans_nothing(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "?,3")
    ir.result(ir.layer("ReLU", [x], names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    plans = {batch: model.bind([normal(batch, 3)]).plan for batch in (2, 5)}
    for batch in (2, 5, 2):
        assert model.run([normal(batch, 3)])["y"].shape == (batch, 3)
        assert model.bind([normal(batch, 3)]).plan is plans[batch]
    assert model.bind([normal(4, 3)]).plan is not plans[2]


def test_a_plan_is_for_a_number_of_threads(tmp_path: Path) -> None:
    """The algorithms of layers and their scratchpads depend on the number of threads."""
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
    """Results are the same as with one thread, and each plan is made once."""
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


def test_the_copy_of_an_output_with_gaps_is_planned(tmp_path: Path) -> None:
    """Outputs are contiguous: what is sliced from a larger tensor is copied in the end."""
    ir = IR()
    x = ir.parameter("x", "1,4,256,256")
    y = ir.layer("Exp", [x])
    cut = [ir.const(np.array(numbers, np.int64)) for numbers in ([8], [248], [1], [3])]
    ir.result(ir.layer("Slice", [y, *cut], version="opset8", names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    data = np.ones((1, 4, 256, 256), np.float32)
    plan = model.bind([data]).plan
    assert plan.tensor_bytes == data.nbytes + data.nbytes * 240 // 256
    assert model.run([data])["y"].flags.c_contiguous
    small = 1 << 14  # Python objects
    assert traced_peak(lambda: model.run([data])) <= plan.peak_bytes + small
