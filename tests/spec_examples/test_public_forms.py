"""Forms of OpenVINO's public pages that were called wrong, or not seen; and what `fix` leaves."""

from __future__ import annotations

import html
import json

import pytest
from spec_forms import XML

from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.notebook import Notebook
from deconv_ir.spec_examples.rules import Judgement, Verdict
from deconv_ir.spec_examples.text import Document

from .test_graphs import page as page_of_graphs
from .test_graphs import up
from .test_other_operations import layer, page

RIGHT, WRONG, UNTOLD = Verdict.RIGHT, Verdict.WRONG, Verdict.UNTOLD


def judge(text: str, name: str = "page.md") -> list[Judgement]:
    return check_document(Document(text.encode(), name))


PUBLIC = [
    # The comments beside output dims are formulas: data.shape[0] is a subscript.
    ("DepthToSpace-1", 'block_size="2" mode="blocks_first"', "5,28,2,3",
     "5#data.shape[0],7#data.shape[1] / (block_size ^ 2),4#data.shape[2] * block_size,6"),
    ("SpaceToDepth-1", 'block_size="2" mode="blocks_first"', "5,7,4,6",
     "5#data.shape[0],28#data.shape[1] * (block_size ^ 2),2,3#data.shape[3] / block_size"),
    ("BatchToSpace-2", "",
     "10#batch,2;2#block_shape value: [1_ 5];2#crops_begin value: [0_ 2];2#crops_end value: [0_ 0]",
     "2#data.shape[0] / (block_shape.shape[0] * block_shape.shape[1]),"
     "8#data.shape[1] * block_shape.shape[1] - crops_begin[1] - crops_end[1]"),
    ("SpaceToBatch-2", "",
     "2,6,10,3,3;5#block_shape value: [1_ 2_ 4_ 3_ 1];5#pads_begin value: [0_ 0_ 1_ 0_ 0];"
     "5#pads_end value: [0_ 0_ 1_ 0_ 0]",
     "48#data.shape[0] * block_shape.shape[0] *... * block_shape.shape[4],3,3,1,3"),
    # The page of version 1 has the data first; files have them third.
    ("BatchNormInference-1", 'epsilon="9.99e-06"', "10,128;128;128;128;128", "10,128"),
    ("BatchNormInference-5", 'epsilon="9.99e-06"', "1,3,224,224;3;3;3;3", "1,3,224,224"),
    ("Reshape-1", 'special_zero="true"', "2,5,5,24;3#The tensor contains 3 elements: 0_ -1_ 4",
     "2,150,4"),
    ("ReverseSequence-1", 'batch_axis="0" seq_axis="1"',
     "4#batch_axis,10#seq_axis,100,200;4#seq_lengths value: [2_ 4_ 8_ 10]", "4,10,100,200"),
    ("Tile-1", "", "2,3,4;3#[1_ 2_ 3]", "2,6,12"),
    ("LSTMCell-4", 'hidden_size="128"', "1,16;1,128;1,128;512,16;512,128;512", "1,128;1,128"),
    ("ExperimentalDetectronROIFeatureExtractor-6",
     'aligned="false" output_size="7" pyramid_scales="4,8" sampling_ratio="2"',
     "1000,4;1,256,200,336;1,256,100,168", "1000,256,7,7"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "inputs", "output"), PUBLIC, ids=lambda v: v)
def test_right_examples(name: str, data: str, inputs: str, output: str) -> None:
    text = page(name, layer(name.partition("-")[0], data, inputs, output))
    if not data:
        text = text.replace("    <data />\n", "")
    (judgement,) = judge(text)
    assert judgement.verdict is RIGHT, judgement.reason
    first = output.partition(";")[0].split(",")[0].partition("#")[0]
    at = text.index(f"<dim>{first}</dim>", text.index("<output>"))
    (wrong,) = judge(f"{text[:at]}<dim>77</dim>{text[at:].partition('</dim>')[2]}")
    assert wrong.verdict is WRONG


def test_values_for_a_tensor_are_no_value() -> None:
    """A comment that names an input of several axes is no statement of its value."""
    text = layer("ReLU", "", "2,3", "2#data = 5,3").replace("    <data />\n", "")
    (judgement,) = judge(text)
    assert judgement.verdict is RIGHT


BODY = """<body>
<layers>
    <layer id="0" type="Parameter" ...>
        <output><port id="0" precision="FP32"><dim>1</dim><dim>{dim}</dim></port></output>
    </layer>
    <layer id="1" name="r" type="ReLU" version="opset1">
        <input><port id="0"><dim>1</dim><dim>256</dim></port></input>
        <output><port id="1"><dim>1</dim><dim>256</dim></port></output>
    </layer>
</layers>
</body>"""


@pytest.mark.parametrize("kind", ["If", "TensorIterator", "Loop"])
def test_layers_with_bodies(kind: str) -> None:
    """Their outputs follow from bodies, whose layers are judged one by one."""
    body = BODY.format(dim=256)
    if kind == "If":
        body = body.replace("body>", "then_body>") + body.replace("body>", "else_body>")
    ends = '<input><port id="0"/></input><output><port id="1"><dim>1</dim></port></output>'
    text = f'<layer type="{kind}" ...>\n{ends}\n{body}\n</layer>\n'
    found = judge(f"```xml\n{text}```\n")
    assert [j.verdict for j in found] == [UNTOLD, *[UNTOLD, RIGHT] * (2 if kind == "If" else 1)]
    assert "bodies" in found[0].reason


@pytest.mark.parametrize(
    ("tag", "verdict", "rule"),
    [
        ('<layer ... type="Reshape" ...>', UNTOLD, "example-untold"),
        ('<layer id="1" type="Reshape">', WRONG, "attribute-missing"),
        ('<layer ... type="Reshape" ...><data/>', WRONG, "attribute-missing"),
    ],
)
def test_data_that_the_tag_leaves_out(tag: str, verdict: Verdict, rule: str) -> None:
    text = layer("Reshape", "", "2,6;2#[3_ 4]", "3,4").replace("    <data />\n", "")
    first = text.partition("\n")[0]
    (judgement,) = judge(text.replace(first, tag))
    assert judgement.verdict is verdict
    assert judgement.findings[0].rule == rule


@pytest.mark.parametrize(
    ("printed", "meant"), [("-58", "7"), ("1O", "7"), ("7l", "7"), ("\u22127", "7"), ("7OO", "7")]
)
def test_printed_dims_that_are_none(printed: str, meant: str) -> None:
    text = XML.replace(f"<dim>{meant}</dim>", f"<dim>{printed}</dim>")
    (judgement,) = judge(text)
    assert judgement.verdict is WRONG
    assert [f.code for f in judgement.findings] == ["SE107"]
    # The digits agree with the computed dim, or it may be another number.
    is_proven = meant in (printed, "".join(filter(str.isdigit, printed)))
    fixed = fix_document(Document(text.encode()))
    assert fixed.data.decode() == (XML if is_proven else text)
    assert fix_document(Document(text.encode()), unsafe=True).data.decode() == XML


@pytest.mark.parametrize("printed", ["-1", "H", "2N", "O1", "?"])
def test_printed_symbols(printed: str) -> None:
    (judgement,) = judge(XML.replace("<dim>7</dim>", f"<dim>{printed}</dim>"))
    assert judgement.verdict is UNTOLD


@pytest.mark.parametrize(
    ("kind", "precision", "codes"),
    [
        ("Convolution", "I64", ["SE108"]),
        ("Convolution", "FP16", []),
        ("Convolution", "I32", []),  # an integer convolution
        ("BatchNormInference", "I64", ["SE102"]),  # its inputs are of floating point
    ],
)
def test_printed_type_without_types_of_inputs(kind: str, precision: str, codes: list[str]) -> None:
    if kind == "Convolution":
        data = 'strides="1" dilations="1" pads_begin="0" pads_end="0"'
        text = layer(kind, data, "1,2,5;3,2,1", "1,3,5")
    else:
        text = layer(kind, 'epsilon="1e-5"', "10,128;128;128;128;128", "10,128")
    start, output, end = text.partition("<output>")
    text = start + output + end.replace("<port id", f'<port precision="{precision}" id', 1)
    (judgement,) = judge(text)
    assert [f.code for f in judgement.findings] == codes


GRAPH = json.dumps(up(5), indent=1)


@pytest.mark.parametrize("quote", ["&quot;", "&#34;", "&#x22;", '<span class="p">"</span>'])
def test_graphs_in_html(quote: str) -> None:
    """A wrong dim is found in its line of the file."""
    body = html.escape(GRAPH, quote=False).replace('"', quote)
    text = f"<html>\n<p>Words.</p>\n<pre><code>{body}</code></pre>\n</html>\n"
    (judgement,) = judge(text, "page.html")
    (finding,) = judgement.findings
    assert (judgement.verdict, finding.rule) == (WRONG, "declared-dims")
    line = next(i for i, part in enumerate(GRAPH.split("\n")) if part.strip() == "5,")
    assert finding.line == 3 + line
    assert [j.verdict for j in judge(text.replace("5,\n", "4,\n"), "page.html")] == [RIGHT]


def test_graphs_in_notebooks() -> None:
    """Messages name the cell and its line."""
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "Words."]},
        {"cell_type": "markdown", "metadata": {}, "source": f"```json\n{GRAPH}\n```"},
    ]
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (judgement,) = check_document(Notebook(json.dumps(content, indent=1).encode(), "a.ipynb"))
    (finding,) = judgement.findings
    assert (judgement.verdict, finding.rule) == (WRONG, "declared-dims")
    line = next(i for i, part in enumerate(GRAPH.split("\n")) if part.strip() == "5,")
    assert finding.message.startswith(f"cell 2, line {2 + line}: output 0, axis 2: declared 5")


def test_graphs_in_comments_are_not_read() -> None:
    right, wrong = page_of_graphs(up(4)), page_of_graphs(up(5))
    assert [j.verdict for j in judge(f"<!-- {wrong} -->\n{right}")] == [RIGHT]
    assert judge(f"x <!-- {GRAPH} --> y") == []
    assert [j.verdict for j in judge(f"<!-- lost its end\n{wrong}")] == [WRONG]


@pytest.mark.parametrize(
    ("old", "new", "code", "hint"),
    [
        ('"strides"', '"stride"', "SE104", "'strides'"),
        ('"dilations"', '"dilation"', "SE104", "'dilations'"),
        ('"ConvTranspose"', '"ConvTransposed"', "SE106", "'ConvTranspose'"),
    ],
)
def test_misspelt_words_of_graphs(old: str, new: str, code: str, hint: str) -> None:
    text = page_of_graphs(up(4))
    assert old in text
    (judgement,) = judge(text.replace(old, new))
    assert judgement.verdict is WRONG
    found = next(f for f in judgement.findings if f.code == code)
    assert hint in (found.hint or "")


@pytest.mark.parametrize("end", [-3, -40])
def test_graphs_that_are_cut_short(end: int) -> None:
    text = f"Words.\n\n```json\n{GRAPH[:end]}\n```\n\n{page_of_graphs(up(4))}"
    assert [j.verdict for j in judge(text)] == [WRONG, RIGHT]


DATA = 'strides="{s}" dilations="1,1" pads_begin="{p}" pads_end="{p}" auto_pad="explicit"'


@pytest.mark.parametrize(
    ("data", "inputs", "output", "words"),
    [
        # One changed number explains several wrong dims, or makes the numbers equal.
        (DATA.format(s="1,1", p="1,1"), "1,3,56,56;8,3,3,3", "1,8,28,28", 'strides="2,2"'),
        (DATA.format(s="2,1", p="1,1"), "1,3,56,56;8,3,3,3", "1,8,28,28", 'strides="2,2"'),
        (DATA.format(s="2,2", p="0,0"), "1,3,57,57;8,3,3,3", "1,8,29,29", 'pads_begin="2,2"'),
        (
            DATA.format(s="2,2", p="1,1"),
            "1,3,56,65;8,3,3,3",
            "1,8,28,28",
            "a dim 56 on axis 3 of input 0",
        ),
    ],
)
def test_fix_leaves_dims_that_another_number_explains(
    data: str, inputs: str, output: str, words: str
) -> None:
    text = layer("Convolution", data, inputs, output)
    (judgement,) = judge(text)
    assert judgement.verdict is WRONG
    assert f"{words} would give the printed dims" in judgement.reason
    fixed = fix_document(Document(text.encode()))
    assert (fixed.data.decode(), fixed.edits, len(fixed.left)) == (text, 0, 1)


def test_fix_leaves_dims_that_a_comment_explains() -> None:
    text = XML.replace(
        "    </input>",
        '        <port id="2">\n            <dim>2</dim> <!-- [450, 45] -->\n        </port>\n'
        "    </input>",
    )
    text = text.replace(">7<", ">450<").replace(">11<", ">450<")
    (judgement,) = judge(text)
    assert "the value [450,450] of input 2 would give" in judgement.reason
    assert fix_document(Document(text.encode())).edits == 0


def test_fix_writes_one_wrong_dim() -> None:
    """The other dims confirm the attributes: a typo."""
    right = layer("Convolution", DATA.format(s="2,2", p="1,1"), "1,3,56,56;8,3,3,3", "1,8,28,28")
    text = right.replace("<dim>28</dim>", "<dim>29</dim>", 1)
    assert fix_document(Document(text.encode())).data.decode() == right
