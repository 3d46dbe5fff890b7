"""accuracy='bf16': layers that may be rounded are, and all others stay as they were."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from plan_rows import rows_of
from quantized_layers import Network
from support import IR, invoke
from tiling.exactness import in_tiles

import deconv_ir
from deconv_ir.kernels import bf16
from deconv_ir.kernels.runtime.extension import compiled_module

needs_compiled = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)
RNG = np.random.default_rng(48)
DATA = RNG.standard_normal((2, 6, 10, 12)).astype(np.float32)
FORTH = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
BACK = {**FORTH, "strides": "2,2"}
# The layers of a network: attributes, and the shape of the filter.
LAYERS: dict[str, tuple[dict[str, str], tuple[int, ...]]] = {
    "Convolution": (FORTH, (8, 6, 3, 3)),
    "GroupConvolution": (FORTH, (2, 4, 4, 3, 3)),
    "ConvolutionBackpropData": (BACK, (8, 6, 4, 4)),
    "GroupConvolutionBackpropData": (BACK, (2, 3, 2, 4, 4)),
    "MatMul": ({}, (48, 64)),
}
INPUTS = {"ConvolutionBackpropData": 8, "GroupConvolution": 8}
WEIGHTS = {
    kind: RNG.standard_normal(shape).astype(np.float32) / 4 for kind, (_, shape) in LAYERS.items()
}


def rounded(values: Any) -> Any:
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


def save(folder: Path, kinds: Any = tuple(LAYERS), data: Any = DATA, weights: Any = WEIGHTS) -> str:
    """Write a network of these layers, with a ReLU behind the first; return its file."""
    ir = IR()
    at = ir.parameter("x", ",".join(map(str, data.shape)))
    for number, kind in enumerate(kinds):
        at = ir.layer(kind, [at, ir.const(weights[kind])], LAYERS[kind][0], name=kind)
        at = at if number else ir.layer("ReLU", [at], name="relu")
    ir.result(at)
    folder.mkdir(exist_ok=True)
    return str(ir.save(folder))


def run(path: str, data: Any = DATA, **options: Any) -> Any:
    (found,) = deconv_ir.load(path, **options).run(data).values()
    return found


@pytest.fixture
def rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Round wherever that is possible, emulated if the processor has no instruction."""
    monkeypatch.setattr(bf16, "has_pairs", lambda: True)
    monkeypatch.setattr(bf16, "is_faster", lambda *kernels: True)
    monkeypatch.setattr(bf16, "are_products_faster", lambda: True)


@needs_compiled
@pytest.mark.parametrize("rounds_rows", [True, False])
@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_multiplies_rounded_numbers(
    tmp_path: Path, rounding: None, monkeypatch: pytest.MonkeyPatch, kind: str, rounds_rows: bool
) -> None:
    """The oracle: f64 of a network with rounded weights, for rounded data."""
    monkeypatch.setattr(bf16, "are_products_faster", lambda: rounds_rows)
    data = RNG.standard_normal((1, INPUTS.get(kind, 6), 7, 48)).astype(np.float32)
    found = run(save(tmp_path / "a", [kind], data), data, accuracy="bf16")
    weights = {kind: rounded(WEIGHTS[kind])}
    given = data if kind == "MatMul" and not rounds_rows else rounded(data)
    exact = run(save(tmp_path / "b", [kind], data, weights), given, accuracy="float64")
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)
    assert not np.array_equal(found, run(save(tmp_path / "a", [kind], data), data))


@needs_compiled
def test_the_plan_and_the_profile_show_the_precision(tmp_path: Path, rounding: None) -> None:
    model = deconv_ir.load(save(tmp_path), accuracy="bf16")
    profile = deconv_ir.Profile()
    exact = run(save(tmp_path), accuracy="float64")
    (found,) = model.run(DATA, profile=profile).values()
    scale = np.abs(exact).max()
    assert 1e-4 * scale < np.abs(found - exact).max() < len(LAYERS) * 2.0**-8 * scale
    for rows in (rows_of(model, DATA).values(), profile.layers):
        shown = {row.type.split("+")[0]: (row.precision, row.reason) for row in rows}
        for kind in LAYERS:
            assert shown[kind] == ("bf16", None)
    (again,) = pickle.loads(pickle.dumps(model)).run(DATA).values()
    assert again.tobytes() == found.tobytes()
    plain = deconv_ir.load(save(tmp_path))
    assert {row.precision for row in rows_of(plain, DATA).values()} == {"f32"}


@needs_compiled
def test_tiles_have_the_bits_of_the_whole(tmp_path: Path, rounding: None) -> None:
    kinds = list(LAYERS)[:-1]
    model = deconv_ir.load(save(tmp_path, kinds), accuracy="bf16")
    (whole,) = model.run(DATA).values()
    assert in_tiles(model, {"x": DATA}, (1, 4, 17, 15)).tobytes() == whole.tobytes()


@pytest.mark.parametrize("missing", ["has_pairs", "is_faster"])
def test_convolutions_stay_in_f32_and_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Every processor computes a model with accuracy='bf16', with the bits of f32."""
    if compiled_module() is None and missing == "is_faster":
        pytest.skip("the compiled kernel was not built")
    monkeypatch.setattr(bf16, "has_pairs", lambda: missing != "has_pairs")
    monkeypatch.setattr(bf16, "is_faster", lambda *kernels: False)
    path = save(tmp_path, list(LAYERS)[:-1])
    model = deconv_ir.load(path, accuracy="bf16")
    (found,) = model.run(DATA).values()
    assert found.tobytes() == run(path).tobytes()
    reason = "no products of bf16" if missing == "has_pairs" else "predicted to be as fast"
    rows = [row for row in rows_of(model, DATA).values() if "Convolution" in row.type]
    assert len(rows) == 4
    for row in rows:
        assert row.precision == "f32"
        assert row.reason is not None
        assert reason in row.reason
        assert f"in f32: {row.reason}" in str(row.algorithm)


@needs_compiled
def test_quantised_layers_stay_integers(tmp_path: Path, rounding: None) -> None:
    net = Network("1,4,6,6")
    data = net.quantize(net.x, -1.28, 1.27)
    net.ir.result(net.convolution(data, net.weights(4, 4, 3, 3)[0]))
    path, x = net.ir.save(tmp_path), DATA[:1, :4, :6, :6].copy()
    model = deconv_ir.load(path, accuracy="bf16")
    (row,) = (row for row in rows_of(model, x).values() if row.type == "Convolution")
    assert (row.precision, row.reason) == ("i8", None)
    (found,) = model.run(x).values()
    assert found.tobytes() == run(str(path), x).tobytes()


@needs_compiled
def test_a_filter_that_the_network_computes_is_not_rounded(tmp_path: Path, rounding: None) -> None:
    ir = IR()
    x, w = ir.parameter("x", "2,6,10,12"), ir.parameter("w", "8,6,3,3")
    ir.result(ir.layer("Convolution", [x, w], FORTH, name="y"))
    arrays = {"x": DATA, "w": WEIGHTS["Convolution"]}
    found, plain = (
        deconv_ir.load(ir.save(tmp_path), accuracy=accuracy).run(arrays)["y"]
        for accuracy in ("bf16", "fast")
    )
    assert found.tobytes() == plain.tobytes()


@pytest.mark.parametrize("option", ["--precision", "--accuracy"])
def test_deconv_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    """On a processor without the instruction a note says so, and results are those of f32."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("deconv_ir.kernels.runtime.cpu.has_pairs", lambda: False)
    monkeypatch.setattr(bf16, "has_pairs", lambda: False)
    np.save("x.npy", DATA)
    command = [save(tmp_path, ["Convolution"]), "--input", "x.npy", "--output", "y.npy"]
    done = invoke(*command, option, "bf16")
    assert done.exit_code == 0, done.output
    assert "no products of bf16 (AVX-512 BF16) are available here" in done.output
    assert np.load("y.npy").tobytes() == run(command[0]).tobytes()
    listed = invoke(*command[:3], "--explain-plan", "--json", option, "bf16")
    assert "no products of bf16" in json.dumps(json.loads(listed.stdout))
    refused = invoke(*command[:3], option, "f16")
    assert (refused.exit_code, "'f16' is not one of" in refused.output) == (2, True)


@needs_compiled
def test_a_dump_is_computed_in_f32_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", RNG.standard_normal((3, 48)).astype(np.float32))
    ir = IR()
    matrix = ir.const(WEIGHTS["MatMul"])
    y = ir.layer("MatMul", [ir.parameter("x", "3,48"), matrix], name="y", names="y")
    ir.result(ir.layer("Tanh", [y], name="z", names="z"))
    command = [ir.save(tmp_path), "--input", "x.npy", "--force", "--output", "z.npy", "--dump"]
    text = "--dump computes layer by layer in f32"
    assert text not in invoke(*command, "f32").output
    assert text in invoke(*command, "bf16", "--precision", "bf16").output
    assert np.array_equal(np.load("bf16/y.npy"), np.load("f32/y.npy"))
    assert not np.array_equal(np.load("z.npy"), np.load("f32/z.npy"))
