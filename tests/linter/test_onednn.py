"""Rules on oneDNN Graph files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from onednn_forms import ZEROS, as_bytes, deconvolution, graph, op, tensor, windows

from deconv_ir.linter.engine import FileResult, check_bytes

from .conftest import EVERYTHING

ROOT = Path(__file__).parents[2]


def check(data: bytes) -> FileResult:
    """Run all rules."""
    return check_bytes(data, "g.json", EVERYTHING)


def found(data: bytes) -> set[tuple[str, str]]:
    """Return the codes of findings, and the text of their lines."""
    result = check(data)
    lines = data.decode().splitlines()
    return {(f.code, lines[f.line - 1].strip()) for f in result.findings if f.line}


def relu(dtype: str = "f32", **facts: Any) -> dict[str, Any]:
    return op(0, "ReLU", [tensor(0, [2, 3], dtype)], [tensor(1, [2, 3], dtype, **facts)])


def clean() -> list[dict[str, Any]]:
    """Return graphs without findings: an int8 pattern, layouts, ports."""
    x, w, y = [2, 4, 5, 5], [4, 3, 3, 3], [2, 3, 5, 5]
    one = {"qtype": "per_tensor", "axis": 1}
    return [
        op(7, "Dequantize", [tensor(0, x, "u8")], [tensor(1, x)], scales=[0.5], zps=[3], **one),
        op(
            8,
            "Dequantize",
            [tensor(2, w, "s8")],
            [tensor(3, w)],
            scales=[1.0, 0.5, 2.0],
            zps=[0, 0, 0],
            qtype="per_channel",
            axis=1,
        ),
        op(
            9,
            "ConvTranspose",
            [tensor(1, x), tensor(3, w)],
            [tensor(4, y, tag="acdb")],
            **windows([1, 1], [1, 1], [1, 1], weights_format="IOX", output_padding=ZEROS),
        ),
        op(
            10,
            "Quantize",
            [tensor(4, y, tag="acdb")],
            [tensor(5, y, "s8")],
            scales=[1.0],
            zps=[0],
            **one,
        ),
    ]


@pytest.mark.parametrize(
    "members", [{}, {"input_ports": [2, 0], "output_ports": [5]}, {"input_ports": []}]
)
def test_a_clean_graph_has_no_findings(members: Any) -> None:
    assert check(as_bytes(*clean(), **members)).findings == []


@pytest.mark.parametrize(("name", "notes"), [("upsample", ["IR801"]), ("int8", [])])
def test_samples_have_no_findings(name: str, notes: list[str]) -> None:
    findings = check((ROOT / f"samples/onednn/{name}.json").read_bytes()).findings
    assert [f.code for f in findings] == notes


def broken(position: int, *path: str | int, value: Any) -> bytes:
    """Change one value of the clean graph."""
    operations = clean()
    at: Any = operations[position]
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return as_bytes(*operations)


CASES: list[tuple[str, bytes, str, str]] = [
    ("text in place of a number", broken(0, "id", value="x"), "IR109", '"id": "x",'),
    (
        "a dtype that is not one",
        broken(0, "inputs", 0, "dtype", value="q8"),
        "IR110",
        '"dtype": "q8",',
    ),
    ("no kind", as_bytes({"id": 1}), "IR108", "{"),
    (
        "a wrong stride",
        broken(2, "outputs", 0, "stride", value=[75, 1, 15, 2]),
        "IR703",
        '"stride": [',
    ),
    (
        "strides of another rank",
        broken(2, "outputs", 0, "stride", value=[1]),
        "IR703",
        '"stride": [',
    ),
    (
        "strides that overlap",
        broken(0, "inputs", 0, "stride", value=[0, 25, 5, 1]),
        "IR703",
        '"stride": [',
    ),
    ("a dtype outside the list", as_bytes(relu("s32")), "IR704", '"dtype": "s32",'),
    (
        "too few scales",
        broken(1, "attrs", "scales", "value", value=[1.0, 0.5]),
        "IR705",
        '"value": [',
    ),
    ("a port that is no tensor", as_bytes(*clean(), input_ports=[0, 9]), "IR706", "9"),
    ("an output that is an input", as_bytes(*clean(), output_ports=[5, 0]), "IR706", "0"),
    ("an input that is produced", as_bytes(*clean(), input_ports=[0, 2, 4]), "IR706", "4"),
    ("an unknown kind", broken(3, "kind", value="Quantise"), "IR707", '"kind": "Quantise",'),
    ("a produced tensor once more", broken(3, "outputs", 0, "id", value=4), "IR702", "{"),
    (
        "an extent that contradicts its layer",
        broken(3, "outputs", 0, "shape", value=[2, 3, 5, 6]),
        "IR416",
        "",
    ),
    ("a wrong extent", broken(2, "outputs", 0, "shape", value=[2, 3, 5, 6]), "IR401", "6"),
    ("an id with two shapes", broken(3, "inputs", 0, "shape", value=[2, 3, 5, 6]), "IR209", "6"),
    (
        "an id with two dtypes",
        broken(2, "inputs", 0, "dtype", value="f16"),
        "IR210",
        '"dtype": "f16",',
    ),
    (
        "an attribute out of range",
        broken(2, "attrs", "strides", "value", value=[0, 1]),
        "IR303",
        '"value": [',
    ),
    (
        "an auto_pad that is not one",
        broken(2, "attrs", "auto_pad", "value", value="SAME"),
        "IR305",
        '"value": "SAME"',
    ),
    (
        "a list of another length",
        broken(2, "attrs", "strides", "value", value=[1]),
        "IR307",
        '"value": [',
    ),
    ("channels that differ", broken(2, "inputs", 1, "id", value=1), "IR405", ""),
    ("the same id", broken(3, "id", value=7), "IR201", '"id": 7,'),
]


@pytest.mark.parametrize(("name", "data", "code", "line"), CASES, ids=[case[0] for case in CASES])
def test_a_mistake_is_found_in_its_line(name: str, data: bytes, code: str, line: str) -> None:
    at = found(data)
    assert code in {c for c, _ in at}
    assert not line or (code, line) in at


def test_a_cycle_is_found() -> None:
    first = op(0, "ReLU", [tensor(1, [2])], [tensor(0, [2])])
    second = op(1, "ReLU", [tensor(0, [2])], [tensor(1, [2])])
    assert "IR207" in {code for code, _ in found(as_bytes(first, second))}


@pytest.mark.parametrize(
    "data", [b'{"graph": [', b'{"graph": [], "x": NaN}', b'{"graph": [], "graph": []}', b"[]"]
)
def test_text_that_is_no_graph_is_one_finding(data: bytes) -> None:
    (finding,) = check(data).findings
    assert finding.code in ("IR701", "IR103")
    assert finding.line == 1


def test_kinds_without_a_rule_are_counted() -> None:
    """These kinds are oneDNN's own, so there is no finding."""
    data = as_bytes(op(0, "Wildcard", [tensor(0, [2]), tensor(1, [2])], [tensor(2, [2])]))
    result = check(data)
    assert result.findings == []
    assert result.passed_over == (("Wildcard", 1),)


def test_kinds_with_wrong_attributes_have_a_rule() -> None:
    data = as_bytes(op(0, "SoftMax", [tensor(0, [2])], [tensor(1, [2])], axis="first"))
    result = check(data)
    assert [finding.code for finding in result.findings] == ["IR306"]
    assert result.passed_over == ()


def test_rules_about_transposed_convolutions_hold_here_too() -> None:
    """The rule reports pads that auto_pad ignores."""
    one = deconvolution(
        [1, 2, 4], [2, 3, 3], [1, 3, 8], strides=[2], auto_pad="SAME_UPPER", pads_begin=[1]
    )
    assert "IR309" in {code for code, _ in found(as_bytes(one))}


def test_attributes_are_those_of_the_kind() -> None:
    """AvgPool, Interpolate and others have other attributes than the operations of opsets."""
    pool = {"strides": [1], "kernel": [2], "pads_begin": [0], "pads_end": [0], "data_format": "NCX"}
    x, y = tensor(0, [1, 2, 3]), tensor(1, [1, 2, 2])
    one = op(0, "AvgPool", [x], [y], exclude_pad=False, rounding_type="floor", **pool)
    assert found(as_bytes(one)) == set()
    one["attrs"]["rounding_typ"] = one["attrs"].pop("rounding_type")
    one["attrs"].pop("strides")
    assert {code for code, _ in found(as_bytes(one))} == {"IR107", "IR302"}


def test_the_same_findings_in_one_line() -> None:
    """Positions are columns where the file has no line ends."""
    operations = clean()
    operations[2]["outputs"][0]["stride"] = [75, 1, 15, 2]
    data = json.dumps(graph(*operations)).encode()
    finding = next(f for f in check(data).findings if f.code == "IR703")
    assert finding.line == 1
    assert finding.column is not None
    assert data.decode()[finding.column - 1 :].startswith("[75, 1, 15, 2]")


def test_a_bin_beside_a_graph_is_not_its_weights(tmp_path: Path) -> None:
    """Graphs do not have constants, so none of the bytes is unused."""
    (tmp_path / "g.bin").write_bytes(bytes(8))
    result = check_bytes(as_bytes(relu()), "g.json", EVERYTHING, tmp_path / "g.bin")
    assert result.findings == []


RELU = op(0, "ReLU", [tensor(0, [2, 3])], [tensor(1, [2, 3])])
TANH = op(1, "Tanh", [tensor(1, [2, 3])], [tensor(2, [2, 3])])
NAMED = "'RELU_0' (ReLU, id 0)"
MESSAGES: list[tuple[bytes, str, str | None]] = [
    (b"", "not JSON: expected a value, found the end of the file", None),
    (b'{"graph": [{"id": 0,}]}', "not JSON: expected a key in double quotes, found '}'", None),
    (b'{"graph": [5]}', "an operation must be an object, found 5", "graph[0]"),
    (
        as_bytes(RELU | {"attrs": {"beta": {"type": "f32", "value": "x"}}}),
        "attribute 'beta' must be a value of type f32, found \"x\"",
        NAMED,
    ),
    (
        as_bytes(RELU | {"attrs": {"beta": {"type": "f64", "value": 1}}}),
        "the type of attribute 'beta' must be one of bool, s64, s64[], f32, f32[], string, "
        'found "f64"',
        NAMED,
    ),
    (
        as_bytes(RELU | {"inputs": [tensor(0, [2, 3]) | {"id": "x" * 90}]}),
        f"'id' must be a whole number, found \"{'x' * 36}...",
        NAMED,
    ),
    (
        as_bytes(RELU, TANH | {"outputs": [tensor(1, [2, 3])]}),
        f"tensor 1 is already produced by {NAMED} in line 6",
        "'TANH_1' (Tanh, id 1)",
    ),
    (
        as_bytes(RELU, TANH | {"id": 0, "name": "RELU_0"}),
        "id 0 is already taken by layer 'RELU_0' in line 6",
        "'RELU_0' (Tanh, id 0)",
    ),
    (
        as_bytes(RELU | {"inputs": [tensor(0, [2, 3], "f23")]}),
        "dtype must be an element type, found 'f23'",
        NAMED,
    ),
    (
        as_bytes(RELU | {"inputs": [tensor(0, [2, 3]), tensor(5, [2, 3])]}),
        "ReLU takes 1 input (data), found 2",
        NAMED,
    ),
]


@pytest.mark.parametrize(("data", "message", "layer"), MESSAGES)
def test_one_mistake_is_one_finding(data: bytes, message: str, layer: str | None) -> None:
    """The finding names the operation, and the expected and actual values; there are no others."""
    (one,) = check(data).findings
    assert (one.message, one.layer) == (message, layer)
    assert one.line is not None
    assert one.column is not None
