"""Examples of other operations, in the form of OpenVINO's public pages.

Attributes of `<layer>` are left out with ``...``, layers follow one another in one block, some are
never closed, and port ids of outputs go on after the inputs' or repeat them.
"""

from __future__ import annotations

import textwrap

import pytest

from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.rules import Judgement, Verdict
from deconv_ir.spec_examples.text import Document


def ports(shapes: str, first: int, precision: str = "") -> str:
    lines = []
    for i, shape in enumerate(shapes.split(";"), start=first):
        lines.append(f'<port id="{i}"{precision}>')
        for dim in shape.split(","):
            number, _, comment = dim.partition("#")
            note = f" <!-- {comment.replace('_', ',')} -->" if comment else ""
            lines.append(f"    <dim>{number}</dim>{note}")
        lines.append("</port>")
    return textwrap.indent("\n".join(lines), " " * 8)


def layer(kind: str, data: str, inputs: str, outputs: str, *, closed: bool = True) -> str:
    count = len(inputs.split(";"))
    end = "</layer>\n" if closed else "\n"
    return (
        f'<layer ... type="{kind}" ... >\n    <data {data}/>\n    <input>\n{ports(inputs, 0)}\n'
        f"    </input>\n    <output>\n{ports(outputs, count)}\n    </output>\n{end}"
    )


def page(versioned: str, *layers: str) -> str:
    blocks = textwrap.indent("\n".join(layers), "   ")
    return (
        f".. {{#openvino_docs_ops}}\n\n{versioned}\n{'=' * len(versioned)}\n\n"
        f"**Versioned name**: *{versioned}*\n\n**Examples**\n\n"
        f".. code-block:: xml\n   :force:\n\n{blocks}\n\n"
    )


def judge(text: str) -> list[Judgement]:
    return check_document(Document(text.encode(), "page.rst"))


ORIGINAL = "1,3,32,32"
SAME = 'auto_pad="same_upper" kernel="{k},{k}" pads_begin="0,0" pads_end="1,1" strides="2,2"{more}'

# The three pages state, under same_upper with stride 2, an output of the input's 32 x 32;
# ceil(32 / 2) = 16 is right.
POOLS = [
    ("AvgPool-1", SAME.format(k=5, more=' exclude-pad="true"'), 1),
    ("MaxPool-1", SAME.format(k=2, more=""), 1),
    ("MaxPool-8", SAME.format(k=2, more=""), 2),
]


@pytest.mark.parametrize(("name", "data", "outputs"), POOLS, ids=[p[0] for p in POOLS])
def test_pages_that_declare_32_where_16_is_right(name: str, data: str, outputs: int) -> None:
    kind = name.partition("-")[0]
    explicit = 'auto_pad="explicit" kernel="5,5" pads_begin="1,1" pads_end="1,1" strides="3,3"'
    if kind == "AvgPool":
        explicit += ' exclude-pad="false"'
    right = layer(kind, explicit, ORIGINAL, ";".join(["1,3,10,10"] * outputs))
    wrong = layer(kind, data, ORIGINAL, ";".join([ORIGINAL] * outputs))
    text = page(name, right, wrong, right)
    verdicts = [j.verdict for j in judge(text)]
    assert verdicts == [Verdict.RIGHT, Verdict.WRONG, Verdict.RIGHT]
    findings = judge(text)[1].findings
    lines = text.splitlines()
    assert [(lines[f.line - 1].strip(), f.actual, f.expected) for f in findings if f.line] == [
        ("<dim>32</dim>", 32, 16)
    ] * (2 * outputs)
    assert len({f.line for f in findings}) == 2 * outputs
    assert "ceil(32 / 2) = 16" in findings[0].message
    # With strides of 1, all printed dims are right, so a person decides.
    assert all('strides="1,1" would give the printed dims' in f.message for f in findings)
    fixed = fix_document(Document(text.encode(), "page.rst"), unsafe=True)
    assert (fixed.data.decode(), len(fixed.left)) == (text, 1)


def test_the_versioned_name_chooses_the_version() -> None:
    """MaxPool-1 has one output, MaxPool-8 two; the printed layers do not state a version."""
    data = 'kernel="2,2" pads_begin="0,0" pads_end="0,0" strides="2,2"'
    both = layer("MaxPool", data, ORIGINAL, "1,3,16,16;1,3,16,16")
    (older,) = judge(page("MaxPool-1", both))
    assert older.verdict is Verdict.WRONG
    assert "MaxPool has 1 output, found 2 declared" in older.reason
    (newer,) = judge(page("MaxPool-8", both))
    assert newer.verdict is Verdict.RIGHT


CONVOLUTION = 'dilations="{d}" pads_begin="2" pads_end="2" strides="1" auto_pad="explicit"'
STRIDED = 'strides="2,2" dilations="1,1"'
UNPADDED = 'pads_begin="0" pads_end="0"'

RIGHT = [
    ("Convolution-1", CONVOLUTION.format(d=1), "1,5,128;16,5,4", "1,16,129"),
    (
        "Convolution-1",
        f'{STRIDED} auto_pad="same_upper"',
        "1,3,33,32;8,3,3,3",
        "1,8,17,16",
    ),
    (
        "Convolution-1",
        f'{STRIDED} auto_pad="valid"',
        "1,3,33,32;8,3,3,3",
        "1,8,16,15",
    ),
    ("GroupConvolution-1", CONVOLUTION.format(d=1), "1,12,224;4,1,3,5", "1,4,224"),
    ("GroupConvolution-1", CONVOLUTION.format(d=3), "1,12,224;4,1,3,5", "1,4,216"),
    (
        "MaxPool-14",
        f'kernel="3" strides="2" {UNPADDED} rounding_type="ceil"',
        "1,1,6",
        "1,1,3;1,1,3",
    ),
    (
        "AvgPool-1",
        f'kernel="2" strides="1" {UNPADDED} exclude-pad="true"',
        "1,1,6",
        "1,1,5",
    ),
    ("Add-1", 'auto_broadcast="numpy"', "8,1,6,1;7,1,5", "8,7,6,5"),
    ("MatMul-1", 'transpose_a="false" transpose_b="true"', "1,1024;1000,1024", "1,1000"),
    ("Concat-1", 'axis="1"', "1,8,50,50;1,16,50,50;1,32,50,50", "1,56,50,50"),
    ("Transpose-1", "", "2,3,4;3#[2_ 0_ 1]", "4,2,3"),
    ("Reshape-1", 'special_zero="true"', "2,5,8,24;4#[0_ -1_ 4_ 0]", "2,10,4,24"),
    ("Squeeze-1", "", "1,3,1,2;2#value [0_ 2]", "3,2"),
    ("Gather-8", 'batch_dims="0"', "6,12,10,24;15,4,20,28;1#[1]", "6,15,4,20,28,10,24"),
    ("ReduceMean-1", 'keep_dims="true"', "6,12,10,24;2#[2_ 3]", "6,12,1,1"),
    ("Pad-1", 'pad_mode="constant"', "1,3,32,40;4#[0_ 5_ 2_ 1];4#[1_ 0_ 3_ 7]", "2,8,37,48"),
    ("SoftMax-1", 'axis="1"', "1,5,3", "1,5,3"),
    ("Broadcast-3", 'mode="numpy"', "16,1,1;4#contains 4 elements: [1_ 16_ 50_ 50]", "1,16,50,50"),
]


@pytest.mark.parametrize(("name", "data", "inputs", "output"), RIGHT)
def test_right_and_then_wrong(name: str, data: str, inputs: str, output: str) -> None:
    kind = name.partition("-")[0]
    (right,) = judge(page(name, layer(kind, data, inputs, output)))
    assert right.verdict is Verdict.RIGHT, right.reason
    first, comma, rest = output.partition(";")
    dims = first.split(",")
    for axis in range(len(dims)):
        changed = ",".join("77" if i == axis else d for i, d in enumerate(dims))
        text = page(name, layer(kind, data, inputs, changed + comma + rest))
        (wrong,) = judge(text)
        (finding,) = wrong.findings
        assert wrong.verdict is Verdict.WRONG
        assert (finding.actual, str(finding.expected)) == (77, dims[axis])
        assert finding.line
        assert text.splitlines()[finding.line - 1].strip() == "<dim>77</dim>"
        fixed = fix_document(Document(text.encode()), unsafe=True)
        assert fixed.data.decode() == page(name, layer(kind, data, inputs, output))


def test_layers_that_are_never_closed() -> None:
    """GroupConvolution-1 prints three such layers; prose with tags and dots stands between them."""
    one = layer(
        "GroupConvolution", CONVOLUTION.format(d=1), "1,12,224;4,1,3,5", "1,4,224", closed=False
    )
    text = page("GroupConvolution-1", f"{one}\n2D, with <tt>X</tt> ...\n", one)
    assert [j.verdict for j in judge(text)] == [Verdict.RIGHT, Verdict.RIGHT]


def test_an_operation_without_a_shape_rule_cannot_be_told() -> None:
    (judgement,) = judge(page("Roll-7", layer("Rolling", "", "3,10", "3,10")))
    assert judgement.verdict is Verdict.UNTOLD
    assert judgement.reason == "no shape rule for Rolling is known"
