"""Bodies of If, Loop and TensorIterator are graphs, joined to their layer by a port map.

The layer follows OpenVINO's specification of TensorIterator-1: data [2,7,4] is cut along axis 1,
each slice is added to a state [2,1,4], and the sums are put together again.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import deconv_ir
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose


def port(number: int, dims: str, precision: str = "FP32") -> str:
    inside = "".join(f"<dim>{d}</dim>" for d in dims.split(","))
    return f'<port id="{number}" precision="{precision}">{inside}</port>'


def parameter(number: int, name: str, dims: str) -> str:
    return (
        f'<layer id="{number}" name="{name}" type="Parameter" version="opset1">'
        f'<data shape="{dims}" element_type="f32"/><output>{port(0, dims)}</output></layer>\n'
    )


def result(number: int, dims: str) -> str:
    return (
        f'<layer id="{number}" name="r{number}" type="Result" version="opset1">'
        f"<input>{port(0, dims)}</input></layer>\n"
    )


def add(number: int, a: str, b: str) -> str:
    return (
        f'<layer id="{number}" name="add{number}" type="Add" version="opset1">'
        f'<data auto_broadcast="numpy"/><input>{port(0, a)}{port(1, b)}</input>'
        f"<output>{port(2, a)}</output></layer>\n"
    )


def edge(a: int, b: int, c: int, d: int) -> str:
    return f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>\n'


SLICED = 'axis="1" start="0" end="-1" stride="1" part_size="1"'
MODEL = (
    '<?xml version="1.0"?>\n<net name="n" version="11"><layers>\n'
    + parameter(0, "x", "2,7,4")
    + parameter(1, "h", "2,1,4")
    + '<layer id="2" name="ti" type="TensorIterator" version="opset1">\n<port_map>\n'
    + f'<input external_port_id="0" internal_layer_id="0" {SLICED}/>\n'
    + '<input external_port_id="1" internal_layer_id="1"/>\n'
    + '<output external_port_id="2" internal_layer_id="4"/>\n'
    + f'<output external_port_id="3" internal_layer_id="5" {SLICED}/>\n</port_map>\n'
    + '<back_edges><edge from-layer="4" to-layer="1"/></back_edges>\n'
    + f"<input>{port(0, '2,7,4')}{port(1, '2,1,4')}</input>\n"
    + f"<output>{port(2, '2,1,4')}{port(3, '2,7,4')}</output>\n<body><layers>\n"
    + parameter(0, "slice", "2,1,4")
    + parameter(1, "state", "2,1,4")
    + '<layer id="2" name="bias" type="Const" version="opset1">'
    + '<data element_type="f32" shape="4" offset="0" size="16"/>'
    + f"<output>{port(0, '4')}</output></layer>\n"
    + add(3, "2,1,4", "2,1,4")
    + result(4, "2,1,4")
    + result(5, "2,1,4")
    + add(6, "2,1,4", "4")
    + "</layers><edges>\n"
    + edge(0, 0, 3, 0)
    + edge(1, 0, 3, 1)
    + edge(3, 2, 6, 0)
    + edge(2, 0, 6, 1)
    + edge(6, 2, 4, 0)
    + edge(6, 2, 5, 0)
    + "</edges></body></layer>\n"
    + result(3, "2,1,4")
    + result(4, "2,7,4")
    + "</layers><edges>\n"
    + edge(0, 0, 2, 0)
    + edge(1, 0, 2, 1)
    + edge(2, 2, 3, 0)
    + edge(2, 3, 4, 0)
    + "</edges></net>\n"
)


def lint(text: str, folder: Path) -> list[deconv_ir.Finding]:
    weights = folder / "m.bin"
    weights.write_bytes(struct.pack("<4f", 1, 2, 3, 4))
    return check_bytes(text.encode(), "m.xml", choose(), weights).findings


@pytest.mark.parametrize("axis", ["1", "-2"])
def test_a_model_with_a_body_is_clean(axis: str, tmp_path: Path) -> None:
    """The file has no finding: the body's constant uses all bytes of the .bin."""
    assert lint(MODEL.replace(SLICED, SLICED.replace('axis="1"', f'axis="{axis}"')), tmp_path) == []


def test_an_output_port_that_only_an_input_names(tmp_path: Path) -> None:
    """The ids of a layer's inputs and outputs are told apart by the tag of the port map."""
    entry = f'<output external_port_id="3" internal_layer_id="5" {SLICED}/>'
    assert entry in MODEL
    found = lint(
        MODEL.replace(entry, '<input external_port_id="3" internal_layer_id="1"/>'), tmp_path
    )
    assert any("output port 3" in f.message and "no port map" in f.message for f in found)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('internal_layer_id="4"', 'internal_layer_id="9"', "IR215"),
        ('internal_layer_id="4"', 'internal_layer_id="3"', "IR215"),
        ('external_port_id="1"', 'external_port_id="7"', "IR215"),
        ('<input external_port_id="1" internal_layer_id="1"/>\n', "", "IR215"),
        ('<edge from-layer="4" to-layer="1"/>', '<edge from-layer="9" to-layer="1"/>', "IR215"),
        (parameter(1, "state", "2,1,4"), parameter(1, "state", "2,2,4"), "IR215"),
        ('name="state" type="Parameter" version="opset1"', 'name="state" type="Param"', "IR214"),
        ('shape="4" offset="0" size="16"', 'shape="4" offset="8" size="16"', "IR502"),
        ('shape="4" offset="0" size="16"', 'shape="5" offset="0" size="20"', "IR502"),
        (add(3, "2,1,4", "2,1,4"), add(3, "2,1,5", "2,1,4"), "IR401"),
        (add(6, "2,1,4", "4"), add(6, "2,1,4", "4").replace("numpy", "nmpy"), "IR306"),
        (edge(2, 0, 6, 1), "", "IR206"),
        (edge(3, 2, 6, 0), edge(3, 9, 6, 0), "IR204"),
    ],
)
def test_mistakes_in_a_body(old: str, new: str, code: str, tmp_path: Path) -> None:
    assert MODEL.count(old) >= 1
    at = MODEL.rindex(old) if old.startswith('<edge from-layer="3"') else MODEL.index(old)
    text = MODEL[:at] + new + MODEL[at + len(old) :]
    found = {finding.code: finding for finding in lint(text, tmp_path)}
    assert code in found
    line = found[code].line
    assert line is not None
    assert 5 <= line <= MODEL[: MODEL.index("</body>")].count("\n") + 1


def test_dims_in_a_body_are_fixed(tmp_path: Path) -> None:
    from deconv_ir.linter.fix import fix_bytes

    weights = tmp_path / "m.bin"
    weights.write_bytes(bytes(16))
    at = MODEL.index(add(3, "2,1,4", "2,1,4"))
    wrong = add(3, "2,1,4", "2,1,4").replace(
        f"<output>{port(2, '2,1,4')}", f"<output>{port(2, '2,1,9')}"
    )
    text = MODEL[:at] + wrong + MODEL[at + len(add(3, "2,1,4", "2,1,4")) :]
    data, count, left = fix_bytes(text.encode(), "m.xml", choose(), weights)
    assert (data.decode(), count, left.findings) == (MODEL, 1, [])


DECOMPRESSED = (
    '<net name="n" version="11"><layers>\n'
    + '<layer id="0" name="c" type="Const" version="opset1">'
    + '<data element_type="f16" shape="4" offset="0" size="8"/>'
    + f"<output>{port(0, '4', 'FP16')}</output></layer>\n"
    + '<layer id="1" name="d" type="Convert" version="opset1"><data destination_type="f32"/>'
    + '<rt_info><attribute name="decompression" version="0"/></rt_info>'
    + f"<input>{port(0, '4', 'FP16')}</input><output>{port(1, '4', 'FP16')}</output></layer>\n"
    + result(2, "4").replace("FP32", "FP16")
    + "</layers><edges>\n"
    + edge(0, 0, 1, 0)
    + edge(1, 1, 2, 0)
    + "</edges></net>\n"
)


def test_decompression_before_a_result_declares_the_compressed_type(tmp_path: Path) -> None:
    weights = tmp_path / "m.bin"
    weights.write_bytes(bytes(8))
    assert check_bytes(DECOMPRESSED.encode(), "m.xml", choose(), weights).findings == []
    other = DECOMPRESSED.replace("decompression", "fused_names_0")
    found = check_bytes(other.encode(), "m.xml", choose(), weights).findings
    assert {f.code for f in found} == {"IR403"}


@pytest.mark.parametrize(
    ("content", "codes"),
    [(bytes(16), []), (bytes(6) + b"\1" + bytes(9), ["IR506"]), (bytes(24), ["IR506"])],
)
def test_zeros_that_align_are_no_gap(content: bytes, codes: list[str], tmp_path: Path) -> None:
    """The .bin has six bytes, two bytes of alignment, and eight bytes."""
    short = DECOMPRESSED.replace('shape="4" offset="0" size="8"', 'shape="3" offset="0" size="6"')
    first = short.replace("<dim>4</dim>", "<dim>3</dim>")
    more = DECOMPRESSED.split("<layers>\n")[1].split("</layers>")[0]
    for old in (0, 1, 2):
        more = more.replace(f'<layer id="{old}" name="', f'<layer id="{old + 3}" name="x')
    more = more.replace('offset="0"', 'offset="8"')
    edges = edge(3, 0, 4, 0) + edge(4, 1, 5, 0)
    text = first.replace("</layers>", f"{more}</layers>").replace("</edges>", f"{edges}</edges>")
    weights = tmp_path / "m.bin"
    weights.write_bytes(content)
    found = check_bytes(text.encode(), "m.xml", choose(), weights).findings
    assert [f.code for f in found] == codes


def test_other_gaps_are_reported(tmp_path: Path) -> None:
    for content in (bytes(8) + b"\1\0\0\0", bytes(17)):
        weights = tmp_path / "m.bin"
        weights.write_bytes(content)
        found = check_bytes(DECOMPRESSED.encode(), "m.xml", choose(), weights).findings
        assert [f.code for f in found] == ["IR506"]


def test_negative_infinity_belongs_in_masks(tmp_path: Path) -> None:
    for values, codes in (((0, float("-inf")), []), ((0, float("inf")), ["IR507"])):
        weights = tmp_path / "m.bin"
        weights.write_bytes(struct.pack("<4e", *values, 1, 1))
        found = check_bytes(DECOMPRESSED.encode(), "m.xml", choose(deep=True), weights).findings
        assert [f.code for f in found] == codes


@pytest.mark.parametrize(("dim", "code"), [("2", "IR113"), ("3", None)])
def test_directive_before_a_layer_of_a_body(dim: str, code: str | None, tmp_path: Path) -> None:
    layer = '<layer id="3" name="add3"'
    start, _, rest = MODEL.partition(layer)
    rest = rest.replace(port(2, "2,1,4"), port(2, f"{dim},1,4"), 1)
    text = f"{start}<!-- deconv-lint: ignore=IR401 -->\n{layer}{rest}"
    (tmp_path / "m.bin").write_bytes(struct.pack("<4f", 1, 2, 3, 4))
    chosen = choose(select=["IR401", "IR113"])
    found = check_bytes(text.encode(), "m.xml", chosen, tmp_path / "m.bin").findings
    assert [f.code for f in found] == ([code] if code else [])


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('<data shape="2,1,4" element_type="f32"/>', '<data shape="2,1,8" element_type="f32"/>', 1),
        ('<data shape="2,1,4" element_type="f32"/>', '<data shape="2,1,4" element_type="i8"/>', 1),
        ('<data shape="2,1,4" element_type="f32"/>', '<data shape="2,1" element_type="what"/>', 1),
    ],
)
def test_attributes_of_a_parameter_in_a_body(old: str, new: str, code: int, tmp_path: Path) -> None:
    at = MODEL.index("<body>")
    text = MODEL[:at] + MODEL[at:].replace(old, new, 1)
    assert len(lint(text, tmp_path)) >= code


def test_bin_of_a_constant_in_a_body_is_missing(tmp_path: Path) -> None:
    found = check_bytes(MODEL.encode(), "m.xml", choose(), tmp_path / "missing.bin").findings
    assert [f.code for f in found] == ["IR501"]
    assert "'ti' (TensorIterator" in (found[0].layer or "")


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[1] / "fixtures/bodies").glob("*.xml")), ids=str
)
def test_what_openvino_saves_has_no_finding(path: Path) -> None:
    options = choose(severity="info", deep=True)
    assert check_bytes(path.read_bytes(), "m.xml", options, path.with_suffix(".bin")).findings == []


def looped(*, strides: str = "1,1", shape: str = "1,2,4,4", dims: str = "1,2,4,4") -> str:
    """Return a Loop whose body is a 1x1 convolution of its state [1,2,4,4]."""
    return (
        '<net name="n" version="11"><layers>\n'
        + parameter(0, "x", "1,2,4,4")
        + '<layer id="1" name="trips" type="Const" version="opset1">'
        + '<data element_type="i64" shape="" offset="0" size="8"/>'
        + '<output><port id="0" precision="I64"/></output></layer>\n'
        + '<layer id="2" name="go" type="Const" version="opset1">'
        + '<data element_type="boolean" shape="" offset="8" size="1"/>'
        + '<output><port id="0" precision="BOOL"/></output></layer>\n'
        + '<layer id="3" name="loop" type="Loop" version="opset5">\n<port_map>\n'
        + '<input external_port_id="2" internal_layer_id="0"/>\n'
        + '<output external_port_id="-1" internal_layer_id="5" purpose="execution_condition"/>\n'
        + '<output external_port_id="3" internal_layer_id="3"/>\n</port_map>\n'
        + '<back_edges><edge from-layer="3" to-layer="0"/></back_edges>\n'
        + f'<input><port id="0" precision="I64"/><port id="1" precision="BOOL"/>'
        f"{port(2, '1,2,4,4')}</input>\n<output>{port(3, '1,2,4,4')}</output>\n"
        + "<body><layers>\n"
        + parameter(0, "state", "1,2,4,4").replace('shape="1,2,4,4"', f'shape="{shape}"')
        + '<layer id="1" name="w" type="Const" version="opset1">'
        + '<data element_type="f32" shape="2,2,1,1" offset="12" size="16"/>'
        + f"<output>{port(0, '2,2,1,1')}</output></layer>\n"
        + '<layer id="2" name="conv" type="Convolution" version="opset1">'
        + f'<data strides="{strides}" dilations="1,1" pads_begin="0,0" pads_end="0,0" '
        + f'auto_pad="explicit"/><input>{port(0, "1,2,4,4")}{port(1, "2,2,1,1")}</input>'
        + f"<output>{port(2, dims)}</output></layer>\n"
        + result(3, "1,2,4,4")
        + '<layer id="4" name="true" type="Const" version="opset1">'
        + '<data element_type="boolean" shape="" offset="8" size="1"/>'
        + '<output><port id="0" precision="BOOL"/></output></layer>\n'
        + '<layer id="5" name="goes_on" type="Result" version="opset1">'
        + '<input><port id="0" precision="BOOL"/></input></layer>\n'
        + "</layers><edges>\n"
        + edge(0, 0, 2, 0)
        + edge(1, 0, 2, 1)
        + edge(2, 2, 3, 0)
        + edge(4, 0, 5, 0)
        + "</edges></body></layer>\n"
        + result(4, "1,2,4,4")
        + "</layers><edges>\n"
        + edge(1, 0, 3, 0)
        + edge(2, 0, 3, 1)
        + edge(0, 0, 3, 2)
        + edge(3, 3, 4, 0)
        + "</edges></net>\n"
    )


LOOPED = struct.pack("<q?3x4f", 3, True, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, []),
        # The state shrinks in each iteration, so inference alone does not know its dims.
        ({"strides": "2,2"}, [("IR416", 'strides="1,1"')]),
        ({"dims": "1,2,4,3"}, [("IR401", None)]),
        ({"shape": "1,2,?,4"}, [("IR215", None)]),
    ],
    ids=str,
)
def test_attributes_in_a_loop(
    changed: dict[str, str], expected: list[tuple[str, str | None]], tmp_path: Path
) -> None:
    """The Parameters of a body declare the dims of all iterations."""
    weights = tmp_path / "m.bin"
    weights.write_bytes(LOOPED)
    found = check_bytes(looped(**changed).encode(), "m.xml", choose(), weights).findings
    assert [(f.code, f.hint and f.hint.split(" or ")[0]) for f in found] == expected


@pytest.mark.parametrize(
    ("changed", "unsafe", "fixed"),
    [
        ({"dims": "1,2,4,3"}, False, True),
        ({"strides": "2,2"}, False, False),  # all dims around it say otherwise
        ({"strides": "2,2"}, True, False),  # pads of 3 would be as right as strides of 1
    ],
    ids=str,
)
def test_fixes_in_a_loop_need_evidence(
    changed: dict[str, str], unsafe: bool, fixed: bool, tmp_path: Path
) -> None:
    from deconv_ir.linter.fix import fix_bytes

    weights = tmp_path / "m.bin"
    weights.write_bytes(LOOPED)
    wrong = looped(**changed)
    data, _, left = fix_bytes(wrong.encode(), "m.xml", choose(), weights, unsafe=unsafe)
    assert data.decode() == (looped() if fixed else wrong)
    assert bool(left.findings) != fixed


SLICED_LOOP = (Path(__file__).parents[1] / "fixtures/loops/loop_sliced.xml").read_text("utf-8")
"""A Loop of 4 iterations over slices [1,6,6], as OpenVINO saved it."""
CUT = '<input axis="0" external_port_id="3" internal_layer_id="1" start="0" end="-1" stride="1"'
CURRENT = 'external_port_id="-1" internal_layer_id="2" purpose="current_iteration"'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        # OpenVINO 2026.4 refuses or crashes on these, unless a comment says more.
        ('from-layer="12" to-layer="0"', 'from-layer="13" to-layer="0"', "f32[2,1,6], and the"),
        (CUT, CUT.replace('stride="1"', 'stride="0"'), "from 0 to -1 by 0"),
        (CUT, CUT.replace('stride="1"', 'stride="3"'), "from 0 to -1 by 3"),
        (CUT, CUT.replace('stride="1"', 'stride="2"'), "has 2 slices along axis 0"),
        # It repeats the last slice here.
        (CUT, CUT.replace('end="-1"', 'end="2"'), "has 2 slices along axis 0"),
        (CUT, CUT.replace('stride="1"', 'stride="-1"'), "from 0 to -1 by -1"),
        (CURRENT, f'{CURRENT} axis="0"', "current_iteration is not sliced"),
        (CURRENT, CURRENT.replace('"-1"', '"0"'), "external_port_id must be -1"),
        (CURRENT, CURRENT.replace('"-1"', '"2"'), "external_port_id must be -1"),
        # It ignores an unknown purpose, and the body's number of the iteration is not set.
        ("current_iteration", "current_iter", "no purpose 'current_iter'"),
        ('purpose="execution_condition"', 'purpose="execution_condition" axis="0"', "not sliced"),
    ],
)
def test_port_map_of_a_loop(old: str, new: str, words: str, tmp_path: Path) -> None:
    assert old in SLICED_LOOP
    weights = Path(__file__).parents[1] / "fixtures/loops/loop_sliced.bin"
    text = SLICED_LOOP.replace(old, new, 1)
    found = check_bytes(text.encode(), "m.xml", choose(), weights).findings
    assert any(f.code == "IR215" and words in f.message for f in found), found


def test_more_slices_than_iterations() -> None:
    """OpenVINO 2026.4 runs such a Loop, and leaves the other slices out."""
    weights = Path(__file__).parents[1] / "fixtures/loops/loop_sliced.bin"
    assert check_bytes(SLICED_LOOP.encode(), "m.xml", choose(), weights).findings == []
    more = SLICED_LOOP.replace('shape="4,6,6"', 'shape="7,6,6"').replace(
        "<dim>4</dim>", "<dim>7</dim>"
    )
    found = check_bytes(more.encode(), "m.xml", choose(), weights).findings
    assert not any("slices" in f.message for f in found)
