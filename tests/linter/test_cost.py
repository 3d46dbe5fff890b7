"""The text that the linter searches grows in proportion to a file, however it is laid out."""

from __future__ import annotations

import pytest
from contracts.test_steps import steps

from deconv_ir.formats import parse_bytes
from deconv_ir.formats.openvino_xml.text import BLOCK, XMLText
from deconv_ir.limits import DEFAULT_LIMITS
from deconv_ir.linter.engine import check_parsed
from deconv_ir.linter.options import choose
from deconv_ir.linter.suppress import Suppressions

DIMS = "<dim>1</dim><dim>8</dim><dim>4</dim>"
OPTIONS = choose()


class Counted(str):
    """A text that counts the characters in which something is searched."""

    __slots__ = ("searched",)
    searched: int

    def _span(self, start: int = 0, end: int | None = None) -> None:
        self.searched = getattr(self, "searched", 0) + (len(self) if end is None else end) - start

    def count(self, sub: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        self._span(start, end)
        return super().count(sub, start, end)

    def rfind(self, sub: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        self._span(start, end)
        return super().rfind(sub, start, end)


def of_reshaped(count: int, end: str, dims: str) -> bytes:
    """Write a network of layers that declare these dims for [1,8,4]."""
    parts = [
        '<?xml version="1.0"?>\n<net name="n" version="11"><layers>',
        '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,8,4" '
        f'element_type="f32"/><output><port id="0" precision="FP32">{DIMS}</port></output></layer>',
    ]
    parts += [
        f'<layer id="{i}" name="l{i}" type="ReLU" version="opset1"><input><port id="0">{DIMS}'
        f'</port></input><output><port id="1" precision="FP32">{dims}</port></output></layer>'
        for i in range(1, count)
    ]
    parts.append("</layers><edges>")
    parts += [
        f'<edge from-layer="0" from-port="0" to-layer="{i}" to-port="0"/>' for i in range(1, count)
    ]
    return end.join([*parts, "</edges></net>"]).encode()


@pytest.mark.parametrize("end", ["", "\n"], ids=["one line", "lines"])
@pytest.mark.parametrize("dims", [DIMS.replace("4", "5"), ""], ids=["wrong dim", "no dims"])
def test_positions_are_found_near_them(end: str, dims: str) -> None:
    parsed = parse_bytes(of_reshaped(800, end, dims), "m.xml", DEFAULT_LIMITS)
    assert isinstance(parsed.file_text, XMLText)
    text = parsed.file_text.text = Counted(parsed.file_text.text)
    findings = check_parsed(parsed, OPTIONS).findings
    assert len([f for f in findings if f.code == "IR401"]) == 799
    assert len(text) > 10 * BLOCK
    assert text.searched < 6 * BLOCK * len(findings)


def test_comments_before_one_layer() -> None:
    """Each comment leads to the layer after all of them, which is looked for once."""

    def source_of(count: int) -> XMLText:
        comments = "<!-- deconv-lint: ignore=IR401 --> " * count
        return XMLText(f'<net>{comments}<layer id="0"/><!-- x --></net>'.encode())

    found = []
    for count in (10, 400, 800, 1600):  # the first loads modules
        xml = source_of(count)
        start = xml.text.index("<layer")
        made: list[Suppressions] = []
        found.append(steps(lambda s=xml, a=start, m=made: m.append(Suppressions(s, [a]))))  # type: ignore[misc]
        (directives,) = made[0].directives.values()
        assert (list(made[0].directives), len(directives)) == ([start], count)
    assert found[3] - found[2] <= 2.2 * (found[2] - found[1])


def test_comments_for_the_file() -> None:
    """Many comments and many findings: each comment is compared with each rule once."""
    comments = "<!-- deconv-lint: ignore-file=IR309 -->"
    xml = XMLText(f"<net>{comments * 200}</net>".encode())
    suppressions = Suppressions(xml, [])
    first = steps(lambda: suppressions.silences("IR309", None))
    later = steps(lambda: [suppressions.silences("IR309", owner) for owner in range(20)])
    assert later < first
    assert suppressions.silences("IR309", 7)
    assert not suppressions.silences("IR401", 7)
    assert list(suppressions.unused(["IR309"], selected=False)) == []
