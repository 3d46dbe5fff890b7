"""--fix on networks that no other test uses; `make mutate-lint` tries thousands of mutants."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

from .drawn import drawn_network, trial
from .mutations import (
    change_attribute,
    change_both_ends,
    change_dim,
    change_edge,
    change_number,
    change_precision,
    change_type,
    change_word,
    odd_value,
    remove_attribute,
    remove_dim,
)

FIRST = 100_000
"""`make mutate-lint` begins with 0."""


def test_fixed_networks_compute_the_same(tmp_path: Path) -> None:
    ends, wrong = trial(range(FIRST, FIRST + 3), tmp_path)
    assert wrong == []
    assert ends["fixed"] >= 5
    assert ends["left"] > 30


def test_drawn_networks_are_clean(tmp_path: Path) -> None:
    for seed in range(FIRST, FIRST + 12):
        text, weights = drawn_network(seed)
        (tmp_path / "m.bin").write_bytes(weights)
        assert check_bytes(text.encode(), "m.xml", choose(), tmp_path / "m.bin").findings == []


BODY = re.compile(r"<(body|then_body|else_body)>")
IN_BODIES = (
    change_dim,
    remove_dim,
    change_both_ends,
    change_attribute,
    change_attribute,
    remove_attribute,
    change_word,
    change_number,
    odd_value,
    change_edge,
    change_type,
    change_precision,
)
OF_WHOLE_FILES = {"IR417", "IR506"}
"""Rules about the sizes of the inputs and the bytes of the .bin, which a body does not have."""


def contents_of_bodies(text: str) -> Iterator[tuple[int, int]]:
    """Return where the layers and edges of each body begin and end."""
    for match in BODY.finditer(text):
        depth, end = 1, match.end()
        while depth:
            tag = re.compile(rf"<(/?){match[1]}>").search(text, end)
            assert tag is not None
            depth, end = depth + (-1 if tag[1] else 1), tag.end()
        yield match.end(), tag.start()


def test_mistakes_in_bodies_are_found_as_outside(tmp_path: Path) -> None:
    """Each mutant of a body has a finding if the same graph has one as a model of its own."""
    weights = tmp_path / "m.bin"
    found, missed = 0, []
    for seed in range(FIRST, FIRST + 24):
        text, data = drawn_network(seed)
        places = list(contents_of_bodies(text))
        weights.write_bytes(data)
        choices = random.Random(seed)
        for _ in range(12 if places else 0):
            start, end = choices.choice(places)
            try:
                mutation = choices.choice(IN_BODIES)(choices, text[start:end])
            except (IndexError, ValueError):
                continue  # there is nothing of that kind
            alone = f'<net name="n" version="11">{mutation.text}</net>'
            if not codes(alone, weights) - OF_WHOLE_FILES:
                continue
            found += 1
            if not codes(text[:start] + mutation.text + text[end:], weights):
                line = text.count("\n", 0, start) + mutation.line
                missed.append(f"{seed}:{line} {mutation.was!r} -> {mutation.now!r}")
    assert missed == []
    assert found > 60


def codes(text: str, weights: Path) -> set[str | None]:
    return {f.code for f in check_bytes(text.encode(), "m.xml", choose(), weights).findings}


CYCLE = """<net name="n" version="11"><layers>
<layer id="0" name="w" type="Const" version="opset1">
<data element_type="f32" shape="1,1,1,1" offset="0" size="4"/>
<output><port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim></port>
</output></layer>
<layer id="1" name="d" type="ConvolutionBackpropData" version="opset1">
<data strides="1,1" dilations="1,1" pads_begin="0,0" pads_end="0,0"/>
<input><port id="0"><dim>1</dim><dim>3</dim></port>
<port id="1"><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim></port></input>
<output><port id="2" precision="FP32"><dim>1</dim><dim>3</dim></port></output></layer>
<layer id="2" name="y" type="Result" version="opset1">
<input><port id="0"><dim>1</dim><dim>3</dim></port></input></layer>
</layers><edges>
<edge from-layer="1" from-port="2" to-layer="1" to-port="0"/>
<edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>
<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>
</edges></net>"""


def test_a_layer_on_a_cycle_with_impossible_dims() -> None:
    """Its declared dims stand for the computed ones, and no rule may trust them."""
    findings = check_bytes(CYCLE.encode(), "m.xml", choose(severity="info")).findings
    assert "IR207" in {f.code for f in findings}
