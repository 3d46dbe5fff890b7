"""Examples are found in every form of document, whole or damaged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from spec_forms import FORMS, SHAPE, XML, curly, pygments

from deconv_ir.errors import DeconvError
from deconv_ir.formats.files import read_input
from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.notebook import read_document
from deconv_ir.spec_examples.rules import Verdict
from deconv_ir.spec_examples.scanner import Example, scan
from deconv_ir.spec_examples.text import Document


def document(text: str) -> Document:
    return Document(text.encode(), "doc")


def only(text: str) -> Example:
    (example,) = scan(document(text))
    return example


def line_of(text: str, position: int) -> int:
    return len(re.findall(r"\r\n|\r|\n", text[:position])) + 1


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_right_in_every_form(text: str) -> None:
    (judgement,) = check_document(document(text))
    assert judgement.verdict is Verdict.RIGHT, judgement.reason
    assert judgement.computed == (SHAPE,)
    assert judgement.findings == ()
    start = text.replace("&lt;", "<").find("<layer")
    if start >= 0:
        assert judgement.example.line == line_of(text.replace("&lt;", "<"), start)


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_wrong_in_every_form_and_put_right(text: str) -> None:
    assert text.count("11") == 1
    changed = text.replace("11", "1024")
    (judgement,) = check_document(document(changed))
    assert [(f.line, f.actual, f.expected) for f in judgement.findings] == [
        (line_of(changed, changed.index("1024")), 1024, 11)
    ]
    assert fix_document(document(changed), unsafe=True).data == text.encode()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_encodings_are_kept(encoding: str) -> None:
    text = f"Größe \N{EN DASH} naïve\n{XML}" if encoding != "latin-1" else f"Größe: naïve\n{XML}"
    original = text.encode(encoding)
    changed = text.replace("11", "12").encode(encoding)
    fixed = fix_document(Document(changed, "doc"), unsafe=True)
    assert fixed.data == original
    assert fixed.edits == 1


def test_utf16_of_either_order() -> None:
    for mark, codec in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        changed = mark + XML.replace("11", "12").encode(codec)
        assert fix_document(Document(changed), unsafe=True).data == mark + XML.encode(codec)


@pytest.mark.parametrize("data", [b"\0\1\2", b"text\0", b"\xff\xfea"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(DeconvError, match="not a text file"):
        Document(data, "doc")


def test_several_roots_in_one_block() -> None:
    text = f"```xml\n{XML}{XML.replace('11', '13')}{XML}```\n"
    verdicts = [j.verdict for j in check_document(document(text))]
    assert verdicts == [Verdict.RIGHT, Verdict.WRONG, Verdict.RIGHT]


def test_layers_of_a_whole_net() -> None:
    net = (
        '<net name="n" version="11"><layers>\n'
        '<layer id="0" name="x" type="Parameter" version="opset1">'
        '<data shape="1,20,4,5" element_type="f32"/>'
        '<output><port id="0" precision="FP32">'
        "<dim>1</dim><dim>20</dim><dim>4</dim><dim>5</dim></port></output></layer>\n"
        f'{XML}<layer id="6" name="y" type="Result" version="opset1">'
        '<input><port id="0"><dim>1</dim></port></input></layer>'
        '</layers><edges><edge from-layer="0"/></edges></net>\n'
    )
    examples = scan(document(net))
    assert [(e.type, e.line) for e in examples] == [
        ("Parameter", 2),
        ("ConvolutionBackpropData", 3),
        ("Result", 28),
    ]
    assert all(j.verdict is Verdict.RIGHT for j in check_document(document(net)))


def test_a_document_may_mix_plain_and_escaped_examples() -> None:
    text = f"{XML}\n<pre>\n{pygments(XML)}</pre>\n{XML}"
    examples = scan(document(text))
    assert [e.line for e in examples] == [1, 28, 54]
    assert [len(e.inputs) for e in examples] == [2, 2, 2]


def test_mentions_in_prose_are_no_examples() -> None:
    assert scan(document("The `<layer>` element, `<layer id=...>`, and a <layers> list.\n")) == []


def test_examples_in_comments_are_seen_by_no_reader() -> None:
    assert scan(document(f"<!--\n{XML}-->\nText\n")) == []
    # A comment without its end hides no example.
    assert len(scan(document(f"<!-- lost\n{XML}<!-- found -->\n"))) == 1


def test_unclosed_examples_end_where_the_next_begins() -> None:
    text = XML.replace("</layer>\n", "") * 2
    first, second = scan(document(text))
    assert [len(first.outputs), len(second.outputs)] == [1, 1]


def test_comments_belong_to_the_port_they_stand_in_beside_or_before() -> None:
    example = only(
        """<layer type="X">
        <input>
            <port id="0"> <!-- in start -->
                <dim>1</dim> <!-- after dim -->
            </port> <!-- after port -->
            <!-- before -->
            <port id="1"/> <!-- beside empty -->
            <!-- at the end -->
        </input>
        <!-- outside -->
        <output><port id="2"><dim>1<!-- within --></dim></port></output>
        </layer>"""
    )
    first, second = example.inputs
    assert first.comments == [" in start ", " after dim ", " after port "]
    assert second.comments == [" before ", " beside empty "]
    assert example.outputs[0].comments == [" within "]
    assert example.comments == [" at the end ", " outside "]


def test_attributes_in_all_their_spellings() -> None:
    example = only(
        '<layer id=5 name=\'a "b" > c\' type=\u201cX\u201d version = "opset&#49;">'
        '<data a.b="1, 1", c=\'&quot;\' d="x" d="y" /><output><port/></output></layer>'
    )
    assert example.attributes == {
        "id": "5",
        "name": 'a "b" > c',
        "type": "X",
        "version": "opset1",
    }
    assert example.data == {"a.b": "1, 1", "c": '"', "d": "x"}
    assert not example.data_elided


@pytest.mark.parametrize(
    ("data", "elided"),
    [
        ('<data a="1" ... />', True),
        ('<data a="1" \u2026/>', True),
        ("<data ...>", True),
        ('<data a="..."/>', False),
        ("...", True),
    ],
)
def test_elided_attributes(data: str, elided: bool) -> None:
    text = f'<layer type="X">{data}<output><port><dim>1</dim></port></output></layer>'
    assert only(text).data_elided is elided


@pytest.mark.parametrize("dims", ["<dim>1</dim>...", "<dim>1</dim><dim>...</dim>", "\u2026"])
def test_elided_dims(dims: str) -> None:
    example = only(f'<layer type="X"><output><port>{dims}</port></output></layer>')
    assert example.outputs[0].elided


@pytest.mark.parametrize(
    ("body", "elided"),
    [
        ("<input>...</input><output><port/></output>", True),
        ("<input><port/></input><output><port/>...</output>", True),
        ("<data/>...", True),
        ("<input><port/></input><output><port/></output>...", False),
    ],
)
def test_elided_ports(body: str, elided: bool) -> None:
    assert only(f'<layer type="X">{body}</layer>').ports_elided is elided


def test_only_the_document_tells_the_version() -> None:
    text = (
        "**Versioned name** : *MaxPool-1*\n<layer type='MaxPool'/>\n"
        "<strong>Versioned name</strong>: <em>MaxPool-8</em>\n<layer type='MaxPool'/>\n"
        "<layer type='AvgPool'/>\n"
    )
    assert [e.versioned for e in scan(document(text))] == ["1", "8", None]


def test_typographic_comment() -> None:
    text = XML.replace("<dim>20</dim>", "<dim>20</dim> <!-- channels -->", 1)
    (judgement,) = check_document(document(curly(text)))
    assert judgement.verdict is Verdict.RIGHT
    assert judgement.example.inputs[0].comments == [" channels "]


# The scanner must be linear on any document.  Careless patterns are cubic or quadratic on each of
# these, and would not end at this size.
HOSTILE = {
    "open comments": "<layer type='X'>" + "<!--" * 200_000,
    "open comments in HTML": "&lt;" + "<!--" * 200_000,
    "lines of open comments": "\n<!--" * 200_000 + "-->",
    "open tags": "<layer " * 50_000,
    "open escaped tags": "&lt;layer " * 50_000,
    "one long word": "<layer type='X'><data " + "a" * 1_000_000 + "/>",
    "open quotes": "<layer type='X'><data " + 'a="' * 300_000 + "/>",
    "open brackets": "<" * 1_000_000,
    "ampersands": "&lt;layer" + "&" * 1_000_000,
    "dims": "<layer type='X'><output><port>" + "<dim>1" * 50_000,
    "comments on one line": "<layer type='X'><input><port/>" + "<!--1-->" * 200_000,
    "spaces in a tag": "<layer" + " " * 1_000_000,
    "versions": "Versioned name" * 100_000 + " " * 100_000,
    "fences": "<layer type='X'>" + "\n``" * 300_000,
    "numbers in a comment": "<layer type='X'><input><port><!--" + "1," * 9_000 + "--><dim>1",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_documents_are_scanned_in_linear_time(text: str) -> None:
    for judgement in check_document(document(text)):
        assert judgement.verdict is Verdict.UNTOLD


def test_documents_must_be_regular_files_of_bounded_size(tmp_path: Path) -> None:
    with pytest.raises(DeconvError, match="cannot read the file: it is a directory"):
        read_document(tmp_path)
    path = tmp_path / "doc.md"
    with pytest.raises(DeconvError, match="No such file"):
        read_document(path)
    path.write_bytes(b"x" * 100)
    assert len(read_document(path).text) == 100
    with pytest.raises(DeconvError, match="100 bytes, more than the limit of 99"):
        read_input(path, limit=99)
