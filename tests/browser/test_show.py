"""Pages of deconv-show in a real browser."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser.conftest import Opened
from deconv_cli.shared.pages import read_linted_file
from deconv_cli.show.results import draw_tensors, profile
from drawn_networks import chain, graph_of, large, random_network, sketch
from support import IR, deconvolution_ir

import deconv_ir
from deconv_ir.drawing.graph.bodies import flatten
from deconv_ir.drawing.graph.labels import place_labels
from deconv_ir.drawing.graph.placing import first_open, place
from deconv_ir.drawing.graph.sketch import tensor_text
from deconv_ir.drawing.page.html import write_page
from deconv_ir.drawing.page.pictures import colours
from deconv_ir.drawing.palette import SEQUENTIAL
from deconv_ir.drawing.png import indexed_png
from deconv_ir.ir.infer import infer
from deconv_ir.linter.options import choose

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parent.parent.parent
MOST_DRAWN = 3000
"""Elements of a drawing at one time, however many layers a network has."""

PAPER = "getComputedStyle(document.body).backgroundColor"

Show = Callable[..., Any]


@pytest.fixture(scope="module")
def opened_block(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A page for tests that only call its functions."""
    file = tmp_path_factory.mktemp("block") / "page.html"
    path = ROOT / "samples/block/block.xml"
    linted = read_linted_file(path.read_bytes(), "block.xml", choose(), path.with_suffix(".bin"))
    file.write_text(write_page(linted))
    return Opened(browser.new_page(), file)


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
    assert opened.evaluate("document.querySelectorAll('#stage *').length") < MOST_DRAWN
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
    assert opened.evaluate("document.querySelectorAll('#stage *').length") < MOST_DRAWN
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
    assert opened.evaluate("document.querySelectorAll('#stage *').length") < MOST_DRAWN
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
    keys.type("up")
    keys.press("Enter")
    found = opened.evaluate("hits.map((k) => layers[k].n)")
    assert len(found) > 2
    # Then n and N are keys of the page, and not letters in the field.
    for key, number in (("n", 2), ("n", 3), ("N", 2)):
        keys.press(key)
        assert found[number - 1] in opened.panel()
        assert opened.page.inner_text("#count") == f"{number} of {len(found)}"
    assert opened.page.input_value("#search") == "up"
    keys.press("/")
    keys.type("relu")
    keys.press("Enter")
    assert opened.page.inner_text("#panel h2") == "ReLU"
    before = opened.evaluate("scale")
    keys.press("+")
    assert opened.evaluate("scale") > before
    keys.press("?")
    assert opened.page.is_visible("#help")
    opened.require_quiet()


@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("name", [*SAMPLES, "tests/fixtures/drawn/if_with_loop.xml"])
def test_a_narrow_window(name: str, width: int, show: Show) -> None:
    """Nothing is wider than the window, whatever the panel shows."""
    opened = show(ROOT / name)
    opened.page.set_viewport_size({"width": width, "height": 844})
    wide = opened.evaluate("""() => layers.filter((_, k) => {
        selectLayer(k);
        for (const part of document.querySelectorAll("details")) part.open = true;
        return [document.documentElement, panel, document.querySelector("header")]
          .some((e) => e.scrollWidth > Math.min(e.clientWidth, innerWidth));
      }).map((layer) => layer.n)""")
    assert wide == []
    for tab in ("model", "findings"):
        opened.page.click(f"#tab-{tab}")
        assert opened.evaluate("panel.scrollWidth <= panel.clientWidth")
    area = opened.page.locator("#canvas").bounding_box()
    assert area["width"] == width
    assert area["height"] > 200
    opened.require_quiet()


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("percent(1.7)", "170 %"),
        ("percent(0.5)", "50 %"),
        ("percent(0.0123)", "1.2 %"),
        ("percent(0.0003)", "less than 0.1 %"),
        ("percent(0)", "0.0 %"),
        ("scaled(1, 'FLOP')", "1 FLOP"),
        ("scaled(999.6e3, 'FLOP')", "1.00 MFLOP"),
        ("scaled(262144, 'FLOP')", "262 kFLOP"),
        ("scaled(4.5e15, 'FLOP')", "4500 TFLOP"),
        ("bytes(1)", "1 byte"),
        ("bytes(1023.9 * 1024)", "1.00 MiB"),
        ("duration(0)", "0"),
        ("duration(2.5e-6)", "2.50 µs"),
        ("duration(0.0123)", "12.3 ms"),
        ("duration(1234)", "1234 s"),
        ("counted(1, 'finding')", "1 finding"),
        ("counted(0, 'finding')", "0 findings"),
    ],
)
def test_numbers_are_for_people(opened_block: Any, script: str, text: str) -> None:
    assert opened_block.evaluate(script) == text


def test_bodies_open_inside_their_layers(show: Show) -> None:
    opened = show(ROOT / "tests/fixtures/drawn/if_with_loop.xml")
    assert any("sig" in text for text in opened.shown())
    opened.click("If If_25")
    assert not any("sig" in text for text in opened.shown())
    assert "then_body, 5 layers" in opened.panel()
    opened.search("sig")
    assert opened.page.inner_text("#panel h2") == "Sigmoid"
    assert "body of Loop_22" in opened.panel()
    assert any("Sigmoid" in text for text in opened.shown())
    assert "#layer=3/else_body/3/body/" in opened.page.url
    address = opened.page.url
    opened.search("tanh")
    opened.evaluate(f"location.hash = '{address.partition('#')[2]}'")
    opened.wait("document.querySelector('#panel h2').textContent === 'Sigmoid'")
    opened.page.click("#tab-model")
    assert "6, and 18 in bodies" in opened.panel()
    assert opened.page.locator("#panel .link", has_text="state").count() == 0
    opened.require_quiet()


def test_the_scale_of_unknown_costs(show: Show) -> None:
    opened = show(ROOT / "samples/upsample/bilinear_x2.xml")
    opened.page.select_option("#colour", "cost")
    assert "--shape gives dynamic dims a size" in opened.page.inner_text("#scale")
    opened.require_quiet()


def test_a_layer_in_view_stays_where_it_is(show: Show) -> None:
    opened = show(ROOT / "samples/block/block.xml")
    start = opened.evaluate("[left, top_, scale]")
    opened.search("relu")
    assert opened.evaluate("[left, top_, scale]") == start
    opened.evaluate("top_ = -5000")
    opened.search("relu")
    area = opened.page.locator("#canvas").bounding_box()
    box = opened.page.locator(".box").filter(has_text="ReLU").first.bounding_box()
    assert area["y"] < box["y"] < area["y"] + area["height"]


def test_a_run_of_bodies(show: Show) -> None:
    path = ROOT / "tests/fixtures/drawn/if_with_loop.xml"
    model = deconv_ir.load(path, warn=False)
    arrays = {"x": np.ones((1, 4, 6), np.float32), "cond": np.array(False)}
    parts = flatten(model.graph, infer(model.graph, model.context).outputs, model.context).parts
    pictures, runs = draw_tensors(model, arrays, None, 1 << 20, parts=parts)
    extras = {"pictures": pictures, "runs": runs, "profile": profile(model, arrays, parts)}
    opened = show(path, extras)
    opened.search("sig")
    panel = opened.panel().lower()
    assert "output in the last of 5 iterations of loop_22" in panel
    assert "in 5 runs, " in panel
    opened.search("tanh")
    assert "did not run" in opened.panel()
    opened.page.select_option("#colour", "time")
    sums = opened.evaluate("Math.min(...layers.map((_, index) => QUANTITIES.time(index)))")
    assert sums >= 0
    opened.page.click("#tab-model")
    assert "Loop_22" in opened.panel()
    opened.require_quiet()


def test_values_of_constants(show: Show) -> None:
    opened = show(ROOT / "samples/block/block.xml")
    opened.search("up/bias")
    opened.click("ConvolutionBackpropData")
    assert "The first 256 of " in opened.panel()
    opened.page.click("summary")
    assert opened.page.locator(".values td").count() == 256
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
    count = opened.evaluate("findings.length")
    assert f"{count} finding" + "s" * (count > 1) == opened.page.inner_text("#panel h2")
    opened.page.locator("#panel li", has_text="axis 2").first.click()
    assert opened.page.inner_text("#panel h2") == "ConvolutionBackpropData"
    assert "declared: 1" in opened.panel()
    assert opened.page.locator(".badge.error").count() > 0
    opened.require_quiet()


def test_a_broken_file(show: Show) -> None:
    opened = show(b"<net")
    assert opened.page.is_visible("#nothing")
    assert "Findings (1)" in opened.page.inner_text("#tab-findings")
    assert opened.page.inner_text("#panel h2") == "1 finding"
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
        opened.evaluate(
            "groups => { scene = placeAll(new Set(groups)); labels = null; "
            "drawLabels({x: 0, y: 0, width: 0, height: 0}); }",
            sorted(groups),
        )
        titles = {p.box: drawn.captions[p.box].title for p in drawing.places if p.open}
        texts = {
            k: tensor_text(drawn.outputs[a][b]) for k, (a, b) in enumerate(drawn.scene.tensors)
        }
        ours = sorted([t.x, t.y] for t in place_labels(drawing, texts, {}, titles))
        theirs = sorted([t["x"], t["y"]] for t in opened.evaluate("labels"))
        assert len(ours) == len(theirs) > 0
        for a, b in zip(ours, theirs, strict=True):
            assert a == pytest.approx(b, abs=1e-6)


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
    # In an open page, by id and by name; what names no layer changes nothing.
    rows = [
        ("layer=0", "Parameter"), ("layer=up%2Frelu", "ReLU"), ("layer=99", "ReLU"),
        ("layer=%zz", "ReLU"), ("other", "ReLU"), ("layer=0", "Parameter"),
    ]  # fmt: skip
    for wanted, kind in rows:
        opened.evaluate(f"location.hash = '{wanted}'")
        opened.wait(f"document.querySelector('#panel h2').textContent === '{kind}'")
    assert opened.logged == []


def test_tensors_times_and_differences(show: Show) -> None:
    shades = np.arange(12, dtype=np.uint8).reshape(3, 4)
    picture = indexed_png(shades, colours(SEQUENTIAL))
    source = "data:image/png;base64," + base64.b64encode(picture).decode()
    shown = {"title": "value", "low": 0, "high": 1, "source": source, "width": 40, "height": 30}
    lines = {"title": "signal", "low": "nan", "high": 2, "line": [[0, 1, None, 2]], "note": "odd"}
    extras = {
        "pictures": {"3:0": [shown, lines], "": 2},
        "profile": {"seconds": 0.002, "peak": 1e9, "layers": {"3": [0.001, 5e5, "Up+Add", 1]}},
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
    scale = {"time": "1.00 ms", "error": "0.5", "cost": "262 kFLOP"}
    for name, most in scale.items():
        opened.page.select_option("#colour", name)
        opened.shown()
        assert opened.evaluate(fill) != plain
        assert opened.page.inner_text("#scale .ticks span:last-child").startswith(most)
    opened.page.select_option("#colour", "type")
    opened.shown()
    assert opened.evaluate(fill) == plain
    assert not opened.page.is_visible("#scale")
    opened.require_quiet()
