"""Malicious XML: every attack gives a clear error or a correct model, in bounded memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

import deconv_ir
from deconv_ir import formats
from deconv_ir.formats.openvino_xml import entry
from deconv_ir.formats.openvino_xml.text import XMLText
from deconv_ir.limits import DEFAULT_LIMITS, Limits
from hostile.children import MIB, bounded

NET = '<net name="n" version="11"><layers>{}</layers><edges>{}</edges></net>'
LAYER = (
    '<layer id="{}" name="r" type="Parameter" version="opset1">'
    '<data shape="1" element_type="f32"/></layer>'
)
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE net [<!ENTITY a0 "lol">'
    + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
    + ']><net name="&a9;" version="11"/>'
)
QUADRATIC = f'<!DOCTYPE net [<!ENTITY a "{"x" * 50_000}">]><net name="{"&a;" * 50_000}"/>'

BODIES = [
    (
        '<layer id="0" name="a" type="If" version="opset8"><then_body><layers>',
        "</layers></then_body></layer>",
    ),
    (
        '<layer id="0" name="a" type="TensorIterator" version="opset1"><body><layers>',
        "</layers></body></layer>",
    ),
]


def errors(text: str | bytes, limits: Limits = DEFAULT_LIMITS) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    return [str(p) for p in entry.read_bytes(data, "m.xml", limits)[1]]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (LAUGHS, "m.xml:1: a DOCTYPE is not allowed in an IR"),
        (QUADRATIC, "m.xml:1: a DOCTYPE is not allowed in an IR"),
        ('<!DOCTYPE net SYSTEM "file:///etc/passwd"><net/>', "a DOCTYPE is not allowed"),
        ('<!DOCTYPE net PUBLIC "x" "http://localhost:1/"><net/>', "a DOCTYPE is not allowed"),
        (
            '<!DOCTYPE n [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]><net/>',
            "a DOCTYPE is not allowed",
        ),
        ("\n<!-- <net> --><?p ?>\n<!DOCTYPE net><net/>", "m.xml:3: a DOCTYPE is not allowed"),
        ('<net name="&unknown;" version="11"/>', "Entity 'unknown' not defined"),
        ('<net name="a\0b" version="11"/>', "m.xml:1: not well-formed XML"),
        ('<net name="&#0;" version="11"/>', "m.xml:1: not well-formed XML"),
        ("<a>" * 100_000 + "</a>" * 100_000, "the root element is <a>"),
        ("", "m.xml:1: not well-formed XML"),
        (b"\x89PNG\r\n\x1a\n", "m.xml:1: byte 0 cannot be decoded"),
        ('<net version="11"><layers></net>', "m.xml:1: not well-formed XML"),
        ("<svg/>", "the root element is <svg>, expected <net>"),
    ],
    ids=lambda v: v[:40] if isinstance(v, str) else repr(v[:20]),
)
def test_refused_in_one_line(document: str | bytes, words: str) -> None:
    found = errors(document)
    assert words in found[0]
    assert "\n" not in found[0]


NEST = "\n{}" + "<a>" * 100_000 + "</a>" * 100_000 + "{}"


@pytest.mark.parametrize("version", [7, 11])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "<layers/>"),
        ("<layers>", "</layers>"),
        ("<layers><layer>", "</layer></layers>"),
        ('<layers><layer id="0" name="a" type="Relu">', "</layer></layers>"),
        ('<layers><layer id="0" name="a" type="Relu"><output>', "</output></layer></layers>"),
        (
            '<layers><layer id="0" name="a" type="Relu"><output><port id="0">',
            "</port></output></layer></layers>",
        ),
        ("<layers/><edges>", "</edges>"),
        ("<layers/><rt_info>", "</rt_info>"),
        ("<layers/><statistics><layer>", "</layer></statistics>"),
        ("<layers/><pre-process>", "</pre-process>"),
    ],
)
def test_deep_nesting_is_refused_where_it_begins(version: int, before: str, after: str) -> None:
    document = f'<net name="n" version="{version}">{NEST.format(before, after)}</net>'
    error = formats.parse_bytes(document.encode(), "m.xml", DEFAULT_LIMITS).errors[-1]
    assert str(error) == "m.xml:2: elements are nested more than 256 deep"
    around = 1 + before.count("<") - before.count("/>")
    assert error.column == len(before) + len("<a>") * (256 - around) + 1


@pytest.mark.parametrize(("head", "tail"), BODIES)
def test_nested_bodies_are_refused(head: str, tail: str) -> None:
    document = NET.format(head * 10_000 + tail * 10_000, "")
    assert "nested more than" in errors(document)[0]


@pytest.mark.parametrize(
    ("document", "well_formed"),
    [
        ("<net \u0378='1'/>", True),  # a name since the fifth edition of XML
        ("<net><!-- a -- b --></net>", False),
        ("<net>]]></net>", False),
        ("<net>&#xFFFE;</net>", False),
        ("<net>\uffff</net>", False),
        ("<net>&#55296;</net>", False),
        ("<net>\x01</net>", False),
        ("<net a='<'/>", False),
        ("<net a='1' a='2'/>", False),
        ("<net><?xml version='1.0'?></net>", False),
        ("<net/>&#32;", False),
        ("<net>&amp;&#10;&#x10FFFF;</net>", True),
        ("<net>&#x110000;</net>", False),
        ("<net>&nbsp;</net>", False),
        ("<?xml version='1.1'?><net/>", True),
        ("<?xml version='1'?><net/>", False),
        ("<net a = '1'\r\n\t/>\n<!-- a --><?b?>", True),
        ("<net a='1'b='2'/>", False),
    ],
)
def test_well_formed_is_what_lxml_calls_so(document: str, well_formed: bool) -> None:
    try:
        etree.fromstring(document)
        assert well_formed
    except etree.XMLSyntaxError:
        assert not well_formed
    assert ("not well-formed" in errors(document)[0]) != well_formed


def test_xinclude_is_an_element_like_any_other(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    include = f'<x:include xmlns:x="http://www.w3.org/2001/XInclude" href="{secret}" parse="text"/>'
    graph, found = entry.read_bytes(NET.format(include, "").encode())
    assert not found
    assert "s3cret" not in repr(graph)


def test_what_comes_before_the_doctype_does_not_hide_it() -> None:
    for before in (
        "\ufeff",
        "<!-->-->",
        "<!--<!DOCTYPE a>-->",
        "<?a <b?>",
        "<?xml version='1.0'?>",
    ):
        assert "DOCTYPE" in errors(f"{before}<!DOCTYPE net><net/>")[0]


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_unicode_encodings_load(codec: str) -> None:
    declared = {"utf-16-le": "UTF-16LE", "utf-16-be": "UTF-16BE", "utf-8-sig": "utf-8"}
    text = f'<?xml version="1.0" encoding="{declared.get(codec, codec)}"?>' + NET.format(
        LAYER.format(0).replace('"r"', '"\u00e9\u4e2d\U0001f600"'), ""
    )
    graph, found = entry.read_bytes(text.encode(codec))
    assert not found
    assert graph is not None
    assert graph.layers[0].name == "\u00e9\u4e2d\U0001f600"


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("nonsense", "the encoding 'nonsense' is not supported"),
        ("zlib", "the encoding 'zlib' is not supported"),
        ("punycode", "the encoding 'punycode' is not supported"),
        ("unicode_escape", "the encoding 'unicode_escape' is not supported"),
        ("utf-7", "the encoding 'utf-7' is not supported"),
        ("ascii", "byte 43 cannot be decoded"),
        ("utf-8", "byte 43 cannot be decoded"),
        ("utf-16", "m.xml:1: "),
    ],
)
def test_wrong_encodings_are_refused(encoding: str, words: str) -> None:
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    data = head.encode().ljust(43) + b'\xe9<net version="11"/>'
    assert words in errors(data)[0]


def test_the_parser_and_the_reader_see_one_text() -> None:
    # Decoders of Shift JIS differ on 0x5C; one more quote would mean one more tag.
    text = NET.format(LAYER.format(0).replace('"r"', '"\u8868"'), "")
    data = b'<?xml version="1.0" encoding="shift_jis"?>' + text.encode("shift_jis")
    graph, found = entry.read_bytes(data)
    assert not found
    assert graph is not None
    assert graph.layers[0].name == "\u8868"


def test_an_attribute_of_a_gibibyte_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    with path.open("wb") as stream:  # a sparse file, which takes no disk space
        stream.write(b'<net version="11" name="')
        stream.seek(1 << 30)
        stream.write(b'"/>')
    out = bounded(f"deconv_ir.load({str(path)!r})", 256 * MIB)
    assert "the file has 1073741827 bytes, more than the limit of 268435456" in out


def test_an_attribute_within_the_file_limit_is_bounded_too() -> None:
    assert "Resource limit exceeded" in errors(f'<net version="11" name="{"a" * 20_000_000}"/>')[0]


def test_ten_million_layers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    layer = '<layer id="0" type="a"/>'
    with path.open("w") as stream:
        head, tail = NET.format("|", "").split("|")
        stream.write(head)
        for _ in range(100):
            stream.write(layer * 100_000)
        stream.write(tail)
    out = bounded(
        "from deconv_ir.limits import Limits\n"
        f"deconv_ir.load({str(path)!r}, limits=Limits(tags=5_000_000))"
    )
    assert "m.xml:1: the file has 10000006 tags, more than the limit of 5000000" in out


@pytest.mark.parametrize(
    ("limits", "document", "words"),
    [
        (Limits(xml_bytes=50), NET.format("", ""), "bytes, more than the limit of 50"),
        (Limits(tags=3), NET.format("", ""), "6 tags, more than the limit of 3"),
        (
            Limits(layers=1),
            NET.format(LAYER.format(0) + LAYER.format(1), ""),
            "more layers than the limit of 1",
        ),
        (
            Limits(rank=3),
            NET.format(
                '<layer id="1" type="A"><output><port id="0">'
                + "<dim>1</dim>" * 4
                + "</port></output></layer>",
                "",
            ),
            "4 dims, more than the limit of 3",
        ),
    ],
    ids=["xml_bytes", "tags", "layers", "rank"],
)
def test_limits_can_be_changed(limits: Limits, document: str, words: str) -> None:
    assert words in errors(document, limits)[0]


def test_limits_of_the_library(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text(NET.format(LAYER.format(0) + LAYER.format(1), ""))
    with pytest.raises(deconv_ir.IRError, match="more layers than the limit of 1"):
        deconv_ir.load(path, limits=Limits(layers=1))
    [finding] = deconv_ir.lint(path, select=["too-large"], limits=Limits(layers=1))
    assert "more layers than the limit of 1" in finding.message
    assert not deconv_ir.lint(path, select=["too-large"])


def test_mistakes_are_bounded_too() -> None:
    found = errors(NET.format("", "<edge/>" * 1000), Limits(problems=100))
    assert len(found) == 101
    assert "there are 100 mistakes up to here; the rest is not read" in found[-1]
    ports = '<port id="x"><dim>z</dim></port>' * 10_000
    found = errors(NET.format(f'<layer id="1" type="A"><input>{ports}</input></layer>', ""))
    assert 1000 < len(found) < 2100


def test_remarks_do_not_crowd_out_mistakes() -> None:
    strange = "".join(f"<x{i}/>" for i in range(5000))
    layer = f'<layer id="1" type="A">{strange}<input><port id="x"/></input></layer>'
    assert "id of <port> must be a whole number" in errors(NET.format(layer, ""))[0]


def test_many_mistakes_in_one_long_line_take_memory_for_a_few() -> None:
    out = bounded(
        "from deconv_ir.formats.openvino_xml.entry import read_bytes\n"
        "data = b'<net version=\"11\"><layers/><edges>' + b'<edge/>' * 2_000_000\n"
        "data += b'</edges></net>'\n"
        "print(len(read_bytes(data)[1]))"
    )
    assert out == "10001\n"


def test_lines_are_counted_without_a_list_of_them() -> None:
    out = bounded(
        "from deconv_ir.formats.openvino_xml.text import XMLText\n"
        "xml = XMLText(b'<net>' + b'\\n' * 40_000_000 + b'</net>')\n"
        "print(xml.position(len(xml.text) - 1), xml.line_text(40_000_001))",
        320 * MIB,
    )
    assert out == "(40000001, 6) </net>\n"


@pytest.mark.parametrize("text", ["<net>\na\r\nb\n</net>", "\ufeff<net>\n\n</net>\n"])
def test_positions_are_those_of_the_lines(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in (1, 2, 3, 7):
        monkeypatch.setattr("deconv_ir.formats.openvino_xml.text.BLOCK", block)
        xml = XMLText(text.encode())
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            assert xml.line_text(number) == line.rstrip("\r").lstrip("\ufeff")
        for offset in range(text.startswith("\ufeff"), len(text)):
            before = text[:offset].lstrip("\ufeff")
            line = before.count("\n") + 1
            assert xml.position(offset) == (line, len(before) - before.rfind("\n"))


def test_messages_are_one_line_of_bounded_length(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    name = "x&#10;\u009b31m" + "y" * 5000
    path.write_text(NET.format(f'<layer id="1" name="{name}" type="A"/>' * 2, ""))
    with pytest.raises(deconv_ir.DeconvError) as caught:
        deconv_ir.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert "\u009b" not in message
    assert "x\\n\\x9b31m" in message
    assert len(message) < 2000
