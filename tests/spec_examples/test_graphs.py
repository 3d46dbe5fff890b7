"""oneDNN Graph files in documents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from onednn_forms import deconvolution, graph, op, tensor

from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.rules import Judgement, Verdict
from deconv_ir.spec_examples.text import Document

LAYER = '<layer id="1" type="ReLU"><output><port id="0"/></output></layer>'


def page(*files: Any) -> str:
    """Print files in fences, with text around them."""
    blocks = [f"Some {{words}}.\n\n```json\n{json.dumps(f, indent=2)}\n```\n" for f in files]
    return "# Page\n\n" + "\n".join(blocks)


def judge(text: str) -> list[Judgement]:
    return check_document(Document(text.encode(), "page.md"))


def up(extent: int) -> dict[str, Any]:
    one = deconvolution([1, 2, 3, 3], [2, 4, 2, 2], [1, 4, extent, 4])
    one["outputs"][0]["shape"] = [1, 4, extent, 4]
    return graph(one)


def test_right_and_wrong_examples_are_told_apart() -> None:
    """A finding has the document's line in which the dim stands."""
    text = page(up(4), up(5))
    right, wrong = judge(text)
    assert right.verdict is Verdict.RIGHT
    assert "'CONVTRANSPOSE_0' (ConvTranspose, id 0): [1,4,4,4]" in right.reason
    assert wrong.verdict is Verdict.WRONG
    (finding,) = wrong.findings
    assert finding.rule == "declared-dims"
    assert "declared 5, computed 4" in finding.message
    lines = text.splitlines()
    second = [i for i, line in enumerate(lines, 1) if line.startswith("{")][1]
    assert finding.line is not None
    assert second < finding.line <= len(lines)


@pytest.mark.parametrize("change", ["elided", "unknown", "broken"])
def test_what_cannot_be_checked_is_not_called_right(change: str) -> None:
    if change == "unknown":
        text = page(graph(op(0, "Wildcard", [tensor(0, [1])], [tensor(1, [1])])))
        wanted = Verdict.UNTOLD
    elif change == "elided":
        text = page(up(4)).replace('"shape"', '..., "shape"', 1)
        wanted = Verdict.UNTOLD
    else:
        text = page(up(4)).replace('"kind"', '"kinds"', 1)
        wanted = Verdict.WRONG
    (judgement,) = judge(text)
    assert judgement.verdict is wanted


def test_graphs_stand_among_layers_in_the_order_of_the_document() -> None:
    """Layers and graphs may be mixed in a document."""
    text = f"{LAYER}\n\n{page(up(4))}\n{LAYER}\n"
    types = [judgement.example.type for judgement in judge(text)]
    assert types == ["ReLU", "oneDNN Graph", "ReLU"]


def test_wrong_graphs_are_left_as_they_are() -> None:
    """--fix only writes dims of XML, and reports the wrong graphs."""
    text = page(up(5))
    fixed = fix_document(Document(text.encode(), "page.md"))
    assert fixed.edits == 0
    assert len(fixed.left) == 1


def test_unclosed_objects_do_not_take_long() -> None:
    """The search is linear."""
    text = '{"graph": [' * 20_000
    assert judge(text) == []
