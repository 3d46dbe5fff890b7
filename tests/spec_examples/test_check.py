"""The verdict on an example: right, wrong or undecided, with the reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deconv_ir.findings import Severity
from deconv_ir.ir.options import Semantics
from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.rules import RULES, Judgement, Verdict
from deconv_ir.spec_examples.text import Document
from deconv_ir.spec_examples.values import value_in


def port(dims: str, extra: str = "") -> str:
    body = "".join(f"<dim>{d}</dim>" for d in dims.split(",")) if dims else ""
    return f"<port{extra}>{body}</port>"


def complete(kind: str, data: str) -> str:
    """Add the attributes that the documents of convolutions require."""
    strides = re.search('strides="([^"]*)"', data)
    if "Conv" not in kind or strides is None:
        return data
    axes = strides[1].count(",") + 1
    required = {"pads_begin": "0", "pads_end": "0", "dilations": "1"}
    more = [
        f'{name}="{",".join([value] * axes)}"'
        for name, value in required.items()
        if name not in data
    ]
    return " ".join([data, *more])


def layer(
    inputs: str,
    outputs: str,
    data: str = 'strides="2,2"',
    kind: str = "ConvolutionBackpropData",
    rest: str = "",
) -> str:
    return (
        f'<layer name="up" type="{kind}"{rest}>\n<data {complete(kind, data)}/>\n'
        f"<input>{inputs}</input>\n<output>{outputs}</output>\n</layer>\n"
    )


def judge(text: str, semantics: Semantics = Semantics.SPEC) -> Judgement:
    (judgement,) = check_document(Document(text.encode(), "doc"), semantics)
    return judgement


DATA, FILTER, OUTPUT = port("1,4,5,6"), port("4,3,3,3"), port("1,3,11,13")


# Comments of OpenVINO's documents (ConvolutionBackpropData-1, Reshape-1, Broadcast-3,
# IDFT-7, Roll-7, Multinomial-13, Inverse-14) and equivalent ones.
@pytest.mark.parametrize(
    ("comment", "value"),
    [
        (" output_shape value is: [450, 450]", (450, 450)),
        ("The tensor contains 2 elements: 0, 4 ", (0, 4)),
        ("The tensor contains 4 elements: [1, 50, 50, 16] ", (1, 50, 50, 16)),
        (" axes input contains [1, 2] ", (1, 2)),
        (" [1, 2] ", (1, 2)),
        (" num_samples value: 10 ", (10,)),
        (" {0, 2} ", (0, 2)),
        (" output_shape = (450 450) ", (450, 450)),
        (" output_shape is 450x450 ", (450, 450)),
        (" output_shape: 450, 450. ", (450, 450)),
        (" values 450;451", (450, 451)),
        (" axis = -1 ", (-1,)),
        (" axis: \N{MINUS SIGN}1 ", (-1,)),
        ("[450, 450,]", (450, 450)),
        (" batch size of 2 ", None),
        (" matrix size of 3x3 ", None),
        (" N1 ", None),
        (" N1 = 2 and more ", None),
        (" shifting along specified axes ", None),
        (" [[-1, 1, 2], [50, 1, 21]] ", None),
        (" from [1, 2] to [3, 4] ", None),
        (" {1.0, 2.0} ", (1.0, 2.0)),
        ("The values in this input are [0.5, 2.0] ", (0.5, 2.0)),
        (" scales: 2, 0.5. ", (2, 0.5)),
        (" eps = 1e-5 ", (1e-5,)),
        (" [2., .5, -.25, 5e-1] ", (2.0, 0.5, -0.25, 0.5)),
        (" scales = {2.0f, 0.5f} ", (2.0, 0.5)),
        (" scales = 0.5f ", (0.5,)),
        (" axes: 1, 2. ", (1, 2)),
        (" [0.5ff] ", None),
        (" [1..2] ", None),
        (" opset 1.x ", None),
        (" [1, 2, ...] ", None),
        (" value: [H, W] ", None),
        ("", None),
    ],
)
def test_values_in_comments(comment: str, value: tuple[float, ...] | None) -> None:
    assert value_in(comment) == value


COMMENT = "<!-- output_shape value is: [450, 450]-->"


@pytest.mark.parametrize(
    "third",
    [
        f'<port id="2"><dim>2</dim> {COMMENT}\n</port>',
        f'<port id="2">{COMMENT}<dim>2</dim></port>',
        f'<port id="2"><dim>2</dim></port> {COMMENT}\n',
        f'{COMMENT}\n<port id="2"><dim>2</dim></port>',
        f'\n{COMMENT}\n<port id="1"><dim>2</dim></port>',
        f'<port id="2"><dim>2</dim></port>\n{COMMENT}\n',
        f'<port id="2"/> {COMMENT}',
        "<port><dim>2</dim> <!-- 450 450 --> <!-- [450, 450] --></port>",
    ],
)
def test_output_shape_from_a_comment(third: str) -> None:
    """S2, 'output_shape': the place and the words of the comment vary."""
    right = judge(layer(DATA + FILTER + third, port("1,3,450,450")))
    assert (right.verdict, right.computed) == (Verdict.RIGHT, ((1, 3, 450, 450),)), right.reason
    wrong = judge(layer(DATA + FILTER + third, port("1,3,450,451")))
    assert wrong.verdict is Verdict.WRONG
    assert "output 0, axis 3: declared 451, computed 450: Y = output_shape = 450" in wrong.reason


def test_output_shape_named_in_a_comment_elsewhere() -> None:
    text = layer(DATA + FILTER + port("2"), port("1,3,450,450"))
    text = text.replace("</layer>", f"{COMMENT}\n</layer>")
    assert judge(text).verdict is Verdict.RIGHT
    assert judge(text.replace("output_shape value", "the value")).verdict is Verdict.UNTOLD


def test_profiles_that_differ_are_told_and_follow_the_semantics() -> None:
    text = layer(DATA + FILTER + f"<port><dim>2</dim>{COMMENT}</port>", port("1,3,450,450"))
    for semantics in Semantics:
        judgement = judge(text, semantics)
        (finding,) = judgement.findings
        assert (finding.rule, finding.severity) == ("profiles-differ", Severity.INFO)
        used = "openvino" if semantics is Semantics.OPENVINO else "spec"
        assert f"this run uses {used}" in finding.message


WRONG = [
    pytest.param(
        layer(DATA + FILTER, port("1,3,11,12")),
        [("declared-dims", "output 0, axis 3: declared 12, computed 13: Y = ", 4)],
        id="spatial dim",
    ),
    pytest.param(
        layer(DATA + FILTER, port("2,3,11,13")),
        [("declared-dims", "output 0, axis 0: declared 2, computed 1: N of data = 1", 4)],
        id="batch",
    ),
    pytest.param(
        layer(DATA + FILTER, port("1,4,11,13")),
        [("declared-dims", "output 0, axis 1: declared 4, computed 3: C_OUTPUT", 4)],
        id="channels",
    ),
    pytest.param(
        layer(DATA + FILTER, port("7,3,0,13")),
        [
            ("declared-dims", "output 0, axis 0: declared 7, computed 1", 4),
            ("declared-dims", "output 0, axis 2: declared 0, computed 11", 4),
        ],
        id="two dims",
    ),
    pytest.param(
        layer(DATA + FILTER, port("1,3,11")),
        [
            (
                "declared-dims",
                "output 0 declares rank 3 [1,3,11], but rank 4 [1,3,11,13] is computed",
                4,
            )
        ],
        id="a dim is missing",
    ),
    pytest.param(
        layer(DATA + FILTER, port("1,3,11,13,1")),
        [("declared-dims", "output 0 declares rank 5 [1,3,11,13,1], but rank 4", 4)],
        id="a dim too many",
    ),
    pytest.param(
        layer(DATA + FILTER, OUTPUT + port("1,3,11,13")),
        [("output-count", "ConvolutionBackpropData has 1 output, found 2 declared", 4)],
        id="an output too many",
    ),
    pytest.param(
        layer(DATA + port("5,3,3,3"), OUTPUT),
        [("channels", "channels do not fit: data has 4, filter takes 5", 1)],
        id="inputs that do not fit",
    ),
    pytest.param(
        layer(DATA, OUTPUT),
        [("input-count", "takes 2 to 3 inputs (data, filter, output_shape), found 1", 1)],
        id="an input is missing",
    ),
    pytest.param(
        layer(DATA + FILTER, OUTPUT, 'strides="2,x"'),
        [("attribute-value", "'strides' must be positive whole numbers", 2)],
        id="an attribute that is none",
    ),
    pytest.param(
        layer(DATA + FILTER, OUTPUT, 'strides="2,2" auto_pad="same"'),
        [("attribute-value", "'auto_pad' must be one of", 2)],
        id="an auto_pad that is none",
    ),
    pytest.param(
        layer(DATA + FILTER, OUTPUT, 'strides="2"'),
        [("attribute-length", "strides must have 2 elements", 1)],
        id="an attribute of the wrong length",
    ),
    pytest.param(
        layer(
            port("1,4,5,6", ' precision="FP32"') + FILTER, port("1,3,11,13", ' precision="FP16"')
        ),
        [("declared-type", "output 0 declares precision FP16, but FP32 is computed", 4)],
        id="precision",
    ),
    pytest.param(
        layer(DATA + FILTER + "<port><dim>3</dim><!-- [9, 9] --></port>", OUTPUT),
        [("comment-value", "the comment gives 2 values, the port has 3", 3)],
        id="a comment that does not fit its port",
    ),
    pytest.param(
        layer(port("1,4,?,6") + FILTER, port("1,3,0,13")),
        [("declared-dims", "output 0, axis 2: declared 0, computed 3..", 4)],
        id="a dim that no input can give",
    ),
]


@pytest.mark.parametrize(("text", "expected"), WRONG)
def test_wrong_examples_have_findings(text: str, expected: list[tuple[str, str, int]]) -> None:
    judgement = judge(text)
    assert judgement.verdict is Verdict.WRONG
    assert len(judgement.findings) == len(expected)
    for finding, (rule, message, line) in zip(judgement.findings, expected, strict=True):
        assert (finding.rule, finding.line, finding.severity) == (rule, line, Severity.ERROR)
        assert message in finding.message
        assert finding.file == "doc"
        assert finding.layer is not None
        assert finding.layer.startswith("'up' (ConvolutionBackpropData")


UNDECIDED = [
    ("<layer><output><port><dim>1</dim></port></output></layer>", "the type is left out"),
    (layer(DATA, OUTPUT, kind="Nowhere"), "no shape rule for Nowhere is known"),
    (
        layer(DATA, OUTPUT, kind="Nowhere", rest=' version="opset3"'),
        "no shape rule for Nowhere of opset3 is known",
    ),
    (layer(DATA + FILTER, ""), "no output port is printed"),
    (layer(DATA + FILTER, OUTPUT, "..."), "attributes are left out with '...'"),
    (layer(DATA + "...", OUTPUT), "ports are left out with '...'"),
    (layer(DATA + FILTER, port("1,3,...")), "dims of output 0 are left out (computed [1,3,11,13])"),
    (layer(DATA + FILTER, port("")), "dims of output 0 are left out (computed [1,3,11,13])"),
    (
        layer(DATA + FILTER, port("1,3,H,13")),
        "axis 2 prints 'H', which is not a number (computed 11)",
    ),
    (layer(DATA + FILTER, port("1,3,?,13")), "axis 2: ? is printed, but only 11 can be inferred"),
    (
        layer(port("1,4,H,6") + FILTER, OUTPUT),
        "axis 2: 11 is printed, but only 3.. can be inferred",
    ),
    (
        layer(DATA + FILTER + port("2"), port("1,3,9,9")),
        "no comment states the value of output_shape",
    ),
    (layer(port("...") + port("..."), OUTPUT, "", "Add"), "the rank of output 0 is not known"),
]


@pytest.mark.parametrize(("text", "reason"), UNDECIDED)
def test_undecided_examples_say_why(text: str, reason: str) -> None:
    judgement = judge(text)
    assert judgement.verdict is Verdict.UNTOLD
    assert reason in judgement.reason
    (finding,) = judgement.findings
    assert (finding.rule, finding.severity) == ("example-untold", Severity.INFO)
    assert finding.message == f"undecided: {judgement.reason}"


def test_what_is_known_is_judged_even_where_something_is_not() -> None:
    """The channels are wrong, whatever output_shape is."""
    judgement = judge(layer(DATA + FILTER + port("2"), port("1,4,9,9")))
    assert judgement.verdict is Verdict.WRONG
    assert [f.expected for f in judgement.findings] == [3]


def test_dynamic_dims_are_right_where_nothing_more_is_known() -> None:
    judgement = judge(layer(port("?,4,5,6") + FILTER, port("-1,3,11,13")))
    assert judgement.verdict is Verdict.RIGHT


@pytest.mark.parametrize(
    ("kind", "data", "inputs", "output"),
    [
        # S3: NXC and XOI are the defaults; SAME_UPPER gives stride * X.
        ("ConvTranspose", 'strides="2,2" auto_pad="same_upper"', "1,5,6,4;3,3,7,4", "1,10,12,7"),
        (
            "ConvTranspose",
            'strides="2" data_format="NCX" filter_format="IOX"',
            "1,4,5;4,7,3",
            "1,7,11",
        ),
        ("ConvTranspose", 'strides="1" groups="2"', "1,5,4;3,7,4;14", "1,7,14"),
        # S4: dst_shape is of full rank, in data_format order.
        ("ConvolutionBackwardData", 'strides="2" dst_shape="1,12,7"', "1,5,4;3,7,4", "1,12,7"),
        # S1: the filter is [GROUPS, C_INPUT, C_OUTPUT, K...].
        ("GroupConvolutionBackpropData", 'strides="1"', "1,4,5;2,2,3,3", "1,6,7"),
        ("Add", 'auto_broadcast="numpy"', "1,256,56;256,1", "1,256,56"),
        ("ReLU", "", "256,56", "256,56"),
        ("ShapeOf", "", "2,3,224,224", "4"),
    ],
)
def test_other_operations(kind: str, data: str, inputs: str, output: str) -> None:
    ports = "".join(port(dims) for dims in inputs.split(";"))
    right = judge(layer(ports, port(output), data, kind))
    assert right.verdict is Verdict.RIGHT, right.reason
    wrong = judge(layer(ports, port(f"9{output}"), data, kind))
    assert wrong.verdict is Verdict.WRONG


def test_values_of_other_operations() -> None:
    """OpenVINO Reshape-1, example 1, and its special_zero."""
    shape = "<port><dim>3</dim> <!--The tensor contains 3 elements: 0, -1, 4 --></port>"
    text = layer(port("2,5,8") + shape, port("2,10,4"), 'special_zero="true"', "Reshape")
    assert judge(text).verdict is Verdict.RIGHT
    assert judge(text.replace("<dim>10<", "<dim>11<")).verdict is Verdict.WRONG


SCALED = """
<layer type="Interpolate" version="opset4">
  <data mode="nearest" shape_calculation_mode="scales" coordinate_transformation_mode="half_pixel"/>
  <input>
    <port id="0"><dim>1</dim><dim>2</dim><dim>48</dim><dim>80</dim></port>
    <port id="1"><dim>2</dim> <!--The values in this input are [24, 160] --></port>
    <port id="2"><dim>2</dim> <!--The values in this input are [0.5, 2.0] --></port>
    <port id="3"><dim>2</dim> <!--The values in this input are [2, 3] (axes). --></port>
  </input>
  <output><port id="0"><dim>1</dim><dim>2</dim><dim>24</dim><dim>160</dim></port></output>
</layer>
"""


def test_comments_with_fractions() -> None:
    """The example of OpenVINO's document Interpolate-4: 48 * 0.5 = 24, 80 * 2.0 = 160."""
    right = judge(SCALED)
    assert right.verdict is Verdict.RIGHT
    wrong = judge(SCALED.replace("[0.5, 2.0]", "[0.25, 2]"))
    assert [f.message for f in wrong.findings] == [
        "output 0, axis 2: declared 24, computed 12: floor(48 * 0.25), with pads"
    ]


def test_input_types_that_are_not_printed_are_not_made_up() -> None:
    """Only the output's precision is printed, which must not be assumed for an integer input."""
    shape = "<port><dim>1</dim><!-- [-1] --></port>"
    output = port("80", ' precision="FP32"')
    text = layer(port("2,5,8") + shape, output, 'special_zero="true"', "Reshape")
    assert judge(text).verdict is Verdict.RIGHT


def test_findings_have_codes_and_columns() -> None:
    text = layer(DATA + FILTER, port("1,3,11,12"))
    (finding,) = judge(text).findings
    assert (finding.code, finding.line) == ("SE101", 4)
    column, end = finding.column, finding.end_column
    assert column is not None
    assert end is not None
    assert text.splitlines()[3][column - 1 : end - 1] == "12"
    assert text.splitlines()[3].index(">12<") == column - 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (layer(DATA + FILTER, port("1,3,11")), "SE101"),
        (layer(DATA + port("5,3,3,3"), OUTPUT), "SE103"),
        (layer(DATA + FILTER, OUTPUT, 'strides="x"'), "SE103"),
        (layer(DATA + FILTER, ""), "SE301"),
    ],
)
def test_every_finding_is_filed_under_a_rule(text: str, code: str) -> None:
    (finding,) = judge(text).findings
    assert finding.code == code
    assert finding.severity is RULES[code].severity


def test_the_guide_lists_the_rules() -> None:
    guide = Path(__file__).parents[2] / "docs" / "spec-examples.md"
    listed = re.findall(r"^\| (SE\d+) (\S+) \| (\w+) \|", guide.read_text(), re.MULTILINE)
    assert listed == [(r.code, r.name, r.severity.value) for r in RULES.values()]


def test_rules_are_told_apart() -> None:
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
    assert all(rule.title.endswith(".") and rule.why.endswith(".") for rule in RULES.values())
