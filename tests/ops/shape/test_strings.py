"""Arrays of strings and of u1 in the operations that move elements; the strings' own operations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from operation_forms import make
from support import IR, traced_peak

import deconv_ir
from deconv_ir.arrays.fitting import to_storable
from deconv_ir.compare.tensors import compare_tensors
from deconv_ir.errors import DeconvError
from deconv_ir.ir.dtypes import from_numpy
from deconv_ir.ir.operation import Context, TensorInfo

WORDS = np.array([["Intel", "OpenVINO", ""], ["OMZ", "GenAI", "ü €"]], object)


def packed(words: np.ndarray) -> bytes:
    """Return strings as OpenVINO writes them: their number, offsets from 0, and the bytes."""
    parts = [word.encode() for word in words.ravel()]
    ends = np.cumsum([0, *map(len, parts)])
    return np.array([len(parts), *ends], np.uint32).tobytes() + b"".join(parts)


MOVES = [
    ("Reshape", [[3, 2], ], {"special_zero": "false"}, lambda x: x.reshape(3, 2)),
    ("Transpose", [[1, 0]], {}, lambda x: x.T),
    ("Unsqueeze", [[0]], {}, lambda x: x[None]),
    ("Gather-8", [[1, 0], 0], {}, lambda x: x[[1, 0]]),
    ("Gather-8", [[[-1]], 1], {}, lambda x: x[:, [[-1]]]),
    ("Slice-8", [[1], [9], [1], [1]], {}, lambda x: x[:, 1:]),
    ("StridedSlice", [[0, 2], [2, 0], [1, -1]], {"begin_mask": "", "end_mask": ""},
     lambda x: x[:, 2:0:-1]),
    ("Tile", [[2, 1]], {}, lambda x: np.tile(x, (2, 1))),
    ("Broadcast-3", [[2, 2, 3]], {"mode": "numpy"}, lambda x: np.broadcast_to(x, (2, 2, 3))),
    ("Split", [1], {"num_splits": "3"}, lambda x: x[:, :1]),
    ("GatherElements-6", [[[0, 1, 0]]], {"axis": "0"},
     lambda x: np.take_along_axis(x, np.array([[0, 1, 0]]), 0)),
]  # fmt: skip


@pytest.mark.parametrize("element_type", ["string", "u1"])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("kind", "lists", "attributes", "expected"), MOVES)
def test_operations_that_move_elements_move_strings(
    kind: str, lists, attributes, expected, constant: bool, element_type: str, tmp_path: Path
) -> None:
    """Every move gives what NumPy gives, of a constant (folded) and of an input."""
    data = WORDS if element_type == "string" else np.array([[1, 0, 1], [1, 1, 0]], np.uint8)
    ir = IR()
    if constant:
        raw = packed(data) if element_type == "string" else np.packbits(data).tobytes()
        source = ir.raw_const(raw, element_type, data.shape, "data")
    else:
        source = ir.parameter("data", "2,3", element_type)
    name, _, opset = kind.partition("-")
    inputs = [source, *(ir.const(np.array(values), f"list{i}") for i, values in enumerate(lists))]
    outputs = ("?,?",) * int(attributes.get("num_splits", 1))
    moved = ir.layer(
        name, inputs, attributes, version=f"opset{opset or 1}", outputs=outputs, name="moved"
    )
    ir.result(moved, "out")
    ir.result(ir.layer("Concat", [moved, moved], {"axis": "0"}, outputs=("?,?",)), "twice")
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    found = model.run({} if constant else {"data": data})
    wanted = expected(data)
    once, twice = found.values()
    np.testing.assert_array_equal(once, wanted)
    np.testing.assert_array_equal(twice, np.concatenate([wanted, wanted]))
    assert once.dtype == data.dtype


def test_slices_of_strings_that_do_not_exist(run) -> None:
    """Gather-8 gives zeros for them: empty strings."""
    assert run("Gather-8", WORDS, [5], 0).tolist() == [["", "", ""]]


@pytest.mark.parametrize(
    ("words", "begins", "ends", "symbols"),
    [
        # The examples of StringTensorUnpack-15, and of StringTensorPack-15.
        (["Intel", "OpenVINO"], [0, 5], [5, 13], "IntelOpenVINO"),
        (["OMZ", "", "GenAI", " ", "2024"], [0, 3, 3, 8, 9], [3, 3, 8, 9, 13], "OMZGenAI 2024"),
        (
            [["Intel", "OpenVINO"], ["OMZ", "GenAI"]], [[0, 5], [13, 16]], [[5, 13], [16, 21]],
            "IntelOpenVINOOMZGenAI",
        ),
    ],
)  # fmt: skip
def test_examples_of_the_documents(run, words, begins, ends, symbols: str) -> None:
    text = np.frombuffer(symbols.encode(), np.uint8)
    found = run("StringTensorUnpack-15", np.array(words, object))
    assert [a.tolist() for a in found] == [begins, ends, text.tolist()]
    assert [a.dtype.name for a in found] == ["int32", "int32", "uint8"]
    assert run("StringTensorPack-15", begins, ends, text).tolist() == words


def test_bytes_that_are_skipped_or_no_text(run) -> None:
    """StringTensorPack-15, example 3; bytes that are not UTF-8 come back as they were."""
    text = np.frombuffer(b"123456789", np.uint8)
    assert run("StringTensorPack-15", [0, 8], [1, 9], text).tolist() == ["1", "9"]
    odd = np.array([0xFF, 0, 0xC3], np.uint8)
    words = run("StringTensorPack-15", [0, 2], [2, 3], odd)
    assert run("StringTensorUnpack-15", words)[2].tolist() == odd.tolist()
    with pytest.raises(DeconvError, match="must be ranges within 0 to 3"):
        run("StringTensorPack-15", [0, 2], [2, 4], odd)


def test_shapes(infer) -> None:
    assert infer("StringTensorPack-15", "i64[2..4,?]", "i64[3,5]", "u8[?]") == "[3,5]"
    assert infer("StringTensorUnpack-15", "string[?,3]") == "[?,3] [?,3] [?]"
    with pytest.raises(DeconvError, match="symbols must be u8"):
        infer("StringTensorPack-15", "i64[1]", "i64[1]", "i8[?]")
    with pytest.raises(DeconvError, match="data must be string"):
        infer("StringTensorUnpack-15", "f32[2]")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"\2\0\0\0", "2 strings take at least 16"),
        (np.array([3, 0, 1, 2], np.uint32).tobytes() + b"ab", "not those of 2 strings"),
        (np.array([2, 0, 2, 1], np.uint32).tobytes() + b"ab", "not those of 2 strings"),
        (np.array([2, 0, 1, 9], np.uint32).tobytes() + b"ab", "not those of 2 strings"),
    ],
)
def test_constants_that_are_damaged(raw: bytes, message: str, tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.raw_const(raw, "string", (2,), "words"), "out")
    with pytest.raises(DeconvError, match=message):
        deconv_ir.load(ir.save(tmp_path), warn=False).run({})


def test_networks_of_strings_compare(tmp_path: Path) -> None:
    """deconv-diff compares them for equality; what .npy files cannot hold is refused."""
    ir = IR()
    shape = ir.const(np.array([1, 2]), "shape")
    words = ir.parameter("words", "2", "string")
    ir.result(
        ir.layer(
            "Reshape", [words, shape], {"special_zero": "false"}, name="again", precision="STRING"
        )
    )
    path = ir.save(tmp_path)
    given = {"words": np.array(["x", "y\0"], object)}
    found = deconv_ir.diff(path, path, given)
    assert found.equal
    assert [t.within for t in found.tensors]
    (result,) = deconv_ir.load(path).run(given).values()
    assert result.tolist() == [["x", "y\0"]]
    with pytest.raises(DeconvError, match="ends in a null character"):
        to_storable(result)
    other = compare_tensors("t", "l", None, result, np.array([["x", "z"]], object), 0, 0)
    assert (other.within, other.outside, other.first) == (False, 1, (0, 1))


def test_strings_take_the_memory_that_is_declared() -> None:
    """Those with a character beyond U+FFFF have four bytes for each; offsets are not lists."""
    count, text = 20_000, "abcd😀"
    symbols = np.frombuffer((text * count).encode(), np.uint8)
    begins = np.arange(count, dtype=np.int64) * len(text.encode())
    arrays = [begins, begins + len(text.encode()), symbols]
    pack, unpack = make("StringTensorPack-15"), make("StringTensorUnpack-15")
    infos = [TensorInfo(a.shape, from_numpy(a.dtype)) for a in arrays]
    told = pack.scratch(infos, pack.infer(infos, Context()), Context())
    few = 16 << 10
    assert traced_peak(lambda: pack.execute(arrays, Context())) <= told + begins.nbytes + few
    (words,) = pack.execute(arrays, Context())
    # The bytes may grow to another block, which has an eighth more.
    assert traced_peak(lambda: unpack.execute([words], Context())) <= (
        begins.nbytes + 2.25 * symbols.nbytes + few
    )
