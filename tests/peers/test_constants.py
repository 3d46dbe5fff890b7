"""Constants of every element type, as OpenVINO unpacks them from the weights file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir

from .problems import array
from .runtimes import F32, assert_close, ops, ov, run

pytestmark = pytest.mark.peers


def _bytes(seed: int, count: int) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8).tobytes()


def _through_f32(folder: Path, kind: str, count: int, raw: bytes) -> Path:
    """Convert a constant to f32, which both sides can return."""
    ir = IR()
    constant = ir.raw_const(raw, kind, (count,))
    ir.result(ir.layer("Convert", [constant], {"destination_type": "f32"}))
    return ir.save(folder)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 17, 64])
@pytest.mark.parametrize(
    ("kind", "bits"), [("u1", 1), ("u2", 2), ("u4", 4), ("i4", 4), ("nf4", 4), ("f4e2m1", 4)]
)
def test_packed_types_are_unpacked_as_in_openvino(
    kind: str, bits: int, count: int, tmp_path: Path
) -> None:
    raw = _bytes(count, (count * bits + 7) // 8)
    path = _through_f32(tmp_path, kind, count, raw)
    (actual,) = deconv_ir.load(path).run({}).values()
    np.testing.assert_array_equal(actual, run(path, {})[0])


@pytest.mark.parametrize(("kind", "group"), [("u3", 8), ("u6", 4)])
def test_packed_in_groups_of_three_bytes(kind: str, group: int, tmp_path: Path) -> None:
    path = _through_f32(tmp_path, kind, 5 * group, _bytes(group, 15))
    (actual,) = deconv_ir.load(path).run({}).values()
    np.testing.assert_array_equal(actual, run(path, {})[0])


@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2", "f8e8m0"])
def test_every_code_of_an_8_bit_float(kind: str, tmp_path: Path) -> None:
    """All codes but f8e8m0's lowest, 2**-127, which OpenVINO flushes to 0 (FAULTS: denormals)."""
    path = _through_f32(tmp_path, kind, 256, bytes(range(256)))
    (actual,) = deconv_ir.load(path).run({}).values()
    expected = run(path, {})[0]
    if kind == "f8e8m0":
        expected[0] = 2.0**-127
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_16_bit_floats(kind: str, tmp_path: Path) -> None:
    """Values have a normal magnitude."""
    codes = np.random.default_rng(7).integers(0x2000, 0x5000, 300, np.uint16)
    path = _through_f32(tmp_path, kind, 300, codes.tobytes())
    (actual,) = deconv_ir.load(path).run({}).values()
    np.testing.assert_array_equal(actual, run(path, {})[0])


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "int8", "uint8", "int16", "int32", "uint32", "int64", "float64"]
)
def test_as_openvino_saves_them(dtype: str, tmp_path: Path) -> None:
    """One file has several constants, unaligned behind a first one of u8."""
    first = ops.constant(np.arange(3, dtype=np.uint8))
    second = ops.constant(array(5, (4, 3), dtype))
    results = [ops.result(first), ops.result(second)]
    path = tmp_path / "const.xml"
    ov.save_model(ov.Model(results, [], "constants"), path, False)
    actual = list(deconv_ir.load(path).run({}).values())
    np.testing.assert_array_equal(actual[0], np.arange(3, dtype=np.uint8))
    np.testing.assert_array_equal(actual[1], array(5, (4, 3), dtype))
    assert actual[1].dtype == np.dtype(dtype)


def test_zero_elements(tmp_path: Path) -> None:
    """OpenVINO writes a size of one byte for such a constant."""
    path = tmp_path / "const.xml"
    constant = ops.constant(np.zeros((0, 3), np.float32))
    ov.save_model(ov.Model([ops.result(constant)], [], "empty"), path, False)
    (actual,) = deconv_ir.load(path).run({}).values()
    assert actual.shape == (0, 3)


@pytest.mark.parametrize("kind", ["u4", "i4", "nf4", "f8e4m3", "f8e5m2", "i8", "u8"])
def test_compressed_weights_of_a_deconvolution(kind: str, tmp_path: Path) -> None:
    """Const -> Convert -> Multiply by a scale -> deconvolution, the form of compressed weights."""
    shape = (4, 3, 2, 2)
    values = np.tanh(array(6, shape)) if kind == "nf4" else np.round(array(6, shape) * 2)
    if kind.startswith("u"):
        values = np.abs(values)
    weights = ov.op.Constant(getattr(ov.Type, kind), ov.Shape(shape), values.ravel().tolist())
    data = ops.parameter([1, 4, 5, 5], np.float32, name="x")
    data.output(0).set_names({"x"})
    scale = ops.constant(array(7, (4, 1, 1, 1)))
    filters = ops.multiply(ops.convert(weights, "f32"), scale)
    node = ops.convolution_backprop_data(data, filters, [2, 2])
    path = tmp_path / "compressed.xml"
    ov.save_model(ov.Model([ops.result(node)], [data], "compressed"), path, False)
    inputs = {"x": array(8, (1, 4, 5, 5))}
    (actual,) = deconv_ir.load(path).run(inputs).values()
    assert_close(actual, run(path, inputs)[0], F32, kind)
