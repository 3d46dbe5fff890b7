"""A run with shapes and types of the run before skips checks; results and errors are the same."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir import kernels
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops import base
from deconv_ir.ops.plugins import register

RNG = np.random.default_rng(44)
FILTER = RNG.standard_normal((3, 2, 2, 2)).astype(np.float32)
ATTRIBUTES = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}


def upsampling(shape: str = "1,3,4,5", then: str | None = None) -> IR:
    """Return a transposed convolution without overlap, and a layer that shows its output."""
    ir = IR()
    made = ir.layer(
        "ConvolutionBackpropData",
        [ir.parameter("x", shape), ir.const(FILTER)],
        ATTRIBUTES,
        names="y",
    )
    ir.result(made, "y")
    if then is not None:
        rows = ir.const(np.array([2, -1], np.int64))
        ir.result(ir.layer(then, [made, rows], {"special_zero": "false"}, names="rows"), "rows")
    return ir


def expected(x: Any) -> np.ndarray:
    """Each element of the data times the filter, by the definition."""
    x = np.asarray(x, np.float64)
    blocks = np.einsum("nihw,iokl->nohkwl", x, FILTER.astype(np.float64))
    found: np.ndarray = blocks.reshape(len(x), 2, 2 * x.shape[2], 2 * x.shape[3])
    return found


def data(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape or (1, 3, 4, 5)).astype(np.float32)


def close(found: Any, x: Any) -> None:
    np.testing.assert_allclose(found, expected(x), rtol=1e-5, atol=1e-5)


@pytest.fixture
def model(tmp_path: Path) -> deconv_ir.Model:
    """Return a model that has run."""
    loaded = deconv_ir.load(upsampling().save(tmp_path))
    x = data()
    close(loaded.run(x)["y"], x)
    return loaded


@pytest.mark.parametrize("form", [lambda x: x, lambda x: [x], lambda x: (x,), lambda x: {"x": x}])
def test_other_arrays_in_each_form(model: deconv_ir.Model, form: Any) -> None:
    for _ in range(3):
        x = data()
        close(model.run(form(x))["y"], x)


def misaligned(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    shifted = memory[1:].view(x.dtype).reshape(x.shape)
    shifted[...] = x
    return shifted


def read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    "change",
    [
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=3)[..., ::2],
        lambda x: x[..., ::-1].copy()[..., ::-1],
        lambda x: np.broadcast_to(x[:, :1], x.shape),
        misaligned,
        read_only,
        lambda x: x.astype(">f4"),
        lambda x: x.view(type("Named", (np.ndarray,), {})),
        lambda x: x.tolist(),
    ],
)
def test_arrays_in_other_memory(model: deconv_ir.Model, change: Any) -> None:
    x = change(data())
    if isinstance(x, list):
        x = np.array(x, np.float32).tolist()
        close(model.run({"x": np.array(x, np.float32)})["y"], x)
        return
    close(model.run([x])["y"], x)
    again = data()
    close(model.run([again])["y"], again)


@pytest.mark.parametrize(
    "inputs",
    [
        data(1, 3, 4, 6),
        data(1, 3, 4),
        [data(), data()],
        [],
        {},
        {"z": data()},
        {"x": data(), "z": data()},
        data().astype(np.float64),
        data().astype(np.int32),
        "x",
        [None],
        5.0,
    ],
)
def test_arrays_that_do_not_fit_are_refused_as_by_a_first_run(
    model: deconv_ir.Model, inputs: Any, tmp_path: Path
) -> None:
    with pytest.raises(deconv_ir.DeconvError) as first:
        deconv_ir.load(upsampling().save(tmp_path)).run(inputs)
    with pytest.raises(deconv_ir.DeconvError) as later:
        model.run(inputs)
    assert (type(later.value), str(later.value)) == (type(first.value), str(first.value))
    x = data()
    close(model.run(x)["y"], x)


def test_shapes_alternate(tmp_path: Path) -> None:
    model = deconv_ir.load(upsampling("?,3,?,?").save(tmp_path))
    for shape in [(1, 3, 4, 5), (2, 3, 4, 5), (2, 3, 4, 5), (1, 3, 4, 5), (0, 3, 4, 5)] * 2:
        x = data(*shape)
        close(model.run(x)["y"], x)


def test_results_belong_to_the_caller(model: deconv_ir.Model) -> None:
    first = data()
    kept = model.run(first)["y"]
    copy = kept.copy()
    second = data()
    later = model.run(second)["y"]
    np.testing.assert_array_equal(kept, copy)
    kept[...] = 0
    close(later, second)
    assert not np.may_share_memory(kept, later)
    assert later.flags.c_contiguous
    assert later.flags.writeable


def test_a_view_of_another_output_is_copied(tmp_path: Path) -> None:
    model = deconv_ir.load(upsampling(then="Reshape").save(tmp_path))
    for _ in range(3):
        x = data()
        found = model.run(x)
        close(found["y"], x)
        np.testing.assert_array_equal(found["rows"], found["y"].reshape(2, -1))
        assert not np.may_share_memory(found["y"], found["rows"])


def test_an_output_twice(tmp_path: Path) -> None:
    ir = IR()
    inputs = [ir.parameter("x", "1,3,4,5"), ir.const(FILTER)]
    made = ir.layer("ConvolutionBackpropData", inputs, ATTRIBUTES)
    ir.result(made, "a")
    ir.result(made, "b")
    model = deconv_ir.load(ir.save(tmp_path))
    for _ in range(3):
        x = data()
        first, second = model.run(x).values()
        close(first, x)
        close(second, x)
        assert not np.may_share_memory(first, second)


def test_arrays_are_not_kept(model: deconv_ir.Model) -> None:
    for _ in range(3):
        x = data()
        found = model.run([x])["y"]
        alive = weakref.ref(x), weakref.ref(found)
        del x, found
        gc.collect()
        assert [reference() for reference in alive] == [None, None]


def test_values_on_which_shapes_depend(tmp_path: Path) -> None:
    """Arrays of equal shapes need different plans."""
    ir = IR()
    given = [ir.parameter("x", "12"), ir.parameter("shape", "2", "i64")]
    ir.result(ir.layer("Reshape", given, {"special_zero": "false"}), "y")
    model = deconv_ir.load(ir.save(tmp_path))
    x = np.arange(12, dtype=np.float32)
    for shape in [(3, 4), (3, 4), (4, 3), (12, 1), (2, 6)]:
        found = next(iter(model.run([x, np.array(shape)]).values()))
        np.testing.assert_array_equal(found, x.reshape(shape))


def test_strings_are_checked_in_each_run(tmp_path: Path) -> None:
    ir = IR()
    texts = ir.parameter("x", "2", "string")
    rows = ir.const(np.array([2, 1]))
    attributes = {"special_zero": "false"}
    ir.result(ir.layer("Reshape", [texts, rows], attributes, precision="STRING"))
    model = deconv_ir.load(ir.save(tmp_path))
    for _ in range(2):
        model.run([np.array(["a", "b"], object)])
    with pytest.raises(deconv_ir.InputError, match="string"):
        model.run([np.array(["a", 5], object)])


def test_the_number_of_threads_changes(model: deconv_ir.Model) -> None:
    before = deconv_ir.get_threads()
    try:
        for threads in (1, 3, 3, 2):
            deconv_ir.set_threads(threads)
            x = data()
            close(model.run(x)["y"], x)
    finally:
        deconv_ir.set_threads(before)


def test_other_outputs_and_profiles_between_runs(tmp_path: Path) -> None:
    model = deconv_ir.load(upsampling(then="Reshape").save(tmp_path))
    for _ in range(2):
        x = data()
        assert list(model.run(x)) == ["y", "rows"]
        assert list(model.run(x, outputs="rows")) == ["rows"]
        profile = deconv_ir.Profile()
        model.run(x, profile=profile)
        assert profile.layers
        close(model.run(x)["y"], x)


def test_threads_run_at_once(model: deconv_ir.Model) -> None:
    wrong: list[BaseException] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(50):
                x = rng.standard_normal((1, 3, 4, 5)).astype(np.float32)
                close(model.run(x)["y"], x)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class _NeedsMemory(Operation):
    """Allocates too much if its input says so."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        return (inputs[0],)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        if inputs[0][0] > 1:
            raise MemoryError
        return (inputs[0] + 1,)


def test_a_failed_allocation_is_an_error_of_resources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(base.REGISTRY, "NeedsMemory", {})
    register("NeedsMemory", "tests", inputs=("data",))(_NeedsMemory)
    ir = IR()
    ir.result(ir.layer("NeedsMemory", [ir.parameter("x", "1")], version="tests"), "y")
    model = deconv_ir.load(ir.save(tmp_path))
    for _ in range(2):
        (found,) = model.run(np.ones(1, np.float32)).values()
        assert found == 2
        with pytest.raises(deconv_ir.ResourceError, match="allocation failed"):
            model.run(np.full(1, 2, np.float32))


@pytest.mark.skipif(not kernels.kernel_info().available, reason="NumPy's sums are many calls")
def test_a_repeated_run_makes_few_calls(model: deconv_ir.Model) -> None:
    """After a kernel has emptied the caches, each function takes a microsecond."""
    called: list[str] = []
    x = data()
    model.run(x)

    def record(frame: Any, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_qualname)

    sys.setprofile(record)
    try:
        model.run(x)
    finally:
        sys.setprofile(None)
    assert len(called) < 20, called
