"""deconv-show, as a user sees it."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree
from support import deconvolution_ir, invoke_script

ROOT = Path(__file__).parent.parent.parent
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
    path.write_text("no model")
    assert invoke_script("show", path, "--force").exit_code == 0
    done = invoke_script("show", path, "--format", "svg")
    assert done.exit_code == 2
    assert "no graph to draw" in done.output
    assert not (tmp_path / "broken.svg").exists()


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
