"""BinaryConvolution against a loop that counts equal bits."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.errors import ShapeError, UnsupportedError
from deconv_ir.ir.dtypes import F32, parse_element_type
from deconv_ir.ir.geometry import PadMode
from deconv_ir.ir.options import Semantics
from deconv_ir.operations import Context, TensorInfo
from deconv_ir.ops.convolution.binary import BinaryConvolution, BinaryMode

OPENVINO = Context(Semantics.OPENVINO)


def make(pad_value: float = 0, **attributes: object) -> BinaryConvolution:
    given = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
    mode = BinaryMode.XNOR_POPCOUNT
    return BinaryConvolution(mode=mode, pad_value=pad_value, **(given | attributes))


def count(
    data: np.ndarray,
    filter_: np.ndarray,
    strides: tuple[int, int],
    dilations: tuple[int, int],
    begin: tuple[int, int],
    size: tuple[int, int],
    pad: int | None,
) -> np.ndarray:
    """Return 2 P - B as in the document; pads are the bit `pad`, or are not counted."""
    result = np.zeros((len(data), len(filter_), *size))
    for n, o, y, x in np.ndindex(*result.shape):
        agree = bits = 0
        for c, i, j in np.ndindex(*filter_.shape[1:]):
            row = y * strides[0] + i * dilations[0] - begin[0]
            column = x * strides[1] + j * dilations[1] - begin[1]
            inside = 0 <= row < data.shape[2] and 0 <= column < data.shape[3]
            bit = int(data[n, c, row, column]) if inside else pad
            if bit is not None:
                bits += 1
                agree += bit == filter_[o, c, i, j]
        result[n, o, y, x] = 2 * agree - bits
    return result


@pytest.mark.parametrize("pad_value", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8])
def test_against_loops(pad_value: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(0, 2, (2, 3, 6, 7))
    filter_ = rng.integers(0, 2, (4, 3, 2, 3), np.uint8)
    window = {"strides": (2, 1), "dilations": (1, 2)}
    operation = make(pad_value, pads_begin=(1, 0), pads_end=(0, 2), **window)
    given = data.astype(dtype)
    (found,) = operation.execute([given, filter_], Context())
    expected = count(data, filter_, (2, 1), (1, 2), (1, 0), (3, 5), pad_value)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected.astype(dtype))


@pytest.mark.parametrize(
    ("auto_pad", "begin"), [(PadMode.SAME_UPPER, (0, 1)), (PadMode.SAME_LOWER, (1, 1))]
)
def test_automatic_pads(auto_pad: PadMode, begin: tuple[int, int]) -> None:
    """Along Y one element is missing, along X two."""
    rng = np.random.default_rng(1)
    data, filter_ = rng.integers(0, 2, (1, 2, 4, 5)), rng.integers(0, 2, (3, 2, 2, 3), np.uint8)
    (found,) = make(1, auto_pad=auto_pad).execute([data.astype(np.float32), filter_], Context())
    np.testing.assert_array_equal(found, count(data, filter_, (1, 1), (1, 1), begin, (4, 5), 1))


@pytest.mark.parametrize(("pad_value", "pad"), [(0, None), (1, 1), (-1, 0), (0.5, 0)])
def test_runtime(pad_value: float, pad: int | None) -> None:
    """The filter's bytes are read from the lowest bit on; pads of 0 are not counted."""
    rng = np.random.default_rng(2)
    data = rng.integers(0, 2, (1, 8, 3, 4))
    filter_ = rng.integers(0, 2, (2, 8, 3, 3), np.uint8)
    stored = np.packbits(filter_, bitorder="little")
    const = np.unpackbits(stored, bitorder="big").reshape(filter_.shape)
    operation = make(pad_value, pads_begin=(1, 1), pads_end=(1, 1))
    (found,) = operation.execute([data.astype(np.float32), const], OPENVINO)
    np.testing.assert_array_equal(found, count(data, filter_, (1, 1), (1, 1), (1, 1), (3, 4), pad))
    inputs = (TensorInfo((1, 8, 3, 4), F32), TensorInfo((2, 8, 3, 3), parse_element_type("u1")))
    difference = operation.compare_semantics(inputs, OPENVINO)
    assert difference is not None
    assert difference.runtime == ({None: 0, 0: -1, 1: 1}[pad],)


def test_what_is_refused() -> None:
    bits = parse_element_type("u1")
    data, filter_ = TensorInfo((1, 3, 5, 5), F32), TensorInfo((2, 3, 3, 3), bits)
    for inputs, message in [
        ((data, TensorInfo((2, 3, 3, 3), F32)), "filter must be u1"),
        ((data, TensorInfo((2, 4, 3, 3), bits)), "channels"),
        ((TensorInfo((1, 3, 5), F32), filter_), "data must have rank 4"),
        ((data, TensorInfo((2, 3, 6, 3), bits)), "window does not fit"),
    ]:
        with pytest.raises(ShapeError, match=message):
            make().infer(inputs, Context())
    with pytest.raises(UnsupportedError, match="a multiple of 8 input channels, found 3"):
        make().execute([np.ones((1, 3, 3, 3)), np.ones((1, 3, 3, 3), np.uint8)], OPENVINO)


XML = """<net name="bits" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1">
<data shape="1,3,4,4" element_type="f32"/><output><port id="0" precision="FP32">
<dim>1</dim><dim>3</dim><dim>4</dim><dim>4</dim></port></output></layer>
<layer id="1" name="w" type="Const" version="opset1">
<data element_type="u1" shape="2,3,3,3" offset="0" size="7"/><output><port id="0" precision="BIN">
<dim>2</dim><dim>3</dim><dim>3</dim><dim>3</dim></port></output></layer>
<layer id="2" name="y" type="BinaryConvolution" version="opset1">
<data strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1" mode="xnor-popcount"
 pad_value="0" auto_pad="explicit"/>
<input><port id="0"><dim>1</dim><dim>3</dim><dim>4</dim><dim>4</dim></port>
<port id="1"><dim>2</dim><dim>3</dim><dim>3</dim><dim>3</dim></port></input>
<output><port id="2" precision="FP32"><dim>1</dim><dim>2</dim><dim>4</dim><dim>4</dim></port>
</output></layer>
<layer id="3" name="r" type="Result" version="opset1"><input><port id="0">
<dim>1</dim><dim>2</dim><dim>4</dim><dim>4</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>"""


def test_model(tmp_path: Path) -> None:
    """A filter of 54 bits, in seven bytes of the weights."""
    rng = np.random.default_rng(3)
    data, filter_ = rng.integers(0, 2, (1, 3, 4, 4)), rng.integers(0, 2, (2, 3, 3, 3), np.uint8)
    (tmp_path / "m.xml").write_text(XML)
    (tmp_path / "m.bin").write_bytes(np.packbits(filter_).tobytes())
    model = deconv_ir.load(tmp_path / "m.xml", warn=False)
    (found,) = model.run(data.astype(np.float32)).values()
    np.testing.assert_array_equal(found, count(data, filter_, (1, 1), (1, 1), (1, 1), (4, 4), 0))
    codes = [f.code for f in deconv_ir.lint(tmp_path / "m.xml") if f.severity.name == "ERROR"]
    assert not codes
    for old, new in itertools.product(["xnor-popcount"], ["xnor", ""]):
        (tmp_path / "m.xml").write_text(XML.replace(old, new))
        assert any(f.severity.name == "ERROR" for f in deconv_ir.lint(tmp_path / "m.xml"))
