"""deconv-show, as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from support import deconvolution_ir, invoke_script

ROOT = Path(__file__).parents[3]
BLOCK = ROOT / "samples/block/block.xml"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_page_in_the_working_directory(tmp_path: Path) -> None:
    done = invoke_script("show", BLOCK)
    assert done.exit_code == 0
    assert str(tmp_path / "block.html") in done.output
    assert "9 layers, 0 findings" in done.output
    text = (tmp_path / "block.html").read_text()
    assert text.startswith("<!doctype html>")
    assert "ConvolutionBackpropData" in text


def test_an_existing_page_is_kept(tmp_path: Path) -> None:
    page = tmp_path / "block.html"
    page.write_text("mine")
    done = invoke_script("show", BLOCK)
    assert done.exit_code == 2
    assert "block.html already exists (use --force to overwrite, or --output)" in done.output
    assert page.read_text() == "mine"
    assert invoke_script("show", BLOCK, "--force").exit_code == 0
    assert page.read_text() != "mine"


@pytest.mark.parametrize("name", ["model.xml", "model.bin"])
def test_what_is_read_is_never_overwritten(name: str, tmp_path: Path) -> None:
    path = deconvolution_ir().save(tmp_path)
    before = (tmp_path / name).read_bytes()
    done = invoke_script("show", path, "--output", tmp_path / name, "--force")
    assert done.exit_code == 2
    assert "would overwrite" in done.output
    assert (tmp_path / name).read_bytes() == before


def test_svg_by_ending(tmp_path: Path) -> None:
    done = invoke_script("show", BLOCK, "--output", "block.svg")
    assert done.exit_code == 0
    root = etree.parse(tmp_path / "block.svg").getroot()
    assert etree.QName(root).localname == "svg"
    assert "ReLU" in [e.text for e in root.iter("{*}text")]


def test_standard_streams() -> None:
    done = invoke_script("show", "-", "--output", "-", stdin=BLOCK.read_bytes())
    assert done.exit_code == 0
    assert done.stdout.startswith("<!doctype html>")


def test_a_broken_model(tmp_path: Path) -> None:
    path = tmp_path / "broken.xml"
    path.write_text(deconvolution_ir(declared="1,3,9,9").xml())
    done = invoke_script("show", path)
    assert done.exit_code == 0
    assert "findings" in done.output
    assert "declared-dims-differ" in (tmp_path / "broken.html").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no model", "1: not well-formed XML"),
        ("", "1: not well-formed XML: Document is empty"),
        ("<svg/>", "1: the root element is <svg>, expected <net>"),
        ("<net name='n' version='11'><layers><layer", "1: not well-formed XML"),
    ],
)
@pytest.mark.parametrize("form", ["html", "svg"])
def test_a_file_without_a_graph(text: str, message: str, form: str, tmp_path: Path) -> None:
    """An error, not a page on which nothing is drawn."""
    path = tmp_path / "broken.xml"
    path.write_text(text)
    done = invoke_script("show", path, "--format", form)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {path}:{message}")
    assert list(tmp_path.iterdir()) == [path]


def test_mistakes(tmp_path: Path) -> None:
    done = invoke_script("show", "none.xml")
    assert done.exit_code == 2
    assert "none.xml" in done.output
    done = invoke_script("show", BLOCK, "--output", "none/block.html")
    assert done.exit_code == 2
    assert "none/block.html: cannot write the page" in done.output
    assert not list(tmp_path.iterdir())


def test_findings_of_the_linter_on_the_page(tmp_path: Path) -> None:
    path = deconvolution_ir(declared="1,3,9,9").save(tmp_path)
    done = invoke_script("lint", path, "--ignore", "IR2", "--html", "report.html")
    assert done.exit_code == 1
    assert "IR401" in done.output
    page = (tmp_path / "report.html").read_text()
    assert '"code":"IR401"' in page
    assert '"code":"IR2' not in page
    done = invoke_script("lint", path, "--html", path)
    assert done.exit_code == 2
    assert "would overwrite" in done.output
    for arguments in ((path, BLOCK), ("-",)):
        done = invoke_script("lint", *arguments, "--html", "other.html")
        assert done.exit_code == 2
        assert "--html" in done.output
    assert not (tmp_path / "other.html").exists()


def test_the_page_of_a_clean_model(tmp_path: Path) -> None:
    done = invoke_script("lint", BLOCK, "--html", "clean.html")
    assert done.exit_code == 0
    assert '"findings":[]' in (tmp_path / "clean.html").read_text()


def page_data(path: Path) -> dict[str, Any]:
    text = path.read_text().partition('id="data">')[2].partition("</script>")[0]
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_run_on_the_page(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 8, 16, 16)).astype(np.float32)
    np.save("x.npy", x)
    np.save("y.npy", -x)
    arguments = ("--input", "x.npy", "--other-input", "y.npy", "--profile", "--against", BLOCK)
    done = invoke_script("show", BLOCK, *arguments)
    assert done.exit_code == 0, done.output
    data = page_data(tmp_path / "block.html")
    assert set(data["pictures"]) == {"0:0", "3:0", "6:0", "7:0"}
    assert len(data["pictures"]["3:0"]) == 3
    assert list(data["profile"]["layers"]) == ["3"]
    assert all(row[2] for row in data["differences"]["layers"].values())
    assert (tmp_path / "block.html").stat().st_size < 1 << 20


def test_size_of_the_pictures(tmp_path: Path) -> None:
    sizes = []
    for size in ("8KiB", "100KiB"):
        arguments = ("--random-inputs", 0, "--max-size", size, "--force")
        assert invoke_script("show", BLOCK, *arguments).exit_code == 0
        sizes.append(len(json.dumps(page_data(tmp_path / "block.html")["pictures"])))
    assert sizes[0] <= 8 << 10 < sizes[1] <= 100 << 10


def test_arrays_are_never_overwritten(tmp_path: Path) -> None:
    np.save("x.npy", np.zeros((1, 8, 16, 16), np.float32))
    before = (tmp_path / "x.npy").read_bytes()
    done = invoke_script("show", BLOCK, "--input", "x=x.npy", "--output", "x.npy", "--force")
    assert done.exit_code == 2
    assert "would overwrite" in done.output
    assert (tmp_path / "x.npy").read_bytes() == before


def test_a_model_that_does_not_run_is_shown_without(tmp_path: Path) -> None:
    path = tmp_path / "broken.xml"
    ir = deconvolution_ir()
    ir.edges.pop(0)
    path.write_text(ir.xml())
    done = invoke_script("show", path, "--random-inputs", 0)
    assert done.exit_code == 0
    assert "the page shows no run" in done.output
    assert "pictures" not in page_data(tmp_path / "broken.html")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--profile",), "no array for input 'x'"),
        (("--input", "none.npy"), "none.npy"),
        (("--random-inputs", 0, "--other-input", "z=none.npy"), "z=none.npy"),
        (("--random-inputs", 0, "--format", "svg"), "draws the graph alone"),
        (("--random-inputs", 0, "--against", "onnxruntime"), "deconv-diff"),
        (("--random-inputs", 0, "--against", "none.xml"), "none.xml"),
        (("--random-inputs", 0, "--max-size", "lots"), "lots"),
    ],
)
def test_mistakes_of_runs(arguments: tuple[object, ...], message: str, tmp_path: Path) -> None:
    done = invoke_script("show", BLOCK, *arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [("--shape", "1,3,6,7"), ("--input", "x.npy")])
def test_a_dynamic_model_with_actual_shapes(arguments: tuple[str, ...], tmp_path: Path) -> None:
    model = ROOT / "samples/upsample/bilinear_x2.xml"
    np.save("x.npy", np.zeros((1, 3, 6, 7), np.uint8))
    assert invoke_script("show", model, "--output", "dynamic.html").exit_code == 0
    assert invoke_script("show", model, *arguments, "--output", "static.html").exit_code == 0
    texts = {name: page_data(tmp_path / f"{name}.html")["pool"] for name in ("dynamic", "static")}
    size = "1x3x{}x{} f32".replace("x", "\N{MULTIPLICATION SIGN}")
    # 2*(H - 1) + 4 - 3 - 3
    assert size.format("?", "?") + " = [1,3,2*H - 4,2*W - 4]" in texts["dynamic"]
    # 2*(6 - 1) + 4 - 3 - 3 and 2*(7 - 1) + 4 - 3 - 3
    assert size.format(8, 10) in texts["static"]
    assert any("taps" in item for item in texts["static"] if isinstance(item, dict))


def test_progress_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from deconv_cli.shared.pages import progress

    assert progress() is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    report = progress()
    assert report is not None
    for done in (0, 30, 60):
        report("Reading", done, 60)
    assert capsys.readouterr().err.split("\r") == [
        "", "\x1b[KReading", "\x1b[KReading 50 %", "\x1b[K",
    ]  # fmt: skip
