"""The library as seen by its users."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import IR, deconvolution_ir, traced_peak

import deconv_ir
from deconv_ir import Interval
from deconv_ir.arrays.model_inputs import ModelInputs
from deconv_ir.changes.changeable import Changeable
from deconv_ir.ir.infer import Inference, infer
from deconv_ir.ir.tensor_names import find_tensors
from deconv_ir.tiling.tileable import Tileable

BLOCK = Path(__file__).parent.parent / "samples" / "block" / "block.xml"


def test_public_names() -> None:
    assert set(deconv_ir.__all__) >= {
        "DeconvError", "Finding", "Interval", "Model", "conv_transpose", "lint", "load", "save",
    }  # fmt: skip
    for name in deconv_ir.__all__:
        assert getattr(deconv_ir, name) is not None
    errors = [getattr(deconv_ir, n) for n in deconv_ir.__all__ if n.endswith("Error")]
    assert all(issubclass(e, deconv_ir.DeconvError) for e in errors)


@pytest.mark.parametrize("base", [Changeable, Tileable])
def test_a_part_of_a_model_is_not_a_model(base: type) -> None:
    with pytest.raises(TypeError, match="abstract"):
        base()


def test_inputs_and_outputs_are_ordered_and_named() -> None:
    model = deconv_ir.load(BLOCK)
    assert list(model.inputs) == ["x"]
    assert list(model.outputs) == ["y"]
    assert model.inputs["x"].shape == (1, 8, 16, 16)
    assert str(model.inputs["x"].element_type) == "f32"
    assert model.outputs["y"].shape == (1, 4, 32, 32)
    assert "x: f32[1,8,16,16]" in repr(model)


def test_saved_block_gives_what_its_formula_says() -> None:
    """y = relu(deconvolution + bias), the weights stored as f16."""
    model = deconv_ir.load(BLOCK)
    raw = BLOCK.with_suffix(".bin").read_bytes()
    stored = np.frombuffer(raw, np.float16).astype(np.float32)
    filter_, bias = stored[:512].reshape(8, 4, 4, 4), stored[512:].reshape(1, 4, 1, 1)
    x = np.random.default_rng(0).standard_normal((1, 8, 16, 16)).astype(np.float32)
    from deconv_ir.kernels import naive

    full = naive(
        x.astype(np.float64), filter_.astype(np.float64), strides=(2, 2), dilations=(1, 1),
        groups=1, pads_begin=(1, 1), output=(32, 32),
    )  # fmt: skip
    expected = np.maximum(full + bias, 0)
    np.testing.assert_allclose(model.run([x])["y"], expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["x", "data"])
def test_run_by_tensor_name_layer_name_or_order(name: str, tmp_path: Path) -> None:
    ir = deconvolution_ir()
    ir.layers[0] = ir.layers[0].replace('name="x"', 'name="data"')
    model = deconv_ir.load(ir.save(tmp_path))
    x = np.ones((1, 2, 5, 5), np.float32)
    assert np.array_equal(model.run({name: x})["y"], model.run([x])["y"])


def test_infer_shapes_of_a_dynamic_model(tmp_path: Path) -> None:
    path = deconvolution_ir("?,2,3..9,?", attributes={"strides": "2,2"}).save(tmp_path)
    model = deconv_ir.load(path)
    shape = model.infer_shapes()["y"]
    assert shape == (Interval(0, None), 3, Interval(7, 19), Interval(3, None))
    assert (shape[2].min, shape[2].max, shape[3].max) == (7, 19, None)
    assert model.infer_shapes({"x": (4, 2, 5, 6)}) == {"y": (4, 3, 11, 13)}
    with pytest.raises(deconv_ir.InputError, match=r"takes shape \[\?,2,3..9,\?\], found \[4,2,1"):
        model.infer_shapes({"x": (4, 2, 1, 6)})


def test_shapes_that_the_file_declares_are_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = deconv_ir.load(BLOCK)
    calls = []

    def counted(*args: Any, **options: Any) -> Inference:
        calls.append(args)
        return infer(*args, **options)

    monkeypatch.setattr(deconv_ir.model, "infer", counted)
    assert model.run(np.zeros((1, 8, 16, 16), np.float32))["y"].shape == (1, 4, 32, 32)
    assert not calls


def test_findings_of_a_run_are_those_of_its_shapes(tmp_path: Path) -> None:
    """If a Parameter declares other dims, the file has a finding, but not the array."""
    text = BLOCK.read_text().replace("<dim>16</dim>", "<dim>15</dim>", 1)
    path = tmp_path / "block.xml"
    path.write_text(text)
    (tmp_path / "block.bin").write_bytes(BLOCK.with_suffix(".bin").read_bytes())
    with pytest.warns(deconv_ir.IRWarning, match="declared 15, computed 16"):
        model = deconv_ir.load(path)
    assert [finding.rule for finding in model.findings] == ["declared-dims"]
    assert model.bind(np.zeros((1, 8, 16, 16), np.float32)).findings == ()


def test_dynamic_rank_is_none(tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "...")], names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    assert model.infer_shapes() == {"y": None}
    assert model.run([np.array(-3.0, np.float32)])["y"].shape == ()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"z": np.zeros(1)}, "no input 'z'; it has 'x'"),
        ({}, "no array for input 'x'"),
        ([], "no array for input 'x'"),
        ([np.zeros(1)] * 2, "takes 1 inputs, found 2"),
        ([np.zeros((1, 2, 5, 6), "f4")], "takes shape [1,2,5,5], the array has [1,2,5,6]"),
        ([np.zeros((1, 2, 5), "f4")], "the array has [1,2,5]"),
        ([np.zeros((1, 2, 5, 5))], "takes f32, the array is f64"),
        ([np.zeros((1, 2, 5, 5), "c8")], "the array is complex64"),
        ([np.zeros((1, 2, 5, 5), "U1")], "the array is <U1"),
    ],
)
def test_arrays_that_do_not_fit(inputs: object, words: str, tmp_path: Path) -> None:
    model = deconv_ir.load(deconvolution_ir().save(tmp_path))
    with pytest.raises(deconv_ir.InputError) as caught:
        model.run(inputs)  # type: ignore[arg-type]
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "fits"), [("f8", True), ("i4", True), ("?", True), ("f2", True), ("c8", False)]
)
def test_cast(dtype: str, fits: bool, tmp_path: Path) -> None:
    model = deconv_ir.load(deconvolution_ir().save(tmp_path))
    x = np.ones((1, 2, 5, 5), dtype)
    if not fits:
        with pytest.raises(deconv_ir.InputError):
            model.run([x], cast=True)
        return
    with pytest.raises(deconv_ir.InputError, match="cast=True"):
        model.run([x])
    expected = model.run([np.ones((1, 2, 5, 5), np.float32)])["y"]
    assert np.array_equal(model.run([x], cast=True)["y"], expected)


def test_floats_become_integers_only_where_they_are_integers(tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "2", "i32")], precision="I32", names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    with pytest.raises(deconv_ir.InputError, match="takes i32, the array is f32"):
        model.run([np.zeros(2, np.float32)])
    found = model.run([np.array([3, 7], np.float32)], cast=True)["y"]
    assert (found.dtype, found.tolist()) == (np.dtype(np.int32), [3, 7])
    with pytest.raises(deconv_ir.InputError, match=r"element \[1\] is 0.5, which does not fit i32"):
        model.run([np.array([3, 0.5], np.float32)], cast=True)


@pytest.mark.parametrize("order", ["big-endian", "fortran", "strided", "list"])
def test_any_memory_layout(order: str, tmp_path: Path) -> None:
    model = deconv_ir.load(deconvolution_ir().save(tmp_path))
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 5)).astype(np.float32)
    other = {
        "big-endian": x.astype(">f4"),
        "fortran": np.asfortranarray(x),
        "strided": np.repeat(x, 2, axis=3)[..., ::2],
        "list": x,
    }[order]
    assert np.array_equal(model.run([other])["y"], model.run([x])["y"])


def test_results_are_the_callers_own(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "3")
    ir.result(x, "same")
    ir.result(ir.const(np.arange(3, dtype=np.float32), "c"), "constant")
    model = deconv_ir.load(ir.save(tmp_path))
    given = np.zeros(3, np.float32)
    for _ in range(2):
        results = model.run([given])
        assert list(results) == ["x", "c"]
        assert results["c"].tolist() == [0, 1, 2]
        for array in results.values():
            array += 7
    assert given.tolist() == [0, 0, 0]


def test_outputs_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    ir = IR()
    y = ir.layer("ReLU", [ir.parameter("x", "3")], name="y", names="t")
    for _ in range(3):
        ir.result(y)
    results = deconv_ir.load(ir.save(tmp_path)).run([np.ones(3, np.float32)])
    assert list(results) == ["t", "y", "t.1"]


def test_a_result_may_have_the_name_of_its_layer(tmp_path: Path) -> None:
    """The name means the layer, as if the Result had another one."""
    ir = IR()
    y = ir.layer("ReLU", [ir.parameter("x", "3")], name="y", names="t")
    ir.result(y, "y")
    model = deconv_ir.load(ir.save(tmp_path))
    assert list(model.run([-np.ones(3, np.float32)], outputs=["y"])["y"]) == [0, 0, 0]


def test_equal_layers_have_a_finding_each(tmp_path: Path) -> None:
    """Two layers with the same operation, inputs and wrong declared dims."""
    ir = IR()
    x = ir.parameter("x", "2,3")
    for name in ("a", "b"):
        ir.result(ir.layer("ReLU", [x], outputs=["2,4"], name=name))
    found = deconv_ir.load(ir.save(tmp_path), warn=False).findings
    assert len(found) == 2
    assert "'a'" in str(found[0])
    assert "'b'" in str(found[1])


def test_unsupported_operation_is_told_when_something_needs_it(tmp_path: Path) -> None:
    ir = deconvolution_ir()
    side = ir.layer("Frobnicate", [(0, 0)], name="f", version="opset9")
    model = deconv_ir.load(ir.save(tmp_path))  # no output depends on it
    assert model.run([np.zeros((1, 2, 5, 5), np.float32)])
    ir.result(side)
    needing = deconv_ir.load(ir.save(tmp_path))
    with pytest.raises(deconv_ir.UnsupportedError) as caught:
        needing.run([np.zeros((1, 2, 5, 5), np.float32)])
    assert "layer 'f' (Frobnicate, id 4): operation Frobnicate (version opset9)" in str(
        caught.value
    )
    assert caught.value.line is not None


def test_output_shape_at_run_time(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "1,2,?,?")
    w = ir.const(np.ones((2, 3, 3, 3), np.float32))
    size = ir.parameter("size", "2", "i32")
    ir.result(ir.layer("ConvolutionBackpropData", [x, w, size], {"strides": "2,2"}, names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    data = np.ones((1, 2, 4, 5), np.float32)
    for extents in ([9, 11], [7, 20]):
        found = model.run([data, np.array(extents, np.int32)])["y"]
        assert found.shape == (1, 3, *extents)


@pytest.mark.parametrize("semantics", ["both", "SPEC", ""])
def test_unknown_semantics(semantics: str) -> None:
    with pytest.raises(deconv_ir.DeconvError, match="'spec' or 'openvino'"):
        deconv_ir.load(BLOCK, semantics=semantics)


def test_one_layer_alone_keeps_its_constants() -> None:
    model = deconv_ir.load(BLOCK)
    alone = model.layer("up")
    assert list(alone.inputs) == ["data"]
    x = np.random.default_rng(0).standard_normal((1, 8, 16, 16)).astype(np.float32)
    up = alone.run([x])["up"]
    biased = model.layer("up/bias").run([up])
    relu = model.layer("7").run(list(biased.values()))
    # In the whole model the three layers are one kernel, with another order of sums.
    np.testing.assert_allclose(next(iter(relu.values())), model.run([x])["y"], rtol=1e-5, atol=1e-6)
    with pytest.raises(deconv_ir.IRError, match="no layer 'none'"):
        model.layer("none")


def test_runs_from_many_threads_agree() -> None:
    model = deconv_ir.load(BLOCK)
    rng = np.random.default_rng(0)
    xs = [rng.standard_normal((1, 8, 16, 16)).astype(np.float32) for _ in range(8)]
    expected = [deconv_ir.load(BLOCK).run([x])["y"] for x in xs]
    found: list[np.ndarray | None] = [None] * 8

    def work(i: int) -> None:
        for _ in range(5):
            found[i] = model.run([xs[i]])["y"]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b)


def test_lint_finds_what_load_would_refuse(tmp_path: Path) -> None:
    assert deconv_ir.lint(BLOCK) == []
    text = BLOCK.read_text()
    broken = tmp_path / "block.xml"
    broken.write_text(text.replace("<dim>32</dim>", "<dim>33</dim>", 1))
    (tmp_path / "block.bin").write_bytes(BLOCK.with_suffix(".bin").read_bytes())
    (finding,) = deconv_ir.lint(broken)
    assert finding.file == str(broken)
    assert (finding.expected, finding.actual) == (32, 33)
    assert "'up'" in (finding.layer or "")


def test_arrays_are_freed_after_their_last_use(tmp_path: Path) -> None:
    """A chain of n layers never holds more than a few of its n tensors at once."""
    ir = IR()
    y = ir.parameter("x", "1,1,256,1024")
    for _ in range(20):
        y = ir.layer("Add", [y, y])
    ir.result(y)
    model = deconv_ir.load(ir.save(tmp_path))
    x = np.zeros((1, 1, 256, 1024), np.float32)
    model.run([x])
    assert traced_peak(lambda: model.run([x])) < 4 * x.nbytes


@pytest.mark.parametrize("dtype", ["i4", "i8", "u8", "f4", ">i4", ">f2"])
def test_what_passes_through_keeps_a_dtype_that_files_can_hold(dtype: str, tmp_path: Path) -> None:
    from deconv_ir.arrays.fitting import to_storable

    name = {"i": "i", "u": "u", "f": "f"}[dtype[-2]] + str(8 * int(dtype[-1]))
    ir = IR()
    ir.result(ir.parameter("x", "3", name))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    (found,) = model.run([np.array([1, 2, 3], dtype)]).values()
    assert to_storable(found).dtype.str.lstrip("|<") == dtype.lstrip(">")


def test_a_bound_model_tells_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are bound once, however many results are requested."""
    model = deconv_ir.load(BLOCK)
    counted = []
    match = ModelInputs.match

    def count(self: ModelInputs, *args: object, **options: object) -> object:
        counted.append(args)
        return match(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ModelInputs, "match", count)
    x = np.ones((1, 8, 16, 16), np.float32)
    bound = model.bind(x, outputs=["up"])
    assert bound.findings == ()
    assert bound.plan.tensor_bytes == 4 * 32 * 32 * 4
    (y,) = bound.run().values()
    assert len(counted) == 1
    np.testing.assert_array_equal(y, model.run(x, outputs="up")["up"])


def test_shapes_alone_do_not_run() -> None:
    model = deconv_ir.load(BLOCK)
    bound = model.bind(shapes={"x": (1, 8, 16, 16)})
    assert bound.plan.peak_bytes == model.bind().plan.peak_bytes
    assert bound.findings == ()
    with pytest.raises(deconv_ir.InputError, match="bound to shapes"):
        bound.run()
    with pytest.raises(deconv_ir.InputError, match="inputs or shapes"):
        model.bind(np.ones((1, 8, 16, 16), np.float32), shapes={"x": (1, 8, 16, 16)})


def test_a_layer_goes_before_an_output_of_its_name(tmp_path: Path) -> None:
    """Tensors are found by tensor name, then layer name, as `Model.run` documents."""
    ir = IR()
    x = ir.layer("ReLU", [ir.parameter("x", "3")], name="relu")
    ir.result(ir.layer("Negative", [x], name="minus"))
    graph = deconv_ir.load(ir.save(tmp_path)).graph
    at = {layer.name: index for index, layer in enumerate(graph.layers)}
    assert find_tensors(graph, ["relu"], {"relu": (at["minus"], 0)}) == {"relu": (at["relu"], 0)}
