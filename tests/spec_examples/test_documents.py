"""The five documents' own examples: all are found and judged, and one wrong dim is fixed.

S0: OpenVINO ConvolutionBackpropData-1, older text; S1: GroupConvolutionBackpropData-1;
S2: ConvolutionBackpropData-1, newer text; S3: oneDNN Graph ConvTranspose-1; S4: oneDNN
Graph ConvolutionBackwardData.  S3 and S4 print no XML example.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deconv_ir.findings import Severity
from deconv_ir.ir.options import Semantics
from deconv_ir.spec_examples.check import check_document, no_examples
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.rules import Verdict
from deconv_ir.spec_examples.text import Document

DOCUMENTS = Path(__file__).parent / "documents"

# document -> line of each example, its output shape (S0 to S2, sections 'Example' and 'Examples')
EXAMPLES: dict[str, list[tuple[int, tuple[int, ...]]]] = {
    "convolution_backprop_data_1_older": [(135, (1, 10, 447, 447))],
    "group_convolution_backprop_data_1": [(149, (1, 8, 447, 447))],
    "convolution_backprop_data_1": [
        (143, (1, 10, 447, 447)),
        (171, (1, 10, 8, 8)),
        (199, (1, 10, 450, 450)),
    ],
    "conv_transpose_1": [],
    "convolution_backward_data": [],
}


def read(name: str) -> bytes:
    return (DOCUMENTS / f"{name}.txt").read_bytes()


@pytest.mark.parametrize("name", EXAMPLES)
def test_all_examples_are_found_and_right(name: str) -> None:
    judgements = check_document(Document(read(name), name))
    assert [(j.example.line, j.computed) for j in judgements] == [
        (line, (shape,)) for line, shape in EXAMPLES[name]
    ]
    assert all(j.verdict is Verdict.RIGHT for j in judgements)


def test_the_documents_last_example_differs_between_the_profiles() -> None:
    """S2, example 3: the document splits a total_padding of -224, which the runtime clamps."""
    judgements = check_document(Document(read("convolution_backprop_data_1"), "S2"))
    findings = [f for j in judgements for f in j.findings]
    assert [(f.rule, f.severity, f.line) for f in findings] == [
        ("profiles-differ", Severity.INFO, 199)
    ]
    assert "pads_begin -112,-112, the OpenVINO runtime 0,0" in findings[0].message


@pytest.mark.parametrize("semantics", Semantics)
def test_the_output_dims_are_the_same_in_both_profiles(semantics: Semantics) -> None:
    for name in EXAMPLES:
        judgements = check_document(Document(read(name), name), semantics)
        assert all(j.verdict is Verdict.RIGHT for j in judgements)


@pytest.mark.parametrize("name", [name for name, examples in EXAMPLES.items() if not examples])
def test_a_document_without_examples_says_so(name: str) -> None:
    finding = no_examples(Document(read(name), name))
    assert str(finding) == f"{name}:1: no XML layer example was found"
    assert finding.severity is Severity.INFO


def output_dims(name: str) -> list[tuple[int, int, int]]:
    """Find every output dim of a document by hand: the position of its digits, and its line."""
    text = read(name).decode()
    dims = []
    for section in re.finditer(r"<output>.*?</output>", text, re.DOTALL):
        for dim in re.finditer(r"(?<=<dim>)\d+(?=</dim>)", section.group()):
            start, end = section.start() + dim.start(), section.start() + dim.end()
            dims.append((start, end, text.count("\n", 0, start) + 1))
    return dims


CHANGES = [
    pytest.param(name, *dim, wrong, id=f"{name}-line{dim[2]}-{wrong}")
    for name in EXAMPLES
    for dim in output_dims(name)
    for wrong in ("0", "31", "448", "100000")
]


DOUBTFUL = {
    ("convolution_backprop_data_1_older", 171),
    ("convolution_backprop_data_1_older", 173),
    ("group_convolution_backprop_data_1", 187),
    ("group_convolution_backprop_data_1", 189),
    ("convolution_backprop_data_1", 189),
}
"""Batch and channels that no other example's inputs confirm: the input may be wrong instead.

The spatial axes of each example have the same numbers, and confirm each other.
"""


@pytest.mark.parametrize(("name", "start", "end", "line", "wrong"), CHANGES)
def test_one_wrong_dim_is_found_at_its_line_and_put_right(
    name: str, start: int, end: int, line: int, wrong: str
) -> None:
    original = read(name)
    text = original.decode()
    changed = (text[:start] + wrong + text[end:]).encode()
    judgements = check_document(Document(changed, name))
    errors = [f for j in judgements for f in j.findings if f.severity is Severity.ERROR]
    assert [(f.rule, f.line) for f in errors] == [("declared-dims", line)]
    assert f"declared {wrong}, computed {text[start:end]}" in errors[0].message
    assert errors[0].expected == int(text[start:end])
    assert errors[0].actual == int(wrong)
    fixed = fix_document(Document(changed, name))
    is_left = (name, line) in DOUBTFUL
    assert fixed.data == (changed if is_left else original)
    assert (fixed.edits, len(fixed.left)) == (int(not is_left), int(is_left))
    assert errors[0].fix is not None
    assert errors[0].fix.safe is not is_left
    fixed = fix_document(Document(changed, name), unsafe=True)
    assert fixed.data == original
    assert (fixed.edits, fixed.left) == (1, ())
    assert fix_document(Document(fixed.data, name)).edits == 0


def test_the_changes_cover_every_document_with_examples() -> None:
    assert {p.values[0] for p in CHANGES} == {n for n, examples in EXAMPLES.items() if examples}
    assert len(CHANGES) == 4 * 4 * 5


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_right_document_is_not_touched(name: str) -> None:
    fixed = fix_document(Document(read(name), name))
    assert fixed.data == read(name)
    assert fixed.edits == 0


def test_the_formula_is_told_with_its_numbers() -> None:
    (judgement,) = check_document(Document(read("group_convolution_backprop_data_1"), "S1"))
    assert "GROUPS * C_OUTPUT = 4 * 2 = 8" in judgement.reason
    assert "= 2*(224 - 1) + ((3 - 1)*1 + 1) - 1 - 1 + 0 = 447" in judgement.reason
