"""Fixing changes the digits of wrong dims, and no other byte."""

from __future__ import annotations

import pytest
from spec_forms import XML, prism, pygments

from deconv_ir.edits import apply_edits
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.text import Document

FORMS = {
    "plain": str,
    "Pygments": pygments,
    "Prism": prism,
    "CRLF": lambda xml: xml.replace("\n", "\r\n"),
    "tabs": lambda xml: xml.replace("    ", "\t"),
    "one line": lambda xml: " ".join(xml.split()),
}


def fix(text: str) -> tuple[str, int, int]:
    fixed = fix_document(Document(text.encode(), "doc"), unsafe=True)
    again = fix_document(Document(fixed.data, "doc"), unsafe=True)
    assert (again.data, again.edits) == (fixed.data, 0), "fixing twice changes nothing"
    return fixed.data.decode(), fixed.edits, len(fixed.left)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_several_dims_in_several_examples(form) -> None:
    wrong = XML.replace(">7<", ">70<").replace(">11<", ">1<")
    text = form(f"{wrong}\n{XML}\n{wrong}")
    assert fix(text) == (form(f"{XML}\n{XML}\n{XML}"), 4, 0)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_dim_is_added_in_the_form_of_the_last(form) -> None:
    """Y and X were left out; the added dims are written in the style of the last one."""
    lines = XML.splitlines(keepends=True)
    short = "".join(line for line in lines if ">7<" not in line and ">11<" not in line)
    assert len(short.splitlines()) == len(lines) - 2
    assert fix(form(short)) == (form(XML), 1, 0)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_dim_too_many_is_taken_out(form) -> None:
    long = XML.replace("<dim>11</dim>\n", "<dim>11</dim>\n            <dim>5</dim>\n")
    assert fix(form(long)) == (form(XML), 1, 0)


def test_a_dim_too_many_in_the_middle_shifts_the_rest() -> None:
    long = XML.replace("<dim>7</dim>\n", "<dim>5</dim>\n            <dim>7</dim>\n")
    assert fix(long) == (XML, 3, 0)


def test_comments_beside_dims_stay() -> None:
    text = XML.replace("<dim>7</dim>", "<dim>7</dim> <!-- H: 7 -->")
    assert fix(text.replace("<dim>7<", "<dim> 8 <")) == (text.replace("<dim>7<", "<dim> 7 <"), 1, 0)


def test_entities_in_a_dim_go_with_its_digits() -> None:
    assert fix(XML.replace(">11<", ">&#49;&#50;<")) == (XML, 1, 0)


def test_bytes_that_are_no_text_stay() -> None:
    wrong = b"\xff\xfe\xfd? \x80\n" + XML.replace("11", "12").encode() + b"\xe9"
    assert fix_document(Document(b"x" + wrong), unsafe=True).data == b"x" + wrong.replace(
        b">12<", b">11<"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (">10</dim>\n            <dim>3</dim>\n            <dim>3<", ">10</dim>\n<dim>3<"),
        ("<dim>20</dim>\n            <dim>10<", "<dim>21</dim>\n            <dim>10<"),
        ('strides="2,2"', 'strides="2"'),
        ('strides="2,2"', 'strides="0,2"'),
    ],
)
def test_what_no_output_dims_put_right_is_left(old: str, new: str) -> None:
    assert old in XML
    text = XML.replace(old, new)
    assert fix(text) == (text, 0, 1)


def test_dims_that_are_not_known_are_left() -> None:
    text = XML.replace("<dim>4</dim>", "<dim>?</dim>").replace(">7<", ">0<").replace("11", "12")
    assert fix(text) == (text.replace("12", "11"), 1, 1)


def test_precision_is_not_a_dim() -> None:
    text = XML.replace('<port id="0">', '<port id="0" precision="FP16">').replace("11", "12")
    assert fix(text) == (text.replace("12", "11"), 1, 1)


def test_edits_are_made_from_the_front() -> None:
    edits = [(4, 4, "+"), (0, 1, "A"), (2, 4, "")]
    assert apply_edits("abcdef", edits) == "Ab+ef"
