"""The page: its contents, and that hostile text stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest
from deconv_cli.shared.pages import read_linted_file
from drawn_networks import chain, large
from hostile.mutate import Mutator
from int8_networks import CONVOLUTION, GROUPED_DECONVOLUTION, Case, write
from linter.test_bodies import MODEL as LOOP
from linter.test_bodies import add
from lxml import etree
from support import IR, deconvolution_ir

import deconv_ir
from deconv_ir.drawing.graph.sketch import svg_of
from deconv_ir.drawing.page.html import as_script, write_page
from deconv_ir.drawing.page.linted_file import LintedFile
from deconv_ir.drawing.palette import MARKS
from deconv_ir.findings import Severity
from deconv_ir.linter.options import choose

ROOT = Path(__file__).parent.parent.parent
HOSTILE = "</script><script>alert(1)</script><!-- ]]> <img src=x onerror=alert(2)> & \"' \\u003c"


class Elements(HTMLParser):
    """Collects the elements of a page, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.raw.append(data)


def linted(text: str | bytes, weights: Path | None = None, severity: str = "warning") -> LintedFile:
    data = text if isinstance(text, bytes) else text.encode()
    return read_linted_file(data, "model.xml", choose(severity=severity), weights)


def page_data(page: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    data: dict[str, Any] = json.loads(found)
    return data


def facts(data: dict[str, Any], name: str) -> dict[str, Any]:
    (layer,) = (layer for layer in data["layers"] if layer["n"] == name)
    computed: dict[str, Any] = data["pool"][layer["f"]] if "f" in layer else {}
    return layer | computed


def hostile() -> IR:
    name = quoteattr(HOSTILE)[1:-1].replace('"', "&quot;")
    ir = IR()
    x = ir.parameter("x", "1,2,4,4")
    y = ir.layer("Abs", [x], outputs=("1,2,4,4",), name=name, names=name)
    z = ir.layer(name, [y], {"attribute": name}, outputs=("1,2,4,4",), name="other", version=name)
    ir.result(z, "result")
    return ir


def test_hostile_text_is_data() -> None:
    page = write_page(linted(hostile().xml()))
    elements = Elements(page)
    tags = [tag for tag, _ in elements.found]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attrs in elements.found for name in attrs)
    data = page_data(page)
    assert [layer["n"] for layer in data["layers"]][1] == HOSTILE
    assert data["layers"][2]["t"] == HOSTILE


def test_hostile_text_in_drawings_is_text() -> None:
    sketch = linted(hostile().xml()).sketch
    assert sketch is not None
    root = etree.fromstring(svg_of(sketch).encode())
    assert {etree.QName(e).localname for e in root.iter()} == {
        "svg", "title", "defs", "marker", "path", "rect", "text",
    }  # fmt: skip
    assert any(str(e.text).startswith("</script>") for e in root.iter("{*}text"))


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "\u2028", "&lt;", "\ud800", "\0"])
def test_data_survives_as_it_is(text: str) -> None:
    written = as_script({"name": text})
    assert not set("<>&\u2028") & set(written)
    assert json.loads(written) == {"name": text}


def test_nothing_but_the_scripts_and_styles_of_the_page_may_run() -> None:
    page = write_page(linted(deconvolution_ir().xml()))
    elements = Elements(page)
    (policy,) = (a["content"] for t, a in elements.found if t == "meta" and "http-equiv" in a)
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    hashes = {
        f"'sha256-{base64.b64encode(hashlib.sha256(raw.encode()).digest()).decode()}'"
        for raw in elements.raw
    }
    assert {rules["script-src"], rules["style-src"]} <= hashes
    assert "unsafe" not in str(policy)
    # The page loads nothing, and has no attribute that requires styles or handlers to be allowed.
    for tag, attributes in elements.found:
        assert not {"src", "href", "style", "srcset", "action"} & set(attributes), tag
    assert "http:" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https:" not in page


def test_the_page_has_the_colours_of_the_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    before = MARKS[Severity.ERROR]
    assert before in write_page(linted(deconvolution_ir().xml()))
    monkeypatch.setitem(MARKS, Severity.ERROR, "#123456")
    page = write_page(linted(deconvolution_ir().xml()))
    assert "#123456" in page
    assert before not in page


def test_scripts_place_text_as_text() -> None:
    folder = ROOT / "deconv_ir/drawing/page/assets"
    for path in folder.glob("*.js"):
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in path.read_text(), path.name


def test_size_of_200_layers() -> None:
    page = write_page(linted(chain(200, lambda k: f"Layer_{k}").xml()))
    assert len(page_data(page)["layers"]) == 200
    assert len(page.encode()) <= 400 * 1024


def test_size_of_2500_layers() -> None:
    """A page grows in proportion: 12,500 layers, as in the browser's tests, fit into 8 MiB."""
    page = write_page(linted(large(2_500).xml()))
    assert len(page_data(page)["layers"]) == 2_500
    assert len(page.encode()) <= (8 << 20) / 5


def test_facts_of_a_deconvolution(tmp_path: Path) -> None:
    ir = deconvolution_ir(attributes={
        "strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1",
        "output_padding": "1,1",
    })  # fmt: skip
    path = ir.save(tmp_path)
    data = page_data(write_page(linted(path.read_bytes(), tmp_path / "model.bin")))
    up = facts(data, "up")
    # Y = 2*(5 - 1) + 3 - 1 - 1 + 1 = 10; S1 of the specification.
    assert any(
        text.endswith("2*(5 - 1) + ((3 - 1)*1 + 1) - 1 - 1 + 1 = 10") for text in up["formula"]
    )
    assert up["pads"] == [[[1, 1], [1, 1]], [[1, 1], [1, 1]], "OpenVINO"]
    assert up["axes"] == [[5, 3, 2, 1, 1, 1, 1, 10]] * 2
    # Input x meets outputs 2x - 1, 2x, 2x + 1.
    taps = [sum(2 * x + k - 1 == y for x in range(5) for k in range(3)) for y in range(10)]
    assert up["taps"] == [taps, taps]
    assert up["even"] == [[1, 2], [1, 2]]
    assert "1 and 2 taps" in up["advice"]
    assert up["flop"] == 2 * 2 * 25 * 3 * 9
    assert up["l"] == next(n for n, s in enumerate(ir.xml().splitlines(), 1) if 'name="up"' in s)
    weights = data["constants"][
        str(next(k for k, v in enumerate(data["layers"]) if v["n"] == "filter"))
    ]
    array = np.random.default_rng(0).standard_normal((2, 3, 3, 3)).astype(np.float32)
    assert weights["min"] == pytest.approx(array.min(), rel=1e-4)
    assert weights["max"] == pytest.approx(array.max(), rel=1e-4)
    assert sum(weights["bins"]) == array.size


def test_pads_under_both_semantics() -> None:
    """For an odd total padding the documents and OpenVINO place the pads differently."""
    path = ROOT / "tests/fixtures/ir/oshape_const_fp32.xml"
    data = page_data(write_page(linted(path.read_bytes(), path.with_suffix(".bin"))))
    model = deconv_ir.load(path, warn=False)
    found = [f for f in model.findings if f.rule == "profiles-differ"]
    shown = [facts(data, x["n"]).get("pads") for x in data["layers"] if x["t"].startswith("Conv")]
    assert len(found) == 1
    assert any(pads and pads[0] != pads[1] for pads in shown)
    (pads,) = (pads for pads in shown if pads)
    assert (tuple(pads[0][0]), tuple(pads[1][0])) == (found[0].expected, found[0].actual)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("<net", "not-xml"),
        ("<net name='n' version='11'><layers/><edges/></net>", ""),
        ("", ""),
        ("hello", ""),
        ("{}", ""),
        ('{"graph": [', ""),
    ],
)
def test_broken_files_give_a_page_with_findings(text: str, rule: str) -> None:
    data = page_data(write_page(linted(text)))
    assert data["findings"]
    assert "boxes" not in data


def test_a_broken_network_gives_its_graph_and_findings() -> None:
    ir = deconvolution_ir(declared="1,3,9,9")
    ir.edges.append('<edge from-layer="0" from-port="0" to-layer="2" to-port="1"/>\n')
    data = page_data(write_page(linted(ir.xml())))
    assert len(data["boxes"]) > 1
    assert {f["rule"] for f in data["findings"]} >= {"two-edges-into-port"}
    assert any(f["at"] >= 0 and data["layers"][f["at"]]["n"] == "up" for f in data["findings"])


def test_a_cycle_is_drawn() -> None:
    ir = IR()
    x = ir.parameter("x", "1,2")
    a = ir.layer("Add", [x, (2, 2)], outputs=("1,2",), name="a")
    ir.result(ir.layer("Add", [a, x], outputs=("1,2",), name="b"), "y")
    data = page_data(write_page(linted(ir.xml())))
    assert "cycle" in [f["rule"] for f in data["findings"]]
    assert sum(box[5] >= 0 for box in data["boxes"]) == 4


@pytest.mark.parametrize("sample", ["upsample", "int8"])
def test_onednn_graphs(sample: str) -> None:
    path = ROOT / f"samples/onednn/{sample}.json"
    data = page_data(write_page(read_linted_file(path.read_bytes(), str(path), choose())))
    assert len(data["boxes"]) > 3
    if sample == "upsample":
        assert any("taps" in fact for fact in data["pool"] if isinstance(fact, dict))


@pytest.mark.parametrize(
    ("old", "new", "code", "layer"),
    [
        (add(3, "2,1,4", "2,1,4"), add(3, "2,1,5", "2,1,4"), "IR401", "add3"),
        (
            'name="state" type="Parameter" version="opset1"', 'name="state" type="Param"',
            "IR214", "state",
        ),
        ('internal_layer_id="5"', 'internal_layer_id="55"', "IR215", "ti"),
    ],
)  # fmt: skip
def test_findings_of_a_body_belong_to_its_layers(
    old: str, new: str, code: str, layer: str, tmp_path: Path
) -> None:
    weights = tmp_path / "m.bin"
    weights.write_bytes(bytes(16))
    assert old in LOOP
    data = page_data(write_page(linted(LOOP.replace(old, new, 1), weights)))
    names = {data["layers"][f["at"]]["n"] for f in data["findings"] if f["code"] == code}
    assert layer in names


def test_layers_of_bodies_have_facts() -> None:
    data = page_data(write_page(linted(LOOP)))
    (loop,) = (k for k, layer in enumerate(data["layers"]) if layer["n"] == "ti")
    inside = [layer for layer in data["layers"] if layer.get("of", [-1])[0] == loop]
    assert len(inside) == data["totals"]["in_bodies"] == 7
    assert {data["pool"][layer["of"][1]] for layer in inside} == {"body"}
    # Two additions of 2 * 1 * 4 elements.
    assert data["totals"]["flop"] == sum(facts(data, f"add{k}")["flop"] for k in (3, 6)) == 16


DYNAMIC = ("?,16,?,?", "-1,16,-1,-1")


@pytest.mark.parametrize(
    ("given", "declared", "precision", "shown", "wrong"),
    [
        (DYNAMIC[0], DYNAMIC[1], "FP32", "", False),
        ("1..8,16,?,?", DYNAMIC[1], "FP32", "", False),
        ("1,16,8,8", DYNAMIC[1], "FP32", "", False),
        ("...", "", "FP32", "", False),  # a port without dims says nothing
        ("", "", "FP32", "", False),
        (DYNAMIC[0], "1,16,8,8", "FP32", "1*16*8*8 f32", False),  # says more
        ("1..8,16,?,?", "9,16,8,8", "FP32", "9*16*8*8 f32", True),
        (DYNAMIC[0], "1,17,-1,-1", "FP32", "1*17*?*? f32", True),
        (DYNAMIC[0], "1,16,8", "FP32", "1*16*8 f32", True),
        ("1,16,8,8", "1,16,8,8", "FP16", "1*16*8*8 f16", True),
    ],
)  # fmt: skip
def test_declared_dims_are_shown_where_they_say_something_else(
    given: str, declared: str, precision: str, shown: str, wrong: bool
) -> None:
    ir = IR()
    x = ir.parameter("x", given)
    y = ir.layer("Abs", [x], outputs=(declared,), precision=precision, name="y")
    ir.result(y, "out")
    data = page_data(write_page(linted(ir.xml())))
    (row,) = (row for row in data["tensors"] if data["layers"][row[0]]["n"] == "y")
    text = data["pool"][row[3]] if len(row) > 3 else ""
    assert (text.replace("\N{MULTIPLICATION SIGN}", "*"), len(row) > 5) == (shown, wrong)


def test_dims_without_upper_bound_are_question_marks() -> None:
    """Inference knows that extents of images are at least 1: pictures need not say that."""
    ir = IR()
    x = ir.parameter("x", "?,2,?,1..8")
    ir.result(ir.layer("MaxPool", [x], {
        "kernel": "2,2", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0",
    }, outputs=("-1,2,-1,-1",), name="y"), "out")  # fmt: skip
    data = page_data(write_page(linted(ir.xml())))
    texts = {data["layers"][row[0]]["n"]: data["pool"][row[2]] for row in data["tensors"]}
    assert texts["y"].replace("\N{MULTIPLICATION SIGN}", "*") == "?*2*?*1..7 f32"


def test_long_steps_report_how_far_they_are() -> None:
    steps: list[tuple[str, int, int]] = []
    write_page(
        linted(chain(600, lambda k: f"Layer_{k}").xml()),
        progress=lambda step, done, total: steps.append((step, done, total)),
    )
    assert {step for step, _, _ in steps} == {"Laying out", "Reading layers"}
    read = [(done, total) for step, done, total in steps if step == "Reading layers"]
    assert read == sorted(read)
    assert len(read) > 2
    assert read[-1] == (600, 600)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_mutated_models_give_pages(first: int, tmp_path: Path) -> None:
    """Every file gives a page, whatever is wrong with it; many of these have a graph."""
    mutator = Mutator()
    weights = tmp_path / "model.bin"
    graphs = 0
    for number in range(first, first + 20):
        seed = mutator.make(26, number)
        weights.write_bytes(seed.weights)
        found = linted(seed.xml, weights, severity="info")
        data = page_data(write_page(found))
        graphs += "boxes" in data
        if found.sketch is not None:
            etree.fromstring(svg_of(found.sketch, found.marks()).encode())
    assert graphs


def add_body(ir: IR) -> None:
    """Add a TensorIterator that adds up rows, beside the other layers."""
    body = ir.body()
    row, total = (body.parameter(name, "1,8") for name in ("row", "total"))
    body.result(body.layer("Add", [row, total]))
    port_map = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0" '
        'stride="1" part_size="1"/>'
        '<input external_port_id="1" internal_layer_id="1"/>'
        '<output external_port_id="2" internal_layer_id="3"/></port_map>'
        '<back_edges><edge from-layer="3" to-layer="1"/></back_edges>'
        f"<body>{body.sections()}</body>"
    )
    inputs = [ir.parameter("rows", "4,8"), ir.const(np.zeros((1, 8), np.float32))]
    ir.result(ir.layer("TensorIterator", inputs, bodies=port_map))


@pytest.mark.parametrize("with_body", [False, True])
def test_sizes_of_a_dynamic_model_are_expressions(with_body: bool, tmp_path: Path) -> None:
    """A kernel of 2 and a stride of 2 without pads double the extents: Y = 2*(X - 1) + 2."""
    attributes = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    ir = deconvolution_ir("?,2,?,?", (2, 3, 2, 2), attributes)
    if with_body:
        add_body(ir)
    path = ir.save(tmp_path)
    data = page_data(write_page(linted(path.read_bytes(), tmp_path / "model.bin")))
    assert ("in_bodies" in data["totals"]) is with_body
    shown = [data["pool"][row[2]] for row in data["tensors"]]
    assert shown[0] == "?×2×?×? f32 = [N,2,H,W]"  # noqa: RUF001
    assert shown[2].endswith(" = [N,3,2*H,2*W]")


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (
            GROUPED_DECONVOLUTION,
            "computed in f32: a GroupConvolutionBackpropData is never quantised",
        ),
        (CONVOLUTION, "computed in integers"),
        (CONVOLUTION._replace(data=None, weights=None), None),
    ],
    ids=str,
)
@pytest.mark.parametrize("with_body", [False, True])
def test_what_openvino_computes_in_integers(
    layer: Case, text: str | None, with_body: bool, tmp_path: Path
) -> None:
    ir = write(layer)
    if with_body:
        add_body(ir)
    path = ir.save(tmp_path)
    data = page_data(write_page(linted(path.read_bytes(), tmp_path / "model.bin")))
    assert ("in_bodies" in data["totals"]) is with_body
    shown = next(found for found in data["layers"] if found["n"] == "the_layer").get("q")
    assert (None if shown is None else data["pool"][shown]) == text
