"""Pictures: correct contents, well-formed, and the same on every run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree
from support import invoke_script

from deconv_ir.errors import DeconvError
from deconv_ir.spec_examples.diagram import draw, lines_of
from deconv_ir.spec_examples.specfile import ExampleSpec, parse_spec

ROOT = Path(__file__).parents[2]


def example(attributes: str, inputs: str, more: str = "") -> ExampleSpec:
    text = f"""
        operation = "ConvolutionBackpropData"
        [[example]]
        name = "a"
        attributes = {{ {attributes} }}
        inputs = {{ {inputs} }}
        {more}
    """
    return parse_spec(text.encode()).examples[0]


ONE = "data = [1, 1, 3], filter = [1, 1, 4]"
CASES = {
    "plain": ("strides = [1]", ONE, ""),
    "strides and pads": ("strides = [2], pads_begin = [1], pads_end = [2]", ONE, ""),
    "dilations": ("strides = [1], dilations = [3]", ONE, ""),
    "output_padding": ("strides = [3], output_padding = [2]", ONE, ""),
    "zeros at both ends": ("strides = [2]", ONE, "values = { output_shape = [12] }"),
    "nothing left": ("strides = [1], pads_begin = [6]", ONE, ""),
    "pads beyond the end": ("strides = [1], pads_begin = [8], output_padding = [9]", ONE, ""),
    "an empty axis": ("strides = [1]", "data = [1, 1, 0], filter = [1, 1, 4]", ""),
    "two axes": (
        "strides = [2, 1], dilations = [1, 2], pads_begin = [0, 2], pads_end = [1, 0]",
        "data = [1, 1, 3, 4], filter = [1, 1, 2, 3]",
        "",
    ),
    "two axes, wider": (
        "strides = [2, 3], output_padding = [0, 1]",
        "data = [1, 1, 3, 2], filter = [1, 1, 2, 2]",
        "values = { output_shape = [9, 3] }",
    ),
    "three axes": (
        "strides = [2, 1, 3]",
        "data = [1, 1, 3, 4, 2], filter = [1, 1, 2, 3, 1]",
        "",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_well_formed_and_the_same_twice(case: tuple[str, str, str]) -> None:
    spec = example(*case)
    svg = draw(spec)
    root = etree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert draw(spec) == svg
    words = {t.text for t in root.iter("{http://www.w3.org/2000/svg}text")}
    assert "output" in words
    assert "data" in words or "data axis 0" in words


def words_of(case: str) -> list[str | None]:
    root = etree.fromstring(draw(example(*CASES[case])))
    return [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]


def test_words_of_one_axis() -> None:
    words = words_of("strides and pads")
    assert "X = 3, stride 2: 1 zero between" in words
    assert words.count("0") == 2
    assert [w for w in words if w and w.startswith("x")] == ["x0", "x1", "x2"] + [
        f"x{i} \N{MULTIPLICATION SIGN} filter" for i in range(3)
    ]
    assert {"K = 4, dilation 1", "F = 8", "pad_begin 1", "pad_end 2", "Y = 5", "y4"} <= set(words)
    assert "y5" not in words


def test_words_of_negative_pads() -> None:
    assert "Y = 12, pads -2 and -2: zeros are added" in words_of("zeros at both ends")


def test_words_of_two_axes() -> None:
    times = "\N{MULTIPLICATION SIGN}"
    words = words_of("two axes")
    assert {f"3{times}4, strides 2,1", f"2{times}3, dilations 1,2", "begin 0,2, end 1,0"} <= {
        *words
    }
    assert "cut by pads" in words
    assert not any(w and w.startswith("output_padding") for w in words)
    assert "output_padding 0,1" in words_of("two axes, wider")


@pytest.mark.parametrize(
    ("case", "first", "stop"),
    [
        ("plain", 0, 6),
        ("output_padding", 0, 12),
        ("zeros at both ends", -2, 10),
        ("nothing left", 0, 6),
    ],
)
def test_positions_that_are_shown(case: str, first: int, stop: int) -> None:
    (line,) = lines_of(example(*CASES[case]))
    assert (line.first, line.stop) == (first, stop)


def test_too_large_for_a_picture() -> None:
    spec = example("strides = [20]", ONE)
    assert lines_of(spec)[0].stop == 44
    with pytest.raises(DeconvError, match="'a' is too large for a picture: 64 positions"):
        draw(example("strides = [30]", ONE))


def test_it_needs_no_other_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert draw(example("strides = [1]", ONE)).startswith(b"<svg ")


def test_the_same_in_every_process() -> None:
    code = (
        "import sys; from deconv_ir.spec_examples.diagram import draw\n"
        "from deconv_ir.spec_examples.specfile import read_spec\n"
        "spec = read_spec(sys.argv[1])\n"
        "sys.stdout.buffer.write(b''.join(draw(e) for e in spec.examples if e.diagram))"
    )
    spec = ROOT / "samples" / "spec" / "conv_transpose.toml"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, str(spec)],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1
    assert outputs.pop().count(b"</svg>") == 2


def test_the_command_draws_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(
        'operation = "ConvolutionBackpropData"\n'
        f'[[example]]\nname = "a"\ninputs = {{ {ONE} }}\n'
        f'[[example]]\nname = "b"\ndiagram = false\ninputs = {{ {ONE} }}\n'
    )
    assert invoke_script("spec", "generate", path, "--out", tmp_path / "plain").exit_code == 0
    drawn = invoke_script("spec", "generate", path, "--out", tmp_path / "drawn", "--diagram")
    assert drawn.exit_code == 0
    assert list((tmp_path / "plain").rglob("*.svg")) == []
    assert list((tmp_path / "drawn").rglob("*.svg")) == [tmp_path / "drawn" / "a" / "diagram.svg"]
    assert "](a/diagram.svg)" in (tmp_path / "drawn" / "examples.md").read_text()
