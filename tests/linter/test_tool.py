"""deconv-lint with paths that are missing, empty or strange, and its formats for services."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deconv_ir.linter.engine import check_bytes, check_file
from deconv_ir.linter.options import choose

from .conftest import case_of
from .network import NETWORK, WEIGHTS


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from deconv_cli.lint import main; main()", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.xml").write_bytes(NETWORK.read_bytes())
    (tmp_path / "good.bin").write_bytes(WEIGHTS)
    return tmp_path


def test_alone_it_lints_the_folder(folder: Path) -> None:
    assert run(folder).stdout == "No problem found in 1 file.\n"


def test_missing_path_among_good_ones_is_a_finding(folder: Path) -> None:
    done = run(folder, "good.xml", "missing.xml", "--format", "concise")
    assert done.returncode == 1
    assert done.stdout.startswith("missing.xml: IR101 ")


def test_link_that_leads_in_circles_is_a_finding(folder: Path) -> None:
    (folder / "loop.xml").symlink_to("loop.xml")
    done = run(folder, ".", "--format", "concise")
    assert done.returncode == 1
    assert done.stdout.startswith("loop.xml: IR101 ")


def test_no_files_is_a_mistake(tmp_path: Path) -> None:
    done = run(tmp_path, ".")
    assert done.returncode == 2
    assert done.stderr.startswith("warning: no IR file found")
    assert run(tmp_path, ".", "--exit-zero-on-no-files").returncode == 0


def test_gitlab(folder: Path) -> None:
    path = case_of("declared-dims-differ", "one dim").write(folder)
    done = run(folder, path.name, "--output-format", "gitlab")
    (issue,) = json.loads(done.stdout)
    assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
    assert (issue["check_name"], issue["severity"]) == ("IR401", "major")
    line = next(
        number
        for number, text in enumerate(path.read_text().split("\n"), 1)
        if "expect: IR401" in text
    )
    assert issue["location"] == {"path": path.name, "lines": {"begin": line}}


def test_pointer_of_git_lfs_is_named(folder: Path) -> None:
    (folder / "good.bin").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 888\n"
    )
    (finding,) = check_file(folder / "good.xml", choose()).findings
    assert finding.code == "IR501"
    assert "Git LFS pointer" in finding.message


def test_empty_list_of_rules_is_a_mistake(folder: Path) -> None:
    text = NETWORK.read_text().replace(
        '<layer id="1"', '<!-- deconv-lint: ignore= -->\n<layer id="1"'
    )
    found = check_bytes(text.encode(), "m.xml", choose(), folder / "good.bin").findings
    assert [f.code for f in found] == ["IR113"]


def test_end_of_a_dead_chain_is_reported_once(folder: Path) -> None:
    text = NETWORK.read_text()
    layers = "".join(
        f'<layer id="{i}" name="d{i}" type="ReLU" version="opset1"><input><port id="0"/></input>'
        f'<output><port id="1" precision="FP32"/></output></layer>\n'
        for i in range(10, 15)
    )
    edges = '<edge from-layer="0" from-port="0" to-layer="10" to-port="0"/>\n' + "".join(
        f'<edge from-layer="{i}" from-port="1" to-layer="{i + 1}" to-port="0"/>\n'
        for i in range(10, 14)
    )
    text = text.replace("</layers>", f"{layers}</layers>").replace("</edges>", f"{edges}</edges>")
    found = check_bytes(text.encode(), "m.xml", choose(select=["IR208"]), folder / "good.bin")
    (finding,) = found.findings
    assert finding.layer == "'d14' (ReLU, id 14)"
    assert finding.actual == 5


def test_page_has_every_setting(tmp_path: Path) -> None:
    """The settings that are read are those of the page, and its example is read."""
    from deconv_ir.linter.config import Config, read_config

    page = (Path(__file__).parents[2] / "docs/linting.md").read_text()
    listed = {line.split("`")[1] for line in page.split("\n") if line.startswith("| `")}
    assert listed == {name.replace("_", "-") for name in Config.fields} - {"file"}
    example = page.split("```toml\n")[1].split("```")[0]
    (tmp_path / "deconv-lint.toml").write_text(example)
    assert read_config(str(tmp_path / "deconv-lint.toml")).baseline == "lint-baseline.json"
