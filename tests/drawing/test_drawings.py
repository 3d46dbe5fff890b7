"""Drawings for documents and notebooks."""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

import pytest
from drawn_networks import graph_of, random_network, sketch
from lxml import etree
from support import IR, invoke_script

import deconv_ir
from deconv_ir.drawing.graph.sketch import draw, svg_of

ROOT = Path(__file__).parent.parent.parent
BLOCK = ROOT / "samples/block/block.xml"


def test_an_svg_has_a_box_and_a_title_for_each_layer() -> None:
    drawn = sketch(graph_of(random_network(1, 40)))
    root = etree.fromstring(svg_of(drawn).encode())
    texts = [e.text for e in root.iter("{*}text")]
    for layer in drawn.graph.layers[:10]:
        assert layer.type in texts
    right, bottom = float(root.get("width")), float(root.get("height"))
    for rect in list(root.iter("{*}rect"))[1:]:
        x, y, width, height = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= right
        assert 0 <= y <= y + height <= bottom


def test_the_same_graph_gives_the_same_drawing() -> None:
    first, second = (svg_of(sketch(graph_of(random_network(2, 60)))) for _ in range(2))
    assert first == second


def test_layers_with_findings_are_marked() -> None:
    drawn = sketch(deconv_ir.load(BLOCK).graph)
    assert 'stroke="#d13438"' not in svg_of(drawn)
    assert 'stroke="#d13438" stroke-width="2.6"' in svg_of(drawn, {3: "#d13438"})


def test_png(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = pytest.importorskip("PIL.Image", reason="the diagrams extra is not installed")
    monkeypatch.chdir(tmp_path)
    assert invoke_script("show", BLOCK, "--format", "png").exit_code == 0
    data = (tmp_path / "block.png").read_bytes()
    drawn = draw(sketch(deconv_ir.load(BLOCK).graph))
    assert drawn is not None
    assert struct.unpack(">II", data[16:24]) == (round(2 * drawn.width), round(2 * drawn.height))
    colours = image.open(tmp_path / "block.png").getcolors(1 << 20)
    # The colours of the background and of the deconvolution.
    assert {(255, 255, 255), (0xFD, 0xEB, 0xD8)} <= {colour for _, colour in colours}


def test_png_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    done = invoke_script("show", BLOCK, "--format", "png")
    assert done.exit_code == 2
    assert "pip install '.[diagrams]'" in done.output
    assert not list(tmp_path.iterdir())


def test_notebooks_show_a_small_drawing() -> None:
    html = deconv_ir.load(BLOCK)._repr_html_()
    root = etree.fromstring(f"<div>{html}</div>")
    assert root.find("code").text.startswith("<Model 'block'")
    assert "ConvolutionBackpropData" in [e.text for e in root.iter("{*}text")]


def test_hostile_names_are_text_in_notebooks() -> None:
    name = "&lt;script>alert(1)&lt;/script>&lt;img src=x onerror=alert(2)>"
    ir = IR()
    x = ir.parameter("x", "1,2")
    ir.result(ir.layer("Abs", [x], outputs=("1,2",), name=name, names=name), name)
    model = deconv_ir.load(ir.xml().encode(), warn=False)
    root = etree.fromstring(f"<div>{model._repr_html_()}</div>")
    tags = {etree.QName(e).localname for e in root.iter()}
    assert tags <= {
        "div", "code", "svg", "title", "defs", "marker", "path", "rect", "text",
    }  # fmt: skip


def test_a_network_that_is_too_large_to_draw_is_named_alone() -> None:
    ir = IR()
    at = ir.parameter("x", "1,2")
    rng = random.Random(0)
    for k in range(300):
        kind = rng.choice(("Abs", "Exp", "Sigmoid", "Tanh", "Sqrt"))
        at = ir.layer(kind, [at], outputs=("1,2",), name=f"n{k}")
    ir.result(at, "y")
    html = deconv_ir.load(ir.xml().encode())._repr_html_()
    assert "302 layers" in html
    assert "<svg" not in html
