"""Examples with a letter too many, too few or wrong: a finding suggests the correction."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from spec_forms import FORMS, XML

from deconv_ir.findings import Severity
from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.rules import Judgement, Verdict
from deconv_ir.spec_examples.text import Document

DOCUMENTS = Path(__file__).parent / "documents"


def judge(text: str) -> Judgement:
    (judgement,) = check_document(Document(text.encode(), "doc"))
    return judgement


def changed(old: str, new: str, count: int = 1) -> str:
    assert old in XML
    return XML.replace(old, new, count)


DAMAGED = [
    ('dilations="1,2"', 'dilation="1,2"', "SE104", "did you mean 'dilations'?"),
    ("<data ", '<data auto_pa="same_upper" ', "SE104", "did you mean 'auto_pad'?"),
    ("<data ", '<data nonsense="1" ', "SE104", "it has strides, pads_begin, "),
    ('strides="2,2"', "", "SE105", None),
    ('pads_begin="1,1" pads_end="1,1"', "", "SE105", None),
    ("ConvolutionBack", "CanvolutionBack", "SE106", "did you mean 'ConvolutionBackpropData'?"),
    ("ConvolutionBackpropData", "convolutionbackpropdata", "SE106", "'ConvolutionBackpropData'?"),
    ('<port id="0"', '<prt id="0"', "SE106", "did you mean <port>?"),
    ("</port>", "</porrt>", "SE106", "did you mean <port>?"),
    ("<dim>", "<dmi>", "SE106", "did you mean <dim>?"),
    ("</dim>", "</dm>", "SE106", "did you mean <dim>?"),
    ("<layer", "<layr", "SE106", "did you mean <layer>?"),
    ("<output>", "<ouput>", "SE106", "did you mean <output>?"),
    ("<data", "<date", "SE106", "did you mean <data>?"),
    ("<dim>20</dim>", "<dim>2,0</dim>", "SE107", "did you mean 20?"),
    ("<dim>20</dim>", "<dim>2 0</dim>", "SE107", "did you mean 20?"),
    ("<dim>20</dim>", "<dim>2O0</dim>", "SE107", "did you mean 200?"),
]


@pytest.mark.parametrize(("old", "new", "code", "hint"), DAMAGED)
def test_damage_is_found(old: str, new: str, code: str, hint: str | None) -> None:
    assert judge(XML).verdict is Verdict.RIGHT
    text = changed(old, new)
    judgement = judge(text)
    assert judgement.verdict is Verdict.WRONG
    finding = next(f for f in judgement.findings if f.code == code)
    assert hint is None or hint in (finding.hint or "")
    if code in ("SE106", "SE107") and finding.column:
        line = text.split("\n")[finding.line - 1] if finding.line else ""
        part = line[finding.column - 1 : (finding.end_column or 0) - 1]
        assert part in new
        assert part not in ("", old)
    # If the layer is uncertain, dims are neither corrected nor announced as fixable.
    fixed = fix_document(Document(text.encode(), "doc"))
    assert (fixed.edits, len(fixed.left)) == (0, 1)
    assert not any("writes the computed" in (f.hint or "") for f in judgement.findings)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("new", ["1,1", "1 1", "1.1", "1l1"])
def test_output_dim_that_is_not_a_number(form: str, new: str) -> None:
    text = FORMS[form].replace("11", new)
    assert text != FORMS[form]
    judgements = check_document(Document(text.encode(), "doc"))
    for judgement in judgements:
        (finding,) = judgement.findings
        assert (finding.code, finding.hint) == ("SE107", "deconv-spec fix writes the computed dim")
    fixed = fix_document(Document(text.encode(), "doc"))
    assert fixed.data.decode() == FORMS[form]
    assert fixed.left == ()


@pytest.mark.parametrize("dim", ["H", "N1", "2*H", "H/2", "?", "-1", "1..2", "2H", "2x3"])
def test_symbolic_dims_have_no_finding(dim: str) -> None:
    judgement = judge(changed("<dim>1</dim>", f"<dim>{dim}</dim>", 2))
    assert not any(f.code == "SE107" for f in judgement.findings)


@pytest.mark.parametrize(
    ("kind", "data"),
    [("Add", 'auto_broadcast="numpy"'), ("Nowhere", ""), ("Convolution3D", ""), ("Roll", "")],
)
def test_other_types_are_not_taken_for_misspelt(kind: str, data: str) -> None:
    text = (
        f'<layer type="{kind}"><data {data}/><input><port><dim>1</dim></port><port><dim>1</dim>'
        "</port></input><output><port><dim>1</dim></port></output></layer>"
    )
    assert not any(f.code == "SE106" for f in judge(text).findings)


@pytest.mark.parametrize("tag", ["1layer", "laye1", "\u0660layer", "laer", "1ayer"])
def test_names_that_no_element_may_have_are_misspelt(tag: str) -> None:
    text = f'<{tag} type="ConvolutionBackpropData"><output><port/></output></{tag}>'
    found = [f for f in judge(text).findings if f.code == "SE106"]
    assert [f.hint for f in found][:1] == ["did you mean <layer>?"]


@pytest.mark.parametrize("tag", ["player", "layered", "dir", "part"])
def test_other_elements_are_no_examples(tag: str) -> None:
    text = f'<{tag} type="x">see <b>there</b></{tag}>\n'
    assert check_document(Document(text.encode(), "doc")) == []


def test_fix_is_announced_only_where_it_is_made() -> None:
    """A dim without an end tag cannot serve as a model for another one."""
    text = changed("<dim>11</dim>\n", "<dim>12\n")
    shorter = text.replace("            <dim>7</dim>\n", "", 1)
    for wrong in (text, shorter):
        document = Document(wrong.encode(), "doc")
        announced = {
            f.line for f in judge(wrong).findings if f.hint and "writes the computed dim" in f.hint
        }
        fixed = fix_document(document, unsafe=True)
        assert bool(announced) == bool(fixed.edits)
    assert fix_document(Document(shorter.encode(), "doc"), unsafe=True).edits == 0


def test_explicit_pads_are_not_required_beside_another_auto_pad() -> None:
    data = 'dilations="1,2" pads_begin="1,1" pads_end="1,1" strides="2,2"'
    text = changed(data, 'dilations="1,2" strides="2,2" auto_pad="same_upper"')
    assert not any(f.code == "SE105" for f in judge(text).findings)


MISTAKES = {
    "tag": r"</?(layer|data|input|output|port|dim)\b",
    "type": r'\btype="(\w+)"',
    "attribute": r'(?<=[ "])(strides|dilations|pads_begin|pads_end|auto_pad|output_padding)=',
    "dim": r"<dim>(\d{2,})</dim>",
}


def one_letter_off(choices: random.Random, word: str, *, number: bool) -> str:
    """Remove, replace, insert or swap letters; a number gets another character."""
    at = choices.randrange(len(word))
    if number:
        at = max(1, at)
        return word[:at] + choices.choice(",. ;l") + word[at:]
    new = choices.choice("abcxyz")
    swapped = word[:at] + word[at : at + 2][::-1] + word[at + 2 :]
    return choices.choice(
        [word[:at] + word[at + 1 :], word[:at] + new + word[at + 1 :], word[:at] + new + word[at:]]
        + [swapped] * (swapped != word)
    )


@pytest.mark.parametrize("kind", MISTAKES)
def test_one_letter_in_the_documents(kind: str) -> None:
    """Seeded mistakes in five pages each give a finding; none changes the exit code to 0."""
    choices = random.Random(7)
    pages = [path.read_text("utf-8") for path in sorted(DOCUMENTS.glob("*.txt"))]
    tried = 0
    while tried < 40:
        page = choices.choice(pages)
        places = list(re.finditer(MISTAKES[kind], page[page.find("<layer") :]))
        if not places:
            continue
        place = choices.choice(places)
        wrong = one_letter_off(choices, place[1], number=kind == "dim")
        if wrong == place[1]:
            continue
        start, end = (page.find("<layer") + at for at in place.span(1))
        document = Document(f"{page[:start]}{wrong}{page[end:]}".encode(), "doc")
        findings = [f for j in check_document(document) for f in j.findings]
        assert any(f.severity is Severity.ERROR for f in findings), (place[1], wrong)
        tried += 1
