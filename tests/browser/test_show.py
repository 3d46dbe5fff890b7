"""Pages of deconv-show in a real browser."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_networks import chain, graph_of, large, random_network, sketch
from support import IR, deconvolution_ir

from deconv_ir.drawing.placing import first_open, place
from deconv_ir.view.pictures import SEQUENTIAL, png

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parent.parent.parent
FIRST_PAINT = 3000
"""Milliseconds from opening within which 12,500 layers are drawn."""

PAPER = "getComputedStyle(document.body).backgroundColor"

Show = Callable[..., Any]

SAMPLES = {
    "samples/block/block.xml": ("up/bias", "Add", "0.53516"),
    "samples/upsample/bilinear_x2.xml": ("upsample", "GroupConvolutionBackpropData", "bilinear"),
    "samples/documents/convolution_backprop_data_1.xml": (
        "upsampling", "ConvolutionBackpropData", "= 447",
    ),
    "samples/documents/convolution_backprop_data_2_output_padding.xml": (
        "upsampling", "ConvolutionBackpropData", "output_padding",
    ),
    "samples/documents/convolution_backprop_data_3_output_shape.xml": (
        "upsampling", "ConvolutionBackpropData", "output_shape",
    ),
    "samples/documents/convolution_backprop_data_older.xml": ("ConvolutionBackprop", "", "strides"),
    "samples/documents/group_convolution_backprop_data.xml": (
        "GroupConvolution", "GroupConvolutionBackpropData", "= 447",
    ),
    "samples/onednn/upsample.json": ("ConvTranspose", "ConvTranspose", "Taps"),
    "samples/onednn/int8.json": ("relu", "ReLU", "Tensors"),
    "tests/fixtures/ir/static_3d_fp32.xml": ("Backprop", "Backprop", "Receptive field"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name: str, show: Show) -> None:
    words, kind, text = SAMPLES[name]
    opened = show(ROOT / name)
    assert opened.shown()
    opened.search(words)
    assert kind in opened.page.inner_text("#panel h2")
    assert text in opened.panel()
    assert opened.page.locator(".chosen").count() == 1
    opened.require_quiet()


def test_a_click_shows_the_layer(show: Show) -> None:
    opened = show(ROOT / "samples/block/block.xml")
    opened.click("ConvolutionBackpropData")
    panel = opened.panel()
    for text in (
        "block.xml:48", "strides", "2*(16 - 1) + ((4 - 1)*1 + 1) - 1 - 1 + 0 = 32", "zeros",
        "specification", "Receptive field", "262 kFLOP", "Taps that each output sums",
    ):  # fmt: skip
        assert text in panel
    # The diagram's sum and output, and the map, are drawn from computed numbers.
    assert opened.page.locator(".heat rect").count() == 16 * 16
    opened.page.click("#panel button.link:has-text('up/bias')")
    assert opened.page.inner_text("#panel h2") == "Add"
    opened.require_quiet()


def test_a_large_network(show: Show) -> None:
    opened = show(large().xml().encode())
    painted = opened.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    ready = int(opened.evaluate("document.documentElement.dataset.ready"))
    assert max(painted, ready) < FIRST_PAINT
    before = opened.shown()
    assert 0 < len(before) < 300
    # Two stages deep, in groups that are closed at first.
    opened.search("stage31/block7/layer2")
    assert "net/stage31/block7/layer2" in opened.panel()
    assert any("layer2" in text for text in opened.shown())
    opened.page.keyboard.press("Escape")
    opened.page.click("#reset")
    assert opened.shown() == before
    # When zoomed out, everything is drawn without text, in a few elements.
    opened.evaluate("zoom(0.1)")
    opened.wait("document.querySelectorAll('.far').length > 0")
    assert opened.evaluate("document.querySelectorAll('#stage *').length") < 2000
    opened.require_quiet()


def test_groups_open_and_close(show: Show) -> None:
    opened = show(chain(42, lambda k: f"Layer_{k}").xml().encode())
    (repeat,) = (text for text in opened.shown() if "Layer_39" in text)
    opened.click("Layer_39")
    assert repeat not in opened.shown()
    assert sum("Layer_" in text for text in opened.shown()) == 10
    opened.click("Layer_34 layers")
    assert any(text.startswith("ReLU") for text in opened.shown())
    opened.click("Layer_39")
    assert repeat in opened.shown()
    opened.require_quiet()


def test_a_flat_network_of_12500_layers_opens_too(show: Show) -> None:
    """Nothing repeats, so nothing is collapsed: only the visible part is drawn."""
    ir = IR()
    at = ir.parameter("x", "1,2,4,4")
    for k in range(12_498):
        kind = ("Abs", "Exp", "Sigmoid", "Tanh", "Sqrt", "ReLU")[(k * k // 7 + k * 3) % 6]
        at = ir.layer(kind, [at], outputs=(f"1,{2},4,4",), name=f"n{k}")
    ir.result(at, "y")
    opened = show(ir.xml().encode())
    assert int(opened.evaluate("document.documentElement.dataset.ready")) < FIRST_PAINT
    assert opened.evaluate("document.querySelectorAll('#stage *').length") < 3000
    opened.search("n9876")
    assert "n9876" in opened.panel()
    opened.require_quiet()


def test_keyboard(show: Show) -> None:
    opened = show(ROOT / "samples/block/block.xml")
    keys = opened.page.keyboard
    keys.press("ArrowDown")
    assert opened.page.inner_text("#panel h2") == "Parameter"
    keys.press("ArrowDown")
    assert opened.page.inner_text("#panel h2") == "ConvolutionBackpropData"
    keys.press("/")
    keys.type("relu")
    keys.press("Enter")
    assert opened.page.inner_text("#panel h2") == "ReLU"
    keys.press("Escape")
    before = opened.evaluate("scale")
    keys.press("+")
    assert opened.evaluate("scale") > before
    keys.press("?")
    assert opened.page.is_visible("#help")
    opened.require_quiet()


def test_pan_and_zoom(show: Show) -> None:
    opened = show(ROOT / "samples/block/block.xml")
    mouse = opened.page.mouse
    start = opened.evaluate("[left, top_, scale]")
    mouse.move(300, 300)
    mouse.down()
    mouse.move(360, 340)
    mouse.up()
    panned = opened.evaluate("[left, top_, scale]")
    assert [round(b - a) for a, b in zip(start, panned, strict=True)] == [60, 40, 0]
    mouse.wheel(0, -200)
    opened.wait(f"scale > {start[2]}")
    opened.require_quiet()


def test_findings_lead_to_their_layers(show: Show) -> None:
    opened = show(deconvolution_ir(declared="1,3,9,9").xml().encode())
    assert "Findings (" in opened.page.inner_text("#tab-findings")
    assert "declared-dims-differ" in opened.panel()
    assert "null" not in opened.panel()
    opened.page.locator("#panel li", has_text="axis 2").first.click()
    assert opened.page.inner_text("#panel h2") == "ConvolutionBackpropData"
    assert "declared: 1" in opened.panel()
    assert opened.page.locator(".badge.error").count() > 0
    opened.require_quiet()


def test_a_broken_file(show: Show) -> None:
    opened = show(b"<net")
    assert opened.page.is_visible("#nothing")
    assert "Findings (1)" in opened.page.inner_text("#tab-findings")
    opened.page.click("#fit")
    opened.require_quiet()


def test_hostile_names_are_text(show: Show) -> None:
    name = "&lt;/script>&lt;script>alert(1)&lt;/script>&lt;img src=x onerror=alert(2)>"
    ir = IR()
    x = ir.parameter("x", "1,2")
    ir.result(ir.layer("Abs", [x], {"k": name}, outputs=("1,3",), name=name, names=name), name)
    opened = show(ir.xml().encode())
    opened.search("script")
    assert "</script><script>alert(1)</script><img src=x onerror=alert(2)>" in opened.panel()
    assert opened.page.locator("img").count() == 0
    assert opened.page.locator("script").count() == 2
    opened.require_quiet()


def test_the_policy_stops_what_the_page_does_not_need(show: Show) -> None:
    opened = show(ROOT / "samples/block/block.xml")
    opened.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x.png';"
        " document.body.append(i); }"
    )
    opened.page.wait_for_timeout(100)
    assert opened.evaluate("window.ran") is None
    assert sum("Content Security Policy" in text for text in opened.logged) >= 2


@pytest.mark.parametrize("seed", range(3))
def test_boxes_stand_where_python_places_them(seed: int, show: Show) -> None:
    ir = random_network(seed, 80)
    drawn = sketch(graph_of(ir))
    opened = show(ir.xml().encode())
    for groups in (first_open(drawn.scene), set(drawn.scene.levels)):
        found = opened.evaluate("opened => placeAll(new Set(opened))", sorted(groups))
        drawing = place(drawn.scene, drawn.sizes, groups)
        at = {p["box"]: p for p in found["places"]}
        assert len(at) == len(drawing.places)
        for p in drawing.places:
            assert [at[p.box][k] for k in ("x", "y", "width", "height", "open")] == [
                pytest.approx(v, abs=1e-6) for v in p[1:]
            ]
        lines = sorted([x["x1"], x["y1"], x["x2"], x["y2"]] for x in found["lines"])
        wanted = sorted([*line[1:5]] for line in drawing.lines)
        for ours, theirs in zip(wanted, lines, strict=True):
            assert theirs == pytest.approx(ours, abs=1e-6)


def test_dark_and_light(show: Show) -> None:
    dark = show(ROOT / "samples/block/block.xml", color_scheme="dark")
    night = dark.evaluate(PAPER)
    dark.page.click("#theme")
    assert dark.evaluate(PAPER) == "rgb(255, 255, 255)" != night
    dark.require_quiet()


def test_print(show: Show) -> None:
    opened = show(large().xml().encode(), color_scheme="dark")
    opened.page.emulate_media(media="print", color_scheme="dark")
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not opened.page.is_visible("header")
    assert opened.evaluate("canvas.getAttribute('viewBox')").startswith("0 0 ")
    assert (
        opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    )
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.evaluate("canvas.getAttribute('viewBox')") is None
    assert len(opened.page.pdf()) > 10_000
    opened.require_quiet()


def test_a_link_to_a_layer(show: Show) -> None:
    opened = show(ROOT / "samples/block/block.xml")
    opened.search("relu")
    address = opened.page.url
    assert "#layer=" in address
    opened.page.goto("about:blank")
    opened.page.goto(address)
    opened.page.wait_for_selector("html[data-ready]")
    assert opened.page.inner_text("#panel h2") == "ReLU"


def test_tensors_times_and_differences(show: Show) -> None:
    picture = png(np.arange(12, dtype=np.uint8).reshape(3, 4), SEQUENTIAL)
    source = "data:image/png;base64," + base64.b64encode(picture).decode()
    shown = {"title": "value", "low": 0, "high": 1, "source": source, "width": 40, "height": 30}
    lines = {"title": "signal", "low": "nan", "high": 2, "line": [[0, 1, None, 2]], "note": "odd"}
    extras = {
        "pictures": {"3:0": [shown, lines], "": 2},
        "profile": {"seconds": 0.002, "peak": 1e9, "layers": {"3": [0.001, 5e5, "Up+Add"]}},
        "differences": {
            "other": "b.xml", "layers": {"3": [0.5, 0.1, False, "note"]}, "structure": ["pads"],
            "culprit": "The error appears first in 'up'.",
        },
    }  # fmt: skip
    opened = show(ROOT / "samples/block/block.xml", extras)
    model = opened.panel()
    for text in ("Slowest steps", "500 MFLOP/s", "b.xml", "pads", "first in 'up'", "2 tensors"):
        assert text in model
    opened.click("ConvolutionBackpropData")
    panel = opened.panel()
    for text in ("1.00 ms, 50 % of all", "50 % of 1.00 GFLOP/s", "exceeded", "nan … 2; odd"):
        assert text in panel
    size = "[...document.images].map(i => [i.naturalWidth, i.naturalHeight])"
    assert opened.evaluate(size) == [[4, 3]]
    fill = "[...document.querySelectorAll('.box rect')].map(e => getComputedStyle(e).fill)"
    plain = opened.evaluate(fill)
    for name in ("time", "error", "cost"):
        opened.page.select_option("#colour", name)
        opened.shown()
        assert opened.evaluate(fill) != plain
    opened.page.select_option("#colour", "type")
    opened.shown()
    assert opened.evaluate(fill) == plain
    opened.require_quiet()
