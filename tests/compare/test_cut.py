"""Parts of models compute the same as the whole, and contain only their own weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from edited import Edit, build
from support import IR, invoke_script

import deconv_ir

X = np.random.default_rng(0).standard_normal((1, 4, 12, 12)).astype(np.float32)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("original"))


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ((), ("up",)),
        ("skip", "pool"),
        ("enc/relu", "y"),
        (("mid", "enc/relu"), ("skip", "mid/clamp")),
        ("enc", ()),
        ("up", "elu"),
    ],
)
def test_a_part_computes_what_the_whole_does(
    original: Path, tmp_path: Path, start: str | tuple[str, ...], end: str | tuple[str, ...]
) -> None:
    part = deconv_ir.cut(original, tmp_path / "part.xml", start=start, end=end)
    model = deconv_ir.load(tmp_path / "part.xml", strict=True)
    whole = deconv_ir.load(original)
    inputs = whole.run(X, outputs=[name for name in model.inputs if name != "x"])
    if "x" in model.inputs:
        inputs["x"] = X
    names = [name.partition(":")[0] for name in part.inputs]
    assert sorted(names) == sorted(model.inputs)
    assert "..." not in (tmp_path / "part.xml").read_text(), "all shapes are known"
    expected = whole.run(X, outputs=list(part.outputs))
    for name, array in model.run(inputs).items():
        assert np.allclose(array, expected[name], rtol=1e-5, atol=1e-5), name


def test_only_its_own_weights(original: Path, tmp_path: Path) -> None:
    part = deconv_ir.cut(original, tmp_path / "part.xml", start="skip", end="pool")
    assert part.weight_bytes == 8 * 8 * 4 * 4 * 4
    assert (tmp_path / "part.bin").stat().st_size == part.weight_bytes
    kept = Edit(tmp_path / "part.xml").array("up/w")
    assert np.array_equal(kept, Edit(original).array("up/w"))


def test_a_part_without_weights_has_no_file_for_them(original: Path, tmp_path: Path) -> None:
    part = deconv_ir.cut(original, tmp_path / "part.xml", start="up", end="elu")
    assert part.weight_bytes == 0
    assert not (tmp_path / "part.bin").exists()


@pytest.mark.parametrize("element_type", ["f32", "f16", "i8", "u8", "i4", "boolean"])
def test_weights_are_replaced_by_noise(tmp_path: Path, element_type: str) -> None:
    ir = IR()
    data = bytes(range(256)) if element_type in ("i8", "u8", "i4") else bytes(256)
    if element_type in ("f32", "f16"):
        kind = {"f32": np.float32, "f16": np.float16}[element_type]
        data = (np.random.default_rng(3).standard_normal(4096) * 3 + 5).astype(kind).tobytes()
    bits = {"f32": 32, "f16": 16, "i4": 4}.get(element_type, 8)
    count = len(data) * 8 // bits
    secret = ir.raw_const(data, element_type, (count,), "secret")
    order = ir.const(np.arange(40), "order")
    ir.result(ir.layer("Gather", [secret, order, ir.const(np.array(0), "axis")], name="y"))
    path = ir.save(tmp_path)
    for seed, name in ((1, "a"), (1, "b"), (2, "c")):
        deconv_ir.cut(path, tmp_path / f"{name}.xml", strip_weights=seed)
    part = deconv_ir.cut(path, tmp_path / "d.xml", strip_weights=3)
    assert part.kept == ("order", "axis")
    assert deconv_ir.cut(path, tmp_path / "e.xml").kept == ()
    stripped = [(tmp_path / f"{name}.bin").read_bytes() for name in "abc"]
    assert stripped[0] == stripped[1]
    own, rest = stripped[0][: len(data)], stripped[0][len(data) :]
    assert rest == ir.weights[len(data) :]  # indices and axes are not weights
    if element_type == "boolean":
        return
    assert own != data
    assert stripped[2] != stripped[0]
    if element_type in ("f32", "f16"):
        noise, values = np.frombuffer(own, kind), np.frombuffer(data, kind)
        assert noise.mean() == pytest.approx(values.mean(), abs=0.2)
        assert noise.std() == pytest.approx(values.std(), rel=0.1)
        assert values.min() <= noise.min() <= noise.max() <= values.max()


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("up", "mid", "no output of the part depends on 'up'"),
        ("up", "up", "both an input and an output"),
        ("upp", "y", "did you mean 'up'"),
    ],
)
def test_a_cut_without_layers_between_its_ends_is_refused(
    original: Path, tmp_path: Path, start: str, end: str, words: str
) -> None:
    with pytest.raises(deconv_ir.IRError, match=words):
        deconv_ir.cut(original, tmp_path / "part.xml", start=start, end=end)
    assert not list(tmp_path.glob("part*"))


def test_a_file_that_cannot_be_written(original: Path, tmp_path: Path) -> None:
    with pytest.raises(deconv_ir.OutputError):
        deconv_ir.cut(original, tmp_path / "no" / "part.xml")


SAMPLES = Path(__file__).parents[2] / "samples"
GRAPH = SAMPLES / "onednn" / "int8.json"


@pytest.mark.parametrize("suffix", [".json", ".xml"])
@pytest.mark.parametrize(("start", "end"), [((), "4"), ("4", ()), (("1", "3"), "5")])
def test_a_part_of_a_graph_file(tmp_path: Path, start: str, end: str, suffix: str) -> None:
    """A part is saved as a graph file with the same operations, or as an IR."""
    path = tmp_path / f"part{suffix}"
    part = deconv_ir.cut(GRAPH, path, start=start, end=end)
    model, whole = deconv_ir.load(path, strict=True), deconv_ir.load(GRAPH)
    arrays = dict(np.load(GRAPH.with_suffix(".npz")))
    tensors = whole.run(arrays, outputs=["1", "3", "4", "5", "6"])
    inputs = {name: ({**arrays, **tensors})[name] for name in model.inputs}
    assert set(part.outputs) == set(model.outputs)
    for name, found in model.run(inputs).items():
        np.testing.assert_allclose(
            found.astype(float), tensors[name].astype(float), 1e-6, 1 if name == "6" else 1e-6
        )
    if suffix == ".json":
        stated = {layer.name for layer in model.graph.layers if layer.version is None}
        assert stated < {layer.name for layer in whole.graph.layers}


def test_only_graph_files_have_parts_that_are_graph_files(original: Path, tmp_path: Path) -> None:
    with pytest.raises(deconv_ir.InputError, match="only a part of a oneDNN Graph file"):
        deconv_ir.cut(original, tmp_path / "part.json", end="pool")
    assert not list(tmp_path.glob("part*"))


def test_inputs_and_outputs_have_tensor_names(tmp_path: Path) -> None:
    """Layers without tensor names, two of them with the same name, and one with two outputs."""
    ir = IR()
    x = ir.layer("Parameter", attributes={"shape": "4", "element_type": "f32"}, name="x")
    same = ir.layer("Abs", [x], name="same")
    again = ir.layer("Sqrt", [same], name="same")
    split = ir.layer(
        "Split",
        [again, ir.const(np.array(0), "axis")],
        {"num_splits": "2"},
        name="split",
        outputs=("", ""),
    )
    for source in (same, again, split, (split[0], split[1] + 1)):
        ir.result(source, "end")
    path = ir.save(tmp_path)
    whole = list(deconv_ir.load(path).run(np.float32([-1, 4, -9, 16])).values())
    part = deconv_ir.cut(path, tmp_path / "part.xml")
    names = [
        port.get("names")
        for layer in Edit(tmp_path / "part.xml").root.iter("layer")
        for port in layer.iterfind("output/port")
        if layer.get("type") != "Const"
    ]
    assert names == ["x", "same", "same.2", "split.0", "split.1"]
    assert list(part.outputs) == names[1:]
    found = deconv_ir.load(tmp_path / "part.xml").run({"x": np.float32([-1, 4, -9, 16])})
    assert list(found) == names[1:]
    for name, expected in zip(names[1:], whole, strict=True):
        np.testing.assert_array_equal(found[name], expected)


def test_the_names_of_kept_constants_are_printed(tmp_path: Path) -> None:
    ir = IR()
    at = ir.parameter("x", "2")
    for number in range(7):
        at = ir.layer("Add", [at, ir.const(np.ones(2, np.float32), f"c{number}")])
    at = ir.layer("Multiply", [at, ir.const(np.ones((17, 2), np.float32))])
    ir.result(at, "y")
    path = ir.save(tmp_path)
    done = invoke_script("cut", path, "--output", tmp_path / "part.xml", "--strip-weights")
    assert "not replaced, since small or no weights: c0, c1, c2, c3, c4 and 2 more\n" in done.output
    done = invoke_script("cut", path, "--output", tmp_path / "part.xml", "--force")
    assert "not replaced" not in done.output


def test_a_bare_layer(tmp_path: Path) -> None:
    path = SAMPLES / "spec" / "conv_transpose" / "batch" / "layer.xml"
    deconv_ir.cut(path, tmp_path / "part.xml")
    whole, part = deconv_ir.load(path), deconv_ir.load(tmp_path / "part.xml")
    arrays = [np.ones(port.shape, np.float32) for port in whole.inputs.values()]
    for expected, found in zip(whole.run(arrays).values(), part.run(arrays).values(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_model_without_outputs(tmp_path: Path) -> None:
    ir = IR()
    ir.layer("ReLU", [ir.parameter("x", "2")], name="y")
    path = ir.save(tmp_path)
    done = invoke_script("cut", path, "--output", tmp_path / "part.xml")
    assert done.exit_code == 2
    words = f"error: {path}: the model has no outputs (--to TENSOR names others)\n"
    assert done.stderr == words
    assert invoke_script("cut", path, "--to", "y", "--output", tmp_path / "part.xml").exit_code == 0
