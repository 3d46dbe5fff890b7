"""The scanner finds the same elements as lxml, at the right offsets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from deconv_ir.errors import IRError
from deconv_ir.formats.openvino_xml.entry import parse_bytes
from deconv_ir.formats.openvino_xml.scanner import Element, scan
from deconv_ir.formats.openvino_xml.text import XMLText

names = st.sampled_from(["net", "layers", "layer", "port", "dim", "a.b", "x-y", "é"])
texts = st.text("a3é€<&>\"' ]\n\t-?", max_size=8) | st.sampled_from(
    ["", " ", "\n", "3", " 3 ", "]]", "<", "&", ">", "'", '"']
)


def escaped(text: str, quote: str = "") -> str:
    out = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return out.replace(quote, f"&#{ord(quote)};") if quote else out


@st.composite
def documents(draw: st.DrawFn, depth: int = 0) -> str:
    """Write an element in a random one of the many forms that XML allows."""
    tag = draw(names)
    attributes = ""
    for name in draw(st.lists(names, unique=True, max_size=3)):
        quote = draw(st.sampled_from(["'", '"']))
        equals = draw(st.sampled_from(["=", " = ", "=\n\t"]))
        attributes += f"{draw(st.sampled_from([' ', chr(10), '  ']))}{name}{equals}{quote}"
        attributes += f"{escaped(draw(texts), quote)}{quote}"
    attributes += draw(st.sampled_from(["", " ", "\n"]))
    if draw(st.booleans()):
        return f"<{tag}{attributes}/>"
    pieces = []
    for _ in range(draw(st.integers(0, 3 if depth < 3 else 0))):
        kind = draw(st.sampled_from(["text", "element", "comment", "cdata", "instruction"]))
        if kind == "element":
            pieces.append(draw(documents(depth + 1)))
        elif kind == "text":
            pieces.append(escaped(draw(texts)))
        elif kind == "comment":
            inside = draw(texts).replace("-", "")
            pieces.append(f"<!--{inside} <dim>1</dim> -->")
        elif kind == "cdata":
            pieces.append(f"<![CDATA[{draw(texts).replace(']', '')} </layer> & ]]>")
        else:
            pieces.append("<?pi <layer> ?>")
    return f"<{tag}{attributes}>{''.join(pieces)}</{tag}{draw(st.sampled_from(['', ' ']))}>"


def as_lxml(element: Element) -> tuple[object, ...]:
    return (element.tag, element.attributes(), tuple(map(as_lxml, element.children)))


def tree(element: etree._Element) -> tuple[object, ...]:
    children = (child for child in element if isinstance(child.tag, str))
    return (element.tag, dict(element.attrib), tuple(map(tree, children)))


@settings(deadline=None)
@given(
    documents(),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "iso-8859-15"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_same_elements_and_attributes(text: str, encoding: str, newline: str) -> None:
    name = "utf-8" if encoding == "utf-8-sig" else encoding
    text = f'<?xml version="1.0" encoding="{name}"?>\n{text}'.replace("\n", newline)
    data = text.encode(encoding, "xmlcharrefreplace")
    try:
        root = etree.fromstring(data)
    except etree.XMLSyntaxError:
        with pytest.raises(IRError):
            XMLText(data)
        return
    xml = XMLText(data)
    (element,) = scan(xml.markup)
    assert as_lxml(element) == tree(root)
    assert len(xml.markup) == len(xml.text)
    assert xml.markup.count("\n") == xml.text.count("\n")
    assert xml.edited([]) == data
    line, _ = xml.position(element.head_end - 1)  # libxml2 counts the line in which a tag ends
    assert line == root.sourceline


@settings(deadline=None)
@given(documents())
def test_offsets_lead_to_the_text(text: str) -> None:
    xml = XMLText(text.encode())
    (element,) = scan(xml.markup)
    assert xml.text[element.start : element.end] == text
    for name, (start, first, last) in element.attribute_spans().items():
        assert xml.text[start:].startswith(name)
        assert xml.text[first - 1] == xml.text[last]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_beyond_65535_are_exact(newline: str) -> None:
    """libxml2 keeps the line number of a node in 16 bits."""
    layer = '<layer id="{}" name="r" type="Result" version="opset1">{}</layer>{}'
    text = "".join(layer.format(i, newline * 9, newline) for i in range(10_000))
    data = f'<net name="n" version="11">{newline}<layers>{newline}{text}</layers></net>'.encode()
    graph = parse_bytes(data).graph
    assert graph is not None
    assert [layer.line for layer in graph.layers] == [3 + 10 * i for i in range(10_000)]


@pytest.mark.parametrize(
    ("plain", "odd"),
    [
        ('<layer id="1"', "<layer id='1'"),
        ('<layer id="1"', '<layer  id = "1"'),
        ('name="r1"', 'name="r&#49;"'),
        ('<edge from-layer="0"', "<edge\nfrom-layer='0'"),
        ('to-port="0" />', 'to-port="0"></edge>'),
        ("<dim>3</dim>", "<dim>\n3<!-- three --></dim>"),
        ("<dim>3</dim>", "<dim><![CDATA[3]]></dim>"),
        ("<layers>", "<!-- <layer> --><layers><?x <layer?>"),
        ("<data shape", "<data  shape"),
        ('element_type="f32" />', 'element_type="f32"></data>'),
    ],
)
def test_every_way_of_writing_gives_the_same_graph(plain: str, odd: str) -> None:
    """The reader has a fast path for the form that OpenVINO writes."""
    text = (
        '<net name="n" version="11"><layers>'
        '<layer id="0" name="x" type="Parameter" version="opset1">'
        '<data shape="1,3" element_type="f32" />'
        '<output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output></layer>'
        '<layer id="1" name="r1" type="Result" version="opset1">'
        '<input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></input></layer>'
        '</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0" /></edges>'
        "</net>"
    )
    assert plain in text

    def graph_of(text: str) -> object:
        parsed = parse_bytes(text.encode())
        assert parsed.errors == []
        assert parsed.graph is not None
        graph = parsed.graph
        layers = [
            layer._replace(
                line=None,
                inputs=tuple(p._replace(line_offset=0) for p in layer.inputs),
                outputs=tuple(p._replace(line_offset=0) for p in layer.outputs),
            )
            for layer in graph.layers
        ]
        return layers, [edge._replace(line=None) for edge in graph.edges]

    assert graph_of(text.replace(plain, odd)) == graph_of(text)


def test_layers_within_layers_are_not_mistaken() -> None:
    body = '<layers><layer id="7" name="inner" type="ReLU" version="opset1" /></layers>'
    text = (
        '<net name="n" version="11"><layers>'
        '<layer id="0" name="loop" type="Loop" version="opset5"><data />'
        f"<body>{body}</body></layer>"
        '<layer id="1" name="r" type="ReLU" version="opset1" /></layers><edges /></net>'
    )
    graph = parse_bytes(text.encode()).graph
    assert graph is not None
    assert [layer.name for layer in graph.layers] == ["loop", "r"]
    assert [info.tag for info in graph.layers[0].extras] == ["body"]
