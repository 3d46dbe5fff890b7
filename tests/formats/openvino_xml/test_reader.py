"""Reading IRs: the forms that are accepted, and the error for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

import deconv_ir
from deconv_ir.errors import DeconvError
from deconv_ir.formats.openvino_xml.entry import parse_bytes, read, read_bytes
from deconv_ir.formats.openvino_xml.parsed import ParsedXML
from deconv_ir.formats.openvino_xml.pieces import split_names
from deconv_ir.formats.openvino_xml.reader import Reader
from deconv_ir.formats.openvino_xml.text import XMLText
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.graph import Graph, Port
from deconv_ir.limits import DEFAULT_LIMITS

LAYER = """<layer id="5" name="up" type="ConvolutionBackpropData">
    <data strides="2,2"/>
    <input>
        <port id="0"><dim>1</dim><dim>2</dim><dim>5</dim><dim>5</dim></port>
        <port id="1"><dim>2</dim><dim>3</dim><dim>3</dim><dim>3</dim></port>
    </input>
    <output>
        <port id="0" precision="FP32"><dim>1</dim><dim>3</dim><dim>11</dim><dim>11</dim></port>
    </output>
</layer>
"""

NET = """<net name="n" version="11">
<layers>
<layer id="0" name="x" type="Parameter" version="opset1">
<data shape="1,2,?,2..8" element_type="f32"/>
<output><port id="0" precision="FP32" names="x,y\\,z"><dim>1</dim><dim>2</dim><dim>-1</dim>
<dim>-1</dim></port></output>
</layer>
<layer id="1" name="relu" type="ReLU" version="opset1">
<input><port id="0" precision="FP32"/></input><output><port id="1" precision="FP32"/></output>
</layer>
<layer id="2" name="r" type="Result" version="opset1" output_names="q">
<input><port id="0"/></input>
</layer>
</layers>
<edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
</edges>
<rt_info><conversion value="a&lt;b"><deep x="1"/></conversion></rt_info>
</net>
"""


def graph_of(text: str | bytes) -> Graph:
    graph, errors = read_bytes(text.encode() if isinstance(text, str) else text)
    assert not errors
    assert graph is not None
    return graph


def errors_of(text: str | bytes) -> list[DeconvError]:
    graph, errors = read_bytes(text.encode() if isinstance(text, str) else text, "m.xml")
    return errors + list(graph.topology.errors if graph else ())


def test_network() -> None:
    graph = graph_of(NET)
    assert (graph.name, graph.ir_version, len(graph.layers), len(graph.edges)) == ("n", 11, 3, 2)
    x, relu, result = graph.layers
    assert x.operation.shape == (1, 2, Interval(), Interval(2, 8))
    assert x.outputs[0].names == ("x", "y,z")
    assert x.outputs[0].shape == (1, 2, Interval(), Interval())
    # scalars and dynamic ranks are both written without dims
    assert relu.outputs[0].shape is None
    assert result.extra_attributes == (("output_names", "q"),)
    assert graph.topology.sources == ((), ((0, 0),), ((1, 0),))
    assert [layer.line for layer in graph.layers] == [3, 8, 11]


@pytest.mark.parametrize(
    "text",
    [
        NET.replace('version="11"', 'version="10"'),
        "\ufeff" + NET,
        '<?xml version="1.0" encoding="utf-8"?>\n<!-- a comment -->' + NET,
        NET.replace("<layers>", "<layers><!-- <layer/> --><?pi x?>"),
        NET.replace("<dim>1</dim>", "<dim> 1 </dim> <!-- 2 -->"),
    ],
    ids=["version 10", "BOM", "declaration and comment", "comment and pi", "blanks in dim"],
)
def test_same_network_written_otherwise(text: str) -> None:
    assert len(graph_of(text).layers) == 3


PORTS = """<net name="n" version="11">
<layers>
<layer id="0" name="x" type="Unheard" version="extension">
<input>
<port id="3" precision="FP32" names="a,b">
<dim>1</dim><dim>-1</dim>
</port>
<port id="4" precision="I64"><dim>7</dim></port>
</input>
<output>
<port id="5" precision="dynamic">
</port>
</output>
</layer>
</layers>
</net>
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ('<port id="4" precision="I64">', '<port precision="I64" id="4">'),
        ('<port id="4" precision="I64">', "<port id='4' precision='I64'>"),
        (
            '<port id="3" precision="FP32" names="a,b">',
            '<port id="3" precision="FP32" names="&#97;,b">',
        ),
        ("<input>", "<input >"),
        ("</input>", "</input ><!-- x -->"),
        ("<dim>7</dim>", "<dim> 7 </dim>"),
        ("</dim>\n</port>", "</dim>\n</port >"),
        ("<dim>7</dim></port>", "<dim>7</dim></port >"),
        ('<port id="5" precision="dynamic">\n</port>', '\n<port id="5" precision="dynamic"/>'),
    ],
)
def test_ports_written_otherwise(old: str, new: str) -> None:
    (layer,) = graph_of(PORTS.replace(old, new)).layers
    f32, i64 = map(parse_element_type, ("f32", "i64"))
    assert layer.inputs == (
        Port(3, (1, Interval()), f32, ("a", "b"), 2),
        Port(4, (7,), i64, (), 5),
    )
    (port,) = layer.outputs
    assert port == Port(5, None, None, (), 9 if new.startswith("\n") else 8)


@pytest.mark.parametrize(
    ("old", "new", "rule", "line"),
    [
        ("<dim>7</dim>", "<dim>7x</dim>", "dim-value", 8),
        ('precision="I64"', 'precision="I65"', "precision", 8),
        ("</input>", "</input>\n<input></input>", "duplicate-element", 10),
        ("<dim>7</dim>", "<dim>1</dim>" * 65, "oversize", 8),
        ("<dim>7</dim>", "<dim>7..5</dim>", "dim-value", 8),
    ],
)
def test_mistakes_among_ports(old: str, new: str, rule: str, line: int) -> None:
    _, (found,) = read_bytes(PORTS.replace(old, new).encode())
    assert (found.rule, found.line) == (rule, line)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("<dim>7</dim>", "<dim>7</dim><x/>", "unknown-element"),
        (
            '<port id="4" precision="I64">',
            '<port id="4" precision="I64" x="1">',
            "unknown-attribute",
        ),
        ("<input>", '<input x="1">', "unknown-attribute"),
        ("<dim>7</dim>", "<dim>?</dim>", "openvino-form"),
        ('precision="dynamic"', 'precision="fp32"', "openvino-form"),
        (' precision="dynamic"', "", "openvino-form"),
    ],
)
def test_remarks_about_ports(old: str, new: str, rule: str) -> None:
    assert not parse_bytes(PORTS.encode()).remarks
    assert [r.rule for r in parse_bytes(PORTS.replace(old, new).encode()).remarks] == [rule]


def test_utf16() -> None:
    assert len(graph_of(NET.encode("utf-16")).layers) == 3


def test_bare_layer_is_a_model() -> None:
    graph = graph_of(LAYER)
    assert graph.bare
    assert [layer.name for layer in graph.of_type("Parameter")] == ["data", "filter"]
    # edges bind ports in order, so the output may repeat an input's id
    assert graph.find("up").line == 1
    assert not graph.topology.errors


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("GroupConvolutionBackpropData", ["data", "filter", "output_shape"]),
        ("ConvTranspose", ["data", "filter", "bias"]),
        ("ConvolutionBackwardData", ["diff_dst", "weights", "dst_shape"]),
        ("SomethingUnknown", ["input0", "input1", "input2"]),
    ],
)
def test_inputs_of_a_bare_layer_have_the_documents_names(kind: str, names: list[str]) -> None:
    third = '<port id="2"><dim>2</dim></port></input>'
    text = LAYER.replace("ConvolutionBackpropData", kind).replace("</input>", third)
    assert [layer.name for layer in graph_of(text).of_type("Parameter")] == names


def test_attributes_with_blanks_and_any_case() -> None:
    text = LAYER.replace('strides="2,2"', 'strides=" 2 , 2" auto_pad="SAME_Upper"')
    operation = graph_of(text).find("up").operation
    assert operation.strides == (2, 2)
    assert operation.auto_pad.value == "same_upper"


@pytest.mark.parametrize(
    ("text", "rule", "line", "words"),
    [
        ("", "xml", 1, "not well-formed XML"),
        ("<net", "xml", 1, "not well-formed XML"),
        ("<a/>", "root", 1, "<a>, expected <net>"),
        (NET.replace('version="11"', 'version="7"', 1), "ir-version", 1, "version 7"),
        (NET.replace('version="11"', 'version="x"', 1), "number", 1, "whole number"),
        (NET.replace(' version="11"', "", 1), "missing-attribute", 1, "'version'"),
        ("<net version='11'/>", "missing-element", 1, "<layers>"),
        (NET.replace('type="ReLU" ', ""), "missing-attribute", 8, "'type'"),
        (NET.replace('<layer id="1" ', "<layer "), "missing-attribute", 8, "'id'"),
        (NET.replace('<layer id="1"', '<layer id="-1"'), "number", 8, "'-1'"),
        (NET.replace('<layer id="1"', '<layer id="0"'), "duplicate-layer-id", 8, "layer 'x'"),
        (NET.replace("<dim>2</dim>", "<dim>two</dim>"), "dim-value", 5, "'two'"),
        (NET.replace('precision="FP32" names', 'precision="FP31" names'), "precision", 5, "FP31"),
        (NET.replace('to-layer="1"', 'to-layer="9"'), "edge-to-missing-layer", 16, "layer 9"),
        (NET.replace('to-layer="2" to-port="0"', 'to-layer="2" to-port="3"'),
         "edge-to-missing-port", 17, "input port 3, the layer has 0"),
        (NET.replace('from-port="1"', 'from-port="7"'), "edge-to-missing-port", 17,
         "output port 7, the layer has 1"),
        (NET.replace('<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>', ""),
         "input-without-edge", 12, "input port 0 has no edge"),
        (NET.replace("</edges>", '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>'
                     "</edges>"), "two-edges-into-port", 18, "already has an edge"),
        (NET.replace('<edge from-layer="0" from-port="0"', '<edge from-layer="1" from-port="1"'),
         "cycle", 8, "relu -> relu"),
        (NET.replace('to-port="0"/>', "/>", 1), "missing-attribute", 16, "'to-port'"),
        ('<!DOCTYPE net [<!ENTITY a "b">]>' + NET, "xml", 1, "DOCTYPE"),
    ],
)  # fmt: skip
def test_each_mistake_has_its_own_message(text: str, rule: str, line: int, words: str) -> None:
    errors = errors_of(text)
    assert rule in [p.rule for p in errors]
    error = next(p for p in errors if p.rule == rule)
    assert words in error.message
    assert (error.file, error.line) == ("m.xml", line)


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        (
            'strides="0,2"',
            "'strides' must be positive whole numbers separated by commas, found '0,2'",
        ),
        ('strides="-1,2"', "found '-1,2'"),
        ('strides="2.0,2"', "found '2.0,2'"),
        ('strides="2;2"', "found '2;2'"),
        ('strides="2,"', "found '2,'"),
        ('strides="2,2" dilations="0,1"', "'dilations' must be positive"),
        ('strides="2,2" pads_begin="-1,0"', "'pads_begin' must be non-negative"),
        ('strides="2,2" pads_end="a,b"', "'pads_end' must be non-negative"),
        ('strides="2,2" output_padding="-1,0"', "'output_padding' must be non-negative"),
        ('strides="2,2" auto_pad="same"', "'auto_pad' must be one of explicit, same_upper"),
        ('strides="99999999999999999999,1"', "'strides' must be positive"),
    ],
)
def test_wrong_attribute_values(attribute: str, words: str) -> None:
    (error,) = errors_of(LAYER.replace('strides="2,2"', attribute))
    text = str(error)
    assert words in text
    assert text.startswith("m.xml:2: layer 'up' (ConvolutionBackpropData, id 5): ")
    assert error.attribute == attribute.split("=")[-2].split()[-1]


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        ('groups="0"', "'groups' must be a positive whole number"),
        ('data_format="NHWC"', "'data_format' must be one of NXC, NCX"),
        ('filter_format="OIX"', "'filter_format' must be one of XOI, IOX"),
        # S3 writes a bare SAME in a formula, but its list of allowed values lacks it
        ('auto_pad="SAME"', "'auto_pad' must be one of none, same_upper, same_lower, valid"),
    ],
)
def test_wrong_attribute_values_of_onednn(attribute: str, words: str) -> None:
    text = LAYER.replace("ConvolutionBackpropData", "ConvTranspose")
    (error,) = errors_of(text.replace('strides="2,2"', f'strides="2,2" {attribute}'))
    assert words in error.message


def test_several_mistakes_are_all_collected() -> None:
    text = LAYER.replace('strides="2,2"', 'strides="0,2" pads_begin="x" auto_pad="up"')
    assert [p.attribute for p in errors_of(text)] == ["strides", "pads_begin", "auto_pad"]


def test_unknown_operation_loads() -> None:
    graph = graph_of(NET.replace("ReLU", "Frobnicate"))
    assert not graph.layers[1].operation.implemented


def test_newer_opset_means_the_newest_version_before_it() -> None:
    graph = graph_of(NET.replace('type="ReLU" version="opset1"', 'type="ReLU" version="opset13"'))
    assert graph.layers[1].operation.type == "ReLU"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        ("a\\,b", ("a,b",)),
        ("a\\,b,c\\,", ("a,b", "c,")),
        ("a\\b,c", ("a\\b", "c")),
    ],
)
def test_tensor_names(text: str, names: tuple[str, ...]) -> None:
    assert split_names(text) == names


def test_missing_file_directory_and_fifo(tmp_path: Path) -> None:
    import os

    fifo = tmp_path / "fifo.xml"
    os.mkfifo(fifo)
    for path, words in (
        (tmp_path / "none.xml", "No such file"),
        (tmp_path, "directory"),
        (fifo, "not a regular file"),
    ):
        with pytest.raises(deconv_ir.IRError, match=words):
            deconv_ir.load(path)


def test_oversize_is_refused_before_it_is_read(tmp_path: Path) -> None:
    from deconv_ir.limits import Limits

    path = tmp_path / "big.xml"
    path.write_text(NET)
    graph, errors = read(path, Limits(xml_bytes=10))
    assert graph is None
    assert errors[0].rule == "oversize"
    graph, errors = read(path, Limits(layers=2))
    assert graph is None
    assert "more layers than the limit of 2" in errors[0].message


def test_long_chain_needs_no_recursion() -> None:
    count = 20_000
    layers = "".join(
        f'<layer id="{i}" name="l{i}" type="ReLU" version="opset1"><input><port id="0"/></input>'
        '<output><port id="1" precision="FP32"/></output></layer>'
        for i in range(count)
    )
    edges = "".join(
        f'<edge from-layer="{(i + 1) % count}" from-port="1" to-layer="{i}" to-port="0"/>'
        for i in range(count)
    )
    text = f'<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
    (error,) = errors_of(text)
    assert error.rule == "cycle"
    assert len(error.message) < 300


def test_lines_in_any_order() -> None:
    reader = Reader(ParsedXML(None), XMLText(NET.encode()), DEFAULT_LIMITS)
    offsets = [NET.index(text) for text in ("</net>", "<layers>", "<edges>", "<net")]
    assert list(map(reader.line, offsets)) == [NET.count("\n", 0, at) + 1 for at in offsets]
