"""Unbroken files that once had findings, as OpenVINO writes them or oneDNN's library takes them."""

from __future__ import annotations

import json

import pytest
from onednn_forms import as_bytes, deconvolution, op, tensor
from support import IR

from deconv_ir.findings import Finding
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

from .network import NETWORK
from .test_bodies import looped

FOUND = choose()


def findings(text: str, kind: str = "") -> list[Finding]:
    """Check a file without its .bin, and return the findings of the layers of a type."""
    found = check_bytes(text.encode(), "m.xml", FOUND).findings
    return [f for f in found if f.code != "IR501" and f"({kind}" in (f.layer or "(")]


def of_axes(declared: str) -> str:
    """Write an Unsqueeze of [2,3] at axes that are an input; it declares these dims."""
    ir = IR()
    x, at = ir.parameter("x", "2,3"), ir.parameter("axes", "1", "i64")
    ir.result(ir.layer("Unsqueeze", [x, at], outputs=(declared,)))
    return ir.xml()


@pytest.mark.parametrize(("declared", "codes"), [("", []), ("2,3", ["IR401"])])
def test_unsqueeze(declared: str, codes: list[str]) -> None:
    """OpenVINO 2026.4 infers a dynamic rank for axes that are not constant, and saves no dims."""
    found = [f.code for f in findings(of_axes(declared), "Unsqueeze")]
    assert [code for code in found if code != "IR210"] == codes


@pytest.mark.parametrize(
    ("equation", "shapes", "declared"),
    [
        ("->", [""], ""),
        (",->", ["", ""], ""),
        (",i->i", ["", "3"], "3"),
        ("i,->i", ["3", ""], "3"),
        ("i,", ["3", ""], "3"),
    ],
)
def test_einsum_of_scalars(equation: str, shapes: list[str], declared: str) -> None:
    """OpenVINO 2026.4 reads and runs each of them."""
    ir = IR()
    inputs = [ir.parameter(f"x{i}", shape) for i, shape in enumerate(shapes)]
    y = ir.layer("Einsum", inputs, {"equation": equation}, outputs=(declared,), version="opset7")
    ir.result(y)
    assert findings(ir.xml(), "Einsum") == []


@pytest.mark.parametrize("equation", ["..i->i", "i.->i", "...i...->i", "i->j->i", "i\u0661->i"])
def test_equations_that_are_none(equation: str) -> None:
    ir = IR()
    y = ir.layer("Einsum", [ir.parameter("x", "3")], {"equation": equation}, version="opset7")
    ir.result(y)
    assert [f.code for f in findings(ir.xml(), "Einsum")] == ["IR415"]


@pytest.mark.parametrize(
    ("said", "brought", "codes"),
    [
        ("1", "?", []),  # the port was widened for the back edge, the attribute kept
        ("1", "2", []),
        ("?", "?", []),
        ("1", "1", ["IR215"]),  # the port is wider for no reason
    ],
)
def test_parameter_that_a_back_edge_widens(said: str, brought: str, codes: list[str]) -> None:
    text = of_state(said, brought)
    assert [f.code for f in findings(text) if f.code == "IR215"] == codes


def of_state(said: str, brought: str) -> str:
    """Write a Loop whose state begins as [1], is declared [?], and becomes another shape."""
    inner = IR()
    inner.parameter("state", "?")
    inner.layers[0] = (
        inner.layers[0]
        .replace('shape="?"', f'shape="{said}"')
        .replace("<dim></dim>", "<dim>-1</dim>")
    )
    inner.layers[0] = inner.layers[0].replace(
        'names="state">\n</port>', 'names="state">\n<dim>-1</dim>\n</port>'
    )
    size = inner.parameter("size", "1", "i64")
    y = inner.layer("Reshape", [(0, 0), size], {"special_zero": "false"}, outputs=("?",))
    if brought != "?":
        y = inner.parameter("other", brought)
        inner.layers[-1] = inner.layers[-1].replace("\n</port>", f"\n<dim>{brought}</dim>\n</port>")
    inner.result(y)
    inner.layer(
        "Const",
        attributes={"element_type": "boolean", "shape": "", "offset": "8", "size": "1"},
        precision="BOOL",
    )
    inner.result((len(inner.layers) - 1, 0))
    last = len(inner.layers) - 1
    more = '<input external_port_id="4" internal_layer_id="3"/>' if brought != "?" else ""
    bodies = (
        f'<port_map><input external_port_id="2" internal_layer_id="0"/>'
        f'<input external_port_id="3" internal_layer_id="1"/>{more}'
        f'<output external_port_id="-1" internal_layer_id="{last}" purpose="execution_condition"/>'
        f'<output external_port_id="{5 if more else 4}" internal_layer_id="{last - 2}"/></port_map>'
        f'<back_edges><edge from-layer="{last - 2}" to-layer="0"/></back_edges>'
        f"<body>{inner.sections()}</body>"
    )
    ir = IR()
    trips = ir.layer(
        "Const",
        attributes={"element_type": "i64", "shape": "", "offset": "0", "size": "8"},
        precision="I64",
    )
    go = ir.layer(
        "Const",
        attributes={"element_type": "boolean", "shape": "", "offset": "8", "size": "1"},
        precision="BOOL",
    )
    inputs = [trips, go, ir.parameter("x", "1"), ir.parameter("s", "1", "i64")]
    if more:
        inputs.append(ir.parameter("o", brought))
    y = ir.layer("Loop", inputs, outputs=("?",), version="opset5", bodies=bodies)
    ir.result(y)
    return ir.xml().replace("<dim>?</dim>", "<dim>-1</dim>")


def quantized(chain: tuple[str, ...]) -> bytes:
    """Return a ConvTranspose of 16 groups behind weights [16,1,3,3] with 16 scales on axis 1."""
    shape, weights = [1, 16, 5, 5], [16, 1, 3, 3]
    scales = {"qtype": "per_channel", "axis": 1, "scales": [0.5] * 16}
    up = deconvolution(shape, weights, [1, 16, 5, 5], groups=16, pads_begin=[1, 1], pads_end=[1, 1])
    up |= {"id": 9, "inputs": [tensor(0, shape), tensor(11 + len(chain), weights)]}
    up["outputs"] = [tensor(99, shape)]
    nodes = []
    for i, kind in enumerate(chain):
        types = ("s8", "f32") if kind == "Dequantize" else ("f32", "s8")
        ends = [tensor(11 + i, weights, types[0])], [tensor(12 + i, weights, types[1])]
        nodes.append(op(i, kind, *ends, **scales))
    return as_bytes(*nodes, up)


@pytest.mark.parametrize("chain", [("Dequantize",), ("Quantize", "Dequantize")], ids=len)
def test_scales_of_all_groups(chain: tuple[str, ...]) -> None:
    assert check_bytes(quantized(chain), "g.json", FOUND).findings == []


@pytest.mark.parametrize(
    ("before", "count"),
    [([16, 1, 9], 0), ([16, 1, 3, 3], 0), ([4, 4, 9], 1)],
    ids=str,
)
def test_scales_behind_a_reshape(before: list[int], count: int) -> None:
    """A StaticReshape of spatial axes keeps those of the channels; [4,4,9] has 4 channels."""
    graph = json.loads(quantized(("Dequantize",)))
    dequantize, up = sorted(graph["graph"], key=lambda node: node["id"])
    weights = up["inputs"][1]
    weights["id"] = 51
    middle = tensor(50, before)
    dequantize |= {"inputs": [tensor(11, before, "s8")], "outputs": [middle]}
    reshape = op(
        5, "StaticReshape", [middle], [dict(weights)], shape=[16, 1, 3, 3], special_zero=False
    )
    found = check_bytes(as_bytes(dequantize, reshape, up), "g.json", FOUND).findings
    assert [f.code for f in found].count("IR705") == count
    assert count or found == []


@pytest.mark.parametrize(
    ("written", "safe", "texts", "read"),
    [
        ("256.0", True, ["256"], False),
        ("+256", True, ["256"], False),  # OpenVINO refuses it: there is one meaning
        ("2e2", False, ["200", "2"], True),
        ("1_000", False, ["1000", "1"], True),
        ("2.9", None, [], False),
    ],
)
def test_numbers_of_which_openvino_reads_the_beginning(
    written: str, safe: bool | None, texts: list[str], read: bool
) -> None:
    """OpenVINO 2026.4 reads levels="2e2" as 2: a person decides which number is meant."""
    strides = f'strides="2,{written}"'
    text = NETWORK.read_text("utf-8").replace('strides="2, 2"', strides)
    assert strides in text
    (found,) = [f for f in findings(text) if f.code == "IR304"]
    assert ("OpenVINO" in found.message) is read
    fix = found.fix
    assert (None if fix is None else fix.safe) is safe
    fixes = [] if fix is None else [fix, *fix.alternatives]
    assert [edit.edits[0][2] for edit in fixes] == [f"2,{text}" for text in texts]


@pytest.mark.parametrize(
    ("brought", "used", "count"),
    [("?", "?", 0), ("?", "3", 1), ("1", "?", 1)],
)
def test_a_state_that_grows(brought: str, used: str, count: int) -> None:
    """Attribute and port have the first shape, its users those of all iterations."""
    text = of_state("1", brought)
    start = text.index("<body>")
    body = text[start:].replace("<dim>-1</dim>", "<dim>1</dim>", 1)  # the port of the state
    at = body.index('<port id="0" precision="FP32"/>')  # of the Reshape, or the Result
    dim = used.replace("?", "-1")
    body = body[:at] + body[at:].replace("/>", f"><dim>{dim}</dim></port>", 1)
    found = [f for f in findings(text[:start] + body) if f.code == "IR209"]
    assert len([f for f in found if "'state', which feeds it" in f.message]) == count


def test_a_loop_that_openvino_saves() -> None:
    assert [f.code for f in findings(looped())] == []
