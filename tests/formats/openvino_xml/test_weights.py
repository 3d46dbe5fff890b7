"""The weights file: offsets of constants, and unpacking of packed ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.formats.openvino_xml.weights import Weights


def constant_ir(
    data: bytes, element_type: str, shape: tuple[int, ...], overrides: dict[str, str] | None = None
) -> IR:
    """Build a model whose only output is a constant, converted to f32 or i64."""
    ir = IR()
    c = ir.raw_const(data, element_type, shape, "c", overrides)
    to = "f32" if element_type[0] in "fbn" and element_type != "boolean" else "i64"
    y = ir.layer(
        "Convert", [c], {"destination_type": to}, precision="FP32" if to == "f32" else "I64"
    )
    ir.result(y)
    return ir


# Bytes and values as OpenVINO 2026.4 reads them.
PACKED = [
    ("u1", "a0", (8,), [1, 0, 1, 0, 0, 0, 0, 0]),
    ("u1", "a0c0", (10,), [1, 0, 1, 0, 0, 0, 0, 0, 1, 1]),
    ("u2", "1b", (4,), [3, 2, 1, 0]),
    ("u3", "1bc0b2", (8,), [4, 1, 6, 7, 3, 0, 4, 0]),
    ("u4", "1234", (4,), [2, 1, 4, 3]),
    ("u4", "1234", (3,), [2, 1, 4]),
    ("i4", "128f", (4,), [2, 1, -1, -8]),
    ("u6", "1bc0b2", (4,), [33, 59, 12, 32]),
    ("nf4", "70f8", (4,), [-1.0, 0.0, 0.07958029955625534, 1.0]),
    ("f4e2m1", "a1", (2,), [0.5, -1.0]),
    ("f8e4m3", "387ec0", (3,), [1.0, 448.0, -2.0]),
    ("f8e5m2", "3c7cc0", (3,), [1.0, np.inf, -2.0]),
    ("f8e8m0", "7f8081", (3,), [1.0, 2.0, 4.0]),
    ("bf16", "803f00c0", (2,), [1.0, -2.0]),
    ("f16", "003c00c0", (2,), [1.0, -2.0]),
    ("boolean", "010002", (3,), [1, 0, 1]),
    ("i8", "ff80", (2,), [-1, -128]),
    ("u16", "ffff0100", (2,), [65535, 1]),
    ("f32", "0000803f", (), 1.0),
    ("i32", "", (0, 3), []),
]


@pytest.mark.parametrize(
    ("element_type", "data", "shape", "values"), PACKED, ids=[f"{p[0]}{p[2]}" for p in PACKED]
)
def test_constants_of_all_types(
    element_type: str, data: str, shape: tuple[int, ...], values: list, tmp_path: Path
) -> None:
    ir = constant_ir(bytes.fromhex(data), element_type, shape)
    (found,) = deconv_ir.load(ir.save(tmp_path)).run([]).values()
    assert found.shape == shape
    assert found.ravel().tolist() == np.ravel(values).astype(found.dtype).tolist()


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (
            {"offset": "4"},
            "offset 4 + size 12 = 16 is past the end of model.bin, which has 12 bytes",
        ),
        ({"offset": "9223372036854775807"}, "past the end"),
        ({"size": "8"}, "size is 8 bytes, but f32[3] takes 12"),
        ({"shape": "9223372036854775807,9223372036854775807"}, "takes 34028236692093846"),
        ({"shape": "?"}, "must have a static shape, found [?]"),
        ({"shape": "..."}, "must have a static shape"),
        ({"offset": "-1"}, "'offset' must be a non-negative whole number, found '-1'"),
        ({"size": "1e3"}, "'size' must be a non-negative whole number"),
        ({"element_type": "f31"}, "'element_type' must be an element type, found 'f31'"),
    ],
)
def test_constants_that_do_not_fit(overrides: dict[str, str], words: str, tmp_path: Path) -> None:
    ir = constant_ir(bytes(12), "f32", (3,), overrides)
    with pytest.raises(deconv_ir.DeconvError) as caught:
        deconv_ir.load(ir.save(tmp_path))
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/model.xml:")
    assert "layer 'c' (Const, id 0)" in str(caught.value)


def test_size_may_be_more_than_needed(tmp_path: Path) -> None:
    # as OpenVINO's reader does; OpenVINO writes size 1 for an empty constant
    ir = constant_ir(bytes(16), "f32", (3,))
    assert deconv_ir.load(ir.save(tmp_path)).run([])


def test_missing_weights_are_named_with_the_option_that_helps(tmp_path: Path) -> None:
    path = constant_ir(bytes(12), "f32", (3,)).save(tmp_path)
    moved = tmp_path / "elsewhere.bin"
    (tmp_path / "model.bin").rename(moved)
    with pytest.raises(
        deconv_ir.WeightsError, match=r"no model.bin beside it.*weights names another"
    ):
        deconv_ir.load(path)
    assert deconv_ir.load(path, weights=moved).run([])
    with pytest.raises(deconv_ir.WeightsError, match="No such file"):
        deconv_ir.load(path, weights=tmp_path / "none.bin")


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_weights_are_a_regular_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    path.mkdir() if kind == "directory" else os.mkfifo(path)
    with pytest.raises(deconv_ir.WeightsError, match=r"regular file|directory"):
        Weights(path)


def test_mapped_weights_cost_only_what_is_used(tmp_path: Path) -> None:
    # a sparse file of 2 GiB: reading it would take that much memory
    ir = constant_ir(bytes(12), "f32", (3,), {"offset": str(2**31)})
    path = ir.save(tmp_path)
    with (tmp_path / "model.bin").open("r+b") as stream:
        stream.seek(2**31)
        stream.write(np.array([1, 2, 3], "<f4").tobytes())
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (found,) = deconv_ir.load(path).run([]).values()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert found.tolist() == [1, 2, 3]
    assert after - before < 256 * 1024  # KiB
