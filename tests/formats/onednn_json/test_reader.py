"""oneDNN Graph files: structure, errors by position, limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onednn_forms import as_bytes, attention, deconvolution, graph, op, tensor, windows

import deconv_ir
from deconv_ir.errors import DeconvError, IRError
from deconv_ir.formats.onednn_json.reader import parse_bytes
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose


def error_of(data: bytes, **options: Any) -> DeconvError:
    """Return the error raised for a file that is refused."""
    with pytest.raises(DeconvError) as caught:
        deconv_ir.load(data, **options)
    return caught.value


def simple(**changes: Any) -> dict[str, Any]:
    """Return a ConvTranspose, with other members."""
    return deconvolution([1, 2, 3, 3], [2, 2, 2, 2], [1, 2, 4, 4]) | changes


def test_tensors_are_named_by_their_ids() -> None:
    """Inputs are tensors that no operation produces, outputs those that none consumes."""
    relu = op(1, "ReLU", [tensor(2, [1, 2, 4, 4])], [tensor(7, [1, 2, 4, 4])])
    model = deconv_ir.load(as_bytes(relu, simple()))  # in any order
    assert list(model.inputs) == ["0", "1"]
    assert list(model.outputs) == ["7"]
    assert model.infer_shapes() == {"7": (1, 2, 4, 4)}


def test_ports_decide_what_is_returned_and_in_which_order() -> None:
    """input_ports order the inputs; output_ports may name inner tensors."""
    relu = op(1, "ReLU", [tensor(2, [1, 2, 4, 4])], [tensor(7, [1, 2, 4, 4])])
    model = deconv_ir.load(as_bytes(simple(), relu, input_ports=[1, 0], output_ports=[7, 2]))
    assert list(model.inputs) == ["1", "0"]
    assert list(model.outputs) == ["7", "2"]


def test_an_operation_may_lack_attributes_and_ports() -> None:
    """`attrs` is optional."""
    one = op(0, "ReLU", [tensor(0, [2])], [tensor(1, [2])])
    del one["attrs"]
    found = deconv_ir.load(as_bytes(one)).run(np.array([-1, 2], np.float32))
    assert found["1"].tolist() == [0, 2]


def test_unknown_dims_and_scalars() -> None:
    """-1 and the least integer are unknown; no dims: a scalar."""
    one = op(0, "Add", [tensor(0, [-1, -(2**63)]), tensor(1, [])], [tensor(2, [-1, 3])])
    model = deconv_ir.load(as_bytes(one))
    found = model.run([np.ones((2, 3), np.float32), np.float32(2)])
    assert found["2"].tolist() == [[3.0] * 3] * 2


def test_a_rank_that_the_file_does_not_know_is_inferred() -> None:
    """The library then writes one least integer as the only dim, and so do public graphs."""
    known, unknown = (as_bytes(*attention(n)) for n in (None, -(2**63)))
    models = [deconv_ir.load(data, strict=True) for data in (known, unknown)]
    assert models[1].outputs["16"].shape == (1, 2, 3, 4)
    given = {
        name: np.ones(
            [d for d in port.shape or () if isinstance(d, int)], port.element_type.numpy()
        )
        for name, port in models[0].inputs.items()
        if port.element_type is not None
    }
    first, second = (model.run(given)["16"] for model in models)
    np.testing.assert_array_equal(first, second)
    assert not check_bytes(unknown, "g.json", choose(severity="info")).findings


def test_every_dtype_is_read() -> None:
    """All spellings are read; undef gives an unknown type."""
    names = ("f32", "f16", "bf16", "s32", "s8", "u8", "boolean", "f8_e5m2", "f8_e4m3")
    for dtype in (*names, "s4", "u4", "s64", "undef"):
        one = op(0, "Wildcard", [tensor(0, [2], dtype)], [tensor(1, [2], dtype)])
        found = deconv_ir.load(as_bytes(one)).inputs["0"].element_type
        assert (found is None) == (dtype == "undef")


@pytest.mark.parametrize("kind", ["Wildcard", "GatedMLP", "Imaginary"])
def test_kinds_that_cannot_run_are_refused_by_name(kind: str) -> None:
    """A graph with such kinds loads, and a run names them."""
    model = deconv_ir.load(as_bytes(op(0, kind, [tensor(0, [2])], [tensor(1, [2])])))
    with pytest.raises(deconv_ir.UnsupportedError, match=kind):
        model.run(np.zeros(2, np.float32))


@pytest.mark.parametrize("ports", [{}, {"input_ports": [0], "output_ports": [2]}])
def test_an_end_makes_an_output(ports: Any) -> None:
    """An End makes its input an output, even if another operation consumes it."""
    data = as_bytes(
        op(0, "ReLU", [tensor(0, [2])], [tensor(1, [2])]),
        op(1, "End", [tensor(1, [2])], []),
        op(2, "Abs", [tensor(1, [2])], [tensor(2, [2])]),
        **ports,
    )
    model = deconv_ir.load(data)
    assert set(model.outputs) == {"1", "2"}
    assert model.run(np.array([-1, 3], np.float32))["1"].tolist() == [0, 3]


BROKEN: list[tuple[str, bytes, str, int]] = [
    ("empty object", b"{}", "no list 'graph'", 1),
    ("not an object", b"[1, 2]", "no list 'graph'", 1),
    ("cut short", b'{"graph": [\n', "expected a value, found the end of the file", 2),
    ("NaN", b'{"graph": [],\n "x": NaN}', "found 'NaN'", 2),
    ("Infinity", b'{"graph": [], "x": -Infinity}', "expected a value", 1),
    ("a large float", b'{"graph": [], "x": 1e999}', "too large", 1),
    ("a huge integer", b'{"x": ' + b"9" * 5000 + b"}", "64 bits", 1),
    ("equal keys", b'{"a": 1,\n"a": 2}', "duplicate key 'a'", 2),
    ("trailing text", b'{"graph": []} x', "goes on after the end", 1),
    ("a control character", b'{"a\n": 1}', "invalid string", 1),
    ("a comment", b'{"graph": [] // no\n}', "expected ',' or '}'", 1),
    ("single quotes", b"{'graph': []}", "double quotes", 1),
    ("a leading zero", b'{"graph": [], "x": 012}', "invalid number", 1),
    ("not UTF-8", b'{"graph":\n "\xff"}', "not UTF-8: byte 0xff", 2),
    ("an operation that is a number", b'{"graph": [3]}', "an operation must be an object", 1),
    ("an operation without kind", b'{"graph": [{"id": 1}]}', "'kind' is missing", 1),
    ("no id", b'{"graph": [{"kind": "ReLU"}]}', "'id' is missing", 1),
    ("an id that is text", b'{"graph": [{"kind": "ReLU", "id": "1"}]}', "a whole number", 1),
]


@pytest.mark.parametrize(("name", "data", "message", "line"), BROKEN, ids=[b[0] for b in BROKEN])
def test_what_is_not_a_graph_is_refused_with_its_line(
    name: str, data: bytes, message: str, line: int
) -> None:
    """One error with a position."""
    error = error_of(data)
    assert isinstance(error, IRError)
    assert message in str(error)
    assert error.line == line


def test_deep_nesting_is_refused() -> None:
    """Deep nesting exhausts neither the stack nor memory."""
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        data = b'{"graph": ' + opening * 100_000 + b"1" + closing * 100_000 + b"}"
        assert error_of(data).rule == "oversize"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (deconv_ir.Limits(tags=20), "more values than the limit of 20"),
        (deconv_ir.Limits(layers=1), "2 operations, more than the limit of 1"),
        (deconv_ir.Limits(rank=3), "4 dims, more than the limit of 3"),
        (deconv_ir.Limits(xml_bytes=100), "more than the limit of 100"),
    ],
)
def test_limits_are_those_of_irs(limits: deconv_ir.Limits, message: str) -> None:
    """The limits on bytes, values, operations and ranks are those of IRs."""
    relu = op(1, "ReLU", [tensor(2, [1, 2, 4, 4])], [tensor(7, [1, 2, 4, 4])])
    error = error_of(as_bytes(simple(), relu), limits=limits)
    assert error.rule == "oversize"
    assert message in str(error)


def test_the_number_of_problems_is_limited() -> None:
    """After the limit, the rest of the file is not read."""
    bad = [op(i, "ReLU", [tensor(i, [1], "f33")], []) for i in range(50)]
    parsed = parse_bytes(as_bytes(*bad), None, deconv_ir.Limits(problems=10))
    assert len(parsed.errors) == 11
    assert "more than 10 problems" in str(parsed.errors[-1])


def changed(member: str, value: Any, where: str = "inputs") -> bytes:
    """Change a member of the first tensor."""
    one = simple()
    one[where][0][member] = value
    return as_bytes(one)


@pytest.mark.parametrize(
    ("data", "rule", "message"),
    [
        (changed("dtype", "f33"), "precision", "known are f32, f16, bf16"),
        (changed("dtype", 3), "json", "'dtype' must be text"),
        (changed("shape", [1, -2, 3, 3]), "dim-value", "must not be negative, found -2"),
        (changed("shape", "1x2"), "number", "list of whole numbers"),
        (changed("shape", [1.5]), "number", "list of whole numbers"),
        (changed("id", None), "number", "a whole number"),
        (changed("id", True), "number", "a whole number"),
        (as_bytes(simple(inputs={})), "json", "must be a list of tensors"),
        (as_bytes(simple(attrs=[1])), "json", "'attrs' must be an object"),
        (as_bytes(simple(), input_ports=["a"]), "number", "list of tensor ids"),
    ],
)
def test_members_of_the_wrong_form_are_named(data: bytes, rule: str, message: str) -> None:
    """The error has the line of the member and the operation."""
    error = error_of(data)
    assert error.rule == rule
    assert message in str(error)
    assert error.line is not None
    assert data.splitlines()[error.line - 1].strip() != b"{"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("strides", {"type": "s64[]", "value": [0, 1]}, "'strides' must be positive"),
        ("strides", {"type": "s64[]", "value": [1.5, 1]}, "of type s64[]"),
        ("groups", {"type": "s64", "value": [1]}, "of type s64"),
        ("auto_pad", {"type": "string", "value": "SAME"}, "found 'SAME'"),
        ("data_format", {"type": "string", "value": "NHWC"}, "found 'NHWC'"),
        ("strides", {"type": "int[]", "value": [1, 1]}, "must be one of bool"),
        ("strides", {"value": [1, 1]}, "must have 'type' and 'value'"),
    ],
)
def test_attributes_of_the_wrong_form_are_named(name: str, value: Any, message: str) -> None:
    """The error has the operation's name, and the line of the attribute."""
    one = simple()
    one["attrs"][name] = value
    data = as_bytes(one)
    error = error_of(data)
    assert message in str(error)
    assert "CONVTRANSPOSE_0" in str(error)
    assert error.line is not None
    start = data.splitlines().index(f'        "{name}": {{'.encode())
    assert start < error.line <= start + 8


def test_a_tensor_that_two_operations_produce_is_refused() -> None:
    """The error names both operations."""
    second = op(1, "ReLU", [tensor(0, [1, 2, 3, 3])], [tensor(2, [1, 2, 3, 3])])
    error = error_of(as_bytes(simple(), second))
    assert error.rule == "tensor-produced-twice"
    assert "CONVTRANSPOSE_0" in str(error)
    assert "RELU_1" in str(error)


def test_cycles_and_equal_operation_ids_are_refused() -> None:
    """Both are refused as in IRs."""
    first = op(0, "ReLU", [tensor(1, [2])], [tensor(0, [2])])
    second = op(1, "ReLU", [tensor(0, [2])], [tensor(1, [2])])
    assert error_of(as_bytes(first, second)).rule == "cycle"
    again = op(0, "ReLU", [tensor(0, [2])], [tensor(2, [2])])
    again_first = op(0, "ReLU", [tensor(5, [2])], [tensor(0, [2])])
    assert error_of(as_bytes(again_first, again)).rule == "duplicate-layer-id"


def test_shapes_that_do_not_fit_name_operation_and_line() -> None:
    """Channels of data and weights differ."""
    one = deconvolution([1, 3, 3, 3], [2, 2, 2, 2], [1, 2, 4, 4])
    error = error_of(as_bytes(one))
    assert error.rule == "channels"
    assert error.layer == "'CONVTRANSPOSE_0' (ConvTranspose, id 0)"
    assert error.line is not None


def test_scales_must_match_the_axis() -> None:
    """There must be one scale for each channel."""
    one = op(
        0,
        "Dequantize",
        [tensor(0, [2, 3], "u8")],
        [tensor(1, [2, 3])],
        qtype="per_channel",
        axis=1,
        scales=[1.0, 2.0],
        zps=[0, 0, 0],
    )
    error = error_of(as_bytes(one))
    assert error.rule == "quantization"
    assert "scales must have 3 elements (per_channel on axis 1 of [2,3]), found 2" in str(error)


@pytest.mark.parametrize("name", ["weights_format", "filter_format"])
@pytest.mark.parametrize(
    ("kind", "written", "inputs", "wanted"),
    [
        ("ConvTranspose", "XOI", [[1, 2, 5], [3, 4, 2]], (1, 4, 7)),
        ("ConvTransposeBackwardData", "XOI", [[1, 4, 7], [3, 4, 2]], (1, 2, 5)),
        ("Convolution", "OIX", [[1, 4, 7], [2, 4, 3]], (1, 2, 5)),
        ("ConvolutionBackwardData", "OIX", [[1, 2, 5], [2, 4, 3]], (1, 4, 7)),
        ("ConvolutionBackwardWeights", "OIX", [[1, 4, 7], [1, 2, 5]], (2, 4, 3)),
    ],
)
def test_both_names_of_the_layout_of_weights_are_read(
    kind: str, written: str, inputs: Any, wanted: Any, name: str
) -> None:
    """Files say weights_format; early files, and the document of ConvTranspose, filter_format."""
    tensors = [tensor(i, shape) for i, shape in enumerate(inputs)]
    one = op(0, kind, tensors, [tensor(2, wanted)], **windows([1], [0], [0], **{name: written}))
    data = as_bytes(one)
    assert deconv_ir.load(data).infer_shapes() == {"2": wanted}
    assert not check_bytes(data, "g.json", choose()).findings
    one["attrs"][name]["value"] = "IXO"
    (finding,) = check_bytes(as_bytes(one), "g.json", choose()).findings
    assert "IXO" in as_bytes(one).decode().splitlines()[(finding.line or 0) - 1]


def test_two_names_of_one_attribute_must_agree() -> None:
    """A reader that takes the last name would use a layout that half of the file contradicts."""
    tensors = [tensor(0, [1, 2, 5]), tensor(1, [2, 2, 2])], [tensor(2, [1, 2, 4])]
    names = {"weights_format": "OIX", "filter_format": "OIX"}
    one = op(0, "Convolution", *tensors, **windows([1], [0], [0], **names))
    assert deconv_ir.load(as_bytes(one)).infer_shapes() == {"2": (1, 2, 4)}
    one["attrs"]["filter_format"]["value"] = "XIO"
    error = error_of(as_bytes(one))
    assert (error.rule, error.attribute) == ("attribute-value", "filter_format")
    assert "must be equal: found 'OIX' and 'XIO'" in str(error)
    (finding,) = check_bytes(as_bytes(one), "g.json", choose()).findings
    assert finding.code == "IR306"
    assert "XIO" in as_bytes(one).decode().splitlines()[(finding.line or 0) - 1]


@pytest.mark.parametrize("name", ["weights_format", "filter_format"])
def test_an_override_replaces_both_names(name: str) -> None:
    """The override sets the layout of weights."""
    tensors = [tensor(0, [1, 4, 7]), tensor(1, [3, 4, 2])], [tensor(2, [1, 2, 5])]
    one = op(0, "Convolution", *tensors, **windows([1], [0], [0], weights_format="OIX"))
    changes = deconv_ir.Overrides(op_attrs=f"0:{name}:XIO")
    assert deconv_ir.load(as_bytes(one), overrides=changes).infer_shapes() == {"2": (1, 2, 5)}


def test_a_byte_order_mark_and_escapes_are_read() -> None:
    """Both are read as by other JSON readers."""
    one = simple(name="caf\u00e9 \U0001f600")
    data = b"\xef\xbb\xbf" + json.dumps(graph(one)).encode()
    assert deconv_ir.load(data).graph.find("caf\u00e9 \U0001f600") is not None


def test_the_graph_of_a_model_is_that_of_the_file(tmp_path: Path) -> None:
    """Only runs use integer sums: the loaded graph keeps Dequantize and ConvTranspose."""
    path = Path(__file__).parents[3] / "samples" / "onednn" / "int8.json"
    model = deconv_ir.load(path)
    graph = model.graph
    up = graph.find("up")
    assert up is not None
    (index,) = [i for i, layer in enumerate(graph.layers) if layer is up]
    sources = [graph.layers[s[0]].name for s in graph.topology.sources[index] if s is not None]
    assert sources == ["dequantize_x", "dequantize_w"]
    assert (up.type, up.outputs[0].shape, up.line) == ("ConvTranspose", (1, 2, 8, 8), 142)
    deconv_ir.save(model, tmp_path / "copy.xml")
    arrays = dict(np.load(path.with_suffix(".npz")))
    again = deconv_ir.load(tmp_path / "copy.xml").run(arrays)
    assert np.array_equal(again["6"], model.run(arrays)["6"])
    assert deconv_ir.diff(path, path, arrays).equal
