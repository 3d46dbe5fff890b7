"""Documents damaged at random never cause a crash, and keep the guarantees of fixing."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from spec_forms import FORMS, XML, pygments

from deconv_ir.errors import DeconvError
from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.corrections import corrections
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.rules import Verdict
from deconv_ir.spec_examples.text import Document

COMMENTED = XML.replace(
    "    </input>",
    '        <port id="2">\n            <dim>2</dim> <!-- output_shape value is: [9, 8]-->\n'
    "        </port>\n    </input>",
)
SOURCES = [*FORMS.values(), COMMENTED, pygments(COMMENTED), XML + COMMENTED]
PIECES = (
    "<", ">", '"', "'", "/", "</", "<!--", "-->", "...", "&lt;", "&gt;", "&#", ";", "<dim>",
    "</dim>", "<port>", "</port>", "<output>", "</output>", "<layer", "</layer>", "<layer/>",
    "-1", "0", "?", "1..2", "[", "]", "\n", "\r\n", "\0", "\u00e9", "\u2028",
    "99999999999999999999",
)  # fmt: skip


def damage(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 6)):
        start = rng.randrange(len(text) + 1)
        stop = min(len(text), start + rng.choice((0, 1, 3, 20, 200)))
        match rng.randrange(4):
            case 0:  # text is lost
                text = text[:start] + text[stop:]
            case 1:  # text is added
                text = text[:start] + rng.choice(PIECES) + text[start:]
            case 2:  # text is repeated
                text = text[:stop] + text[start:]
            case 3:  # text is moved
                at = rng.randrange(len(text) + 1)
                text = text[:at] + text[start:stop] + text[at:]
    return text


def mutants(seed: int, count: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    for _ in range(count):
        yield damage(rng.choice(SOURCES), rng).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("seed", range(4))
def test_damaged_documents(seed: int) -> None:
    judged = 0
    for data in mutants(seed, 200):
        if b"\0" in data:
            with pytest.raises(DeconvError, match="NUL bytes"):
                Document(data, "doc")
            continue
        document = Document(data, "doc")
        lines = document.text.count("\n") + document.text.count("\r") + 1
        judgements = check_document(document)
        for judgement in judgements:
            assert (judgement.verdict is Verdict.RIGHT) <= bool(judgement.computed)
            hints = [f.hint or "" for f in judgement.findings]
            announced = any("writes the computed dim" in hint for hint in hints)
            assert announced == bool(corrections(judgement, document, unsafe=True)[0])
            for finding in judgement.findings:
                assert finding.line is not None
                assert 1 <= finding.line <= lines
                assert "\n" not in finding.message
        judged += len(judgements)
        fixed = fix_document(document)
        assert (fixed.edits == 0) == (fixed.data == data)
        again = fix_document(Document(fixed.data, "doc"))
        assert (again.edits, again.data) == (0, fixed.data)
        assert len(again.left) == len(fixed.left)
        wrong = [j for j in judgements if j.verdict is Verdict.WRONG]
        assert bool(fixed.edits or fixed.left) == bool(wrong)
    assert judged > 150
