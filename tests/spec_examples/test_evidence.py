"""What `fix` writes: dims that are wrong themselves, not those that follow from another number."""

from __future__ import annotations

import random

import pytest
from spec_forms import XML

from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.text import Document

from .evidence import documents, mutants, outcome
from .test_other_operations import layer

DATA = 'dilations="1,1" pads_begin="{p}" pads_end="{p}" strides="{s}"'
WINDOW = DATA.format(p="1,1", s="2,2")


def fixed(text: str, *, unsafe: bool = False) -> str:
    return fix_document(Document(text.encode()), unsafe=unsafe).data.decode()


def convolution(data: str, filter_: str, output: str, attributes: str = WINDOW) -> str:
    return layer("Convolution", attributes, f"{data};{filter_}", output)


RIGHT = convolution("1,3,56,40", "8,3,3,3", "1,8,28,20")
PROVEN = [
    pytest.param("1,8,28,21", "The output has the shape [1, 8, 28, 20].", id="text states it"),
    pytest.param("1,8,28,21", "| output | 1x8x28x20 |", id="text states it with x"),
    pytest.param("1,8,28,21", RIGHT, id="the same example is right"),
    pytest.param("1,8,29,21", RIGHT, id="two dims, and the same example is right"),
    pytest.param("1,9,28,20", RIGHT.replace('strides="2,2"', 'strides="2,2" auto_pad="explicit"'),
                 id="another example has the same filter"),
    pytest.param("1,8,28,2O", "", id="not a number, with the digits of the computed dim"),
    pytest.param("1,8,28", "", id="a dim is missing, and inputs agree on their number"),
]  # fmt: skip
DOUBTFUL = [
    pytest.param("1,8,28,21", "", id="pads may be wrong"),
    pytest.param("2,8,28,20", "", id="the data may be wrong"),
    pytest.param("1,9,28,20", "", id="the filter may be wrong"),
    pytest.param("1,8,28,21", "The output has the shape [1, 8, 28, 21].", id="text agrees"),
    pytest.param("1,8,28,21", "The output has the shape [1, 8, 30, 20].", id="text of another"),
    pytest.param("1,8,28,1O", "", id="not a number, with other digits"),
    pytest.param("1,9,28,20", convolution("1,3,56,40", "9,3,3,3", "1,9,28,20"),
                 id="another example has one other number"),
    pytest.param("1,8,28,21", RIGHT.replace("<dim>20</dim>", "<dim>21</dim>"),
                 id="the same example is wrong"),
]  # fmt: skip


@pytest.mark.parametrize(("printed", "more"), PROVEN)
def test_wrong_dims_that_other_statements_contradict(printed: str, more: str) -> None:
    text = convolution("1,3,56,40", "8,3,3,3", printed)
    assert fixed(f"{text}\n{more}") == f"{RIGHT}\n{more}"


@pytest.mark.parametrize(("printed", "more"), DOUBTFUL)
def test_dims_that_another_number_may_explain(printed: str, more: str) -> None:
    text = convolution("1,3,56,40", "8,3,3,3", printed) + "\n" + more
    assert fixed(text) == text
    assert RIGHT in fixed(text, unsafe=True)
    hints = [f.hint or "" for j in check_document(Document(text.encode())) for f in j.findings]
    assert any("unsafe=True" in hint for hint in hints)


@pytest.mark.parametrize(
    ("attributes", "data", "is_proven"),
    [(WINDOW, "1,3,56,56", True), (DATA.format(p="1,1", s="2,1"), "1,3,56,28", False)],
)
def test_an_axis_with_the_same_numbers(attributes: str, data: str, is_proven: bool) -> None:
    right = convolution(data, "8,3,3,3", "1,8,28,28", attributes)
    wrong = right.replace("<dim>28</dim>\n        </port>\n    </output>", "<dim>29</dim>\n"
                          "        </port>\n    </output>")  # fmt: skip
    assert wrong != right
    assert fixed(wrong) == (right if is_proven else wrong)


@pytest.mark.parametrize("comment", ["W: 11", "2*(5 - 1) + 5 - 2 = 11"])
def test_comments_beside_the_dim(comment: str) -> None:
    right = XML.replace("<dim>11</dim>", f"<dim>11</dim> <!-- {comment} -->")
    wrong = right.replace("<dim>11<", "<dim>12<")
    assert fixed(wrong) == right
    both = wrong.replace("= 11", "= 12").replace(": 11", ": 12")
    assert fixed(both) == both


def test_a_fixed_example_confirms_the_next() -> None:
    """The text states the first; the second has the same inputs."""
    wrong = convolution("1,3,56,40", "8,3,3,3", "1,8,28,21")
    text = f"{RIGHT}The shape is [1, 8, 28, 20].\n{{}}\n{{}}"
    assert fixed(text.format(wrong, wrong)) == text.format(RIGHT, RIGHT)


def test_mutants() -> None:
    """`python tests/spec_examples/evidence.py` has all of them."""
    rng = random.Random(5)
    found: dict[str, list[str]] = {}
    for name, text in documents():
        chosen = list(mutants(name, text))
        if "samples" in name or "alone" in name:
            continue  # long documents
        for mutant in rng.sample(chosen, min(len(chosen), 5)):
            found.setdefault(mutant.kind, []).append(outcome(mutant, text))
    assert {kind: of.count("written wrongly") for kind, of in found.items()} == dict.fromkeys(
        found, 0
    )
    assert found["output"].count("put right") > 4
