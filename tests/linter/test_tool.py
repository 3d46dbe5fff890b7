"""deconv-lint with paths that are missing, empty or unusual, and its formats for services."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from deconv_cli.shared.reporters.sarif import rules_page
from hostile.children import python

from deconv_ir import load
from deconv_ir.errors import IRError
from deconv_ir.limits import Limits
from deconv_ir.linter.engine import check_bytes, check_file
from deconv_ir.linter.options import choose
from deconv_ir.linter.rule import FAMILIES

from .conftest import case_of
from .network import NETWORK, WEIGHTS

ROOT = Path(__file__).parents[2]


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return python(
        "from deconv_cli.lint.command import main; main()",
        *arguments,
        cwd=folder,
        env=os.environ | {"XDG_CACHE_HOME": str(folder / ".cache")} | environment,
        text=True,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.xml").write_bytes(NETWORK.read_bytes())
    (tmp_path / "good.bin").write_bytes(WEIGHTS)
    return tmp_path


def test_alone_it_lints_the_folder(folder: Path) -> None:
    assert run(folder).stdout.startswith("No problem found in 1 file.")


def test_help_names_every_family(folder: Path) -> None:
    (named,) = re.findall(r"or family\s+\(([^)]*)\)", run(folder, "--help").stdout)
    assert re.split(r",\s+", named) == list(FAMILIES.values())


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


@pytest.mark.parametrize(
    ("directive", "options", "found"),
    [
        ("ignore=IR202", {}, ["IR113"]),
        ("ignore=IR202", {"ignore": ["IR202"]}, []),  # the rule is not run
        ("ignore=IR508", {}, []),  # it runs with --deep
        ("ignore=IR508", {"deep": True}, ["IR113"]),
        ("ignore=IR401", {"reshape": {"x": (1, 4, 7, 6)}}, []),  # dims are not compared
        ("ignore-file=IR2", {"select": ["IR113"]}, []),
        ("ignore-file=IR2", {"select": ["file", "IR208"]}, []),  # other rules of IR2 are not run
        ("ignore", {"ignore": ["IR801"]}, ["IR113"]),
        ("ignore-file=IR1,IR309", {}, ["IR113", "IR113"]),
    ],
)
def test_directive_that_silences_nothing(
    directive: str, options: dict[str, Any], found: list[str], folder: Path
) -> None:
    text = NETWORK.read_text().replace(
        '<layer id="5"', f'<!-- deconv-lint: {directive} -->\n<layer id="5"'
    )
    result = check_bytes(text.encode(), "m.xml", choose(**options), folder / "good.bin")
    assert [f.code for f in result.findings] == found
    assert all("silences nothing" in f.message for f in result.findings)


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        *((f" {c} ", ["IR113"]) for c in ("deconv-lnt: ignore=IR401", "deconv-lint ignore=IR401")),
        *((c, ["IR113"]) for c in ("deconv_lint: ignore=IR401", "Deconv-Lint: ignore=IR401")),
        *((c, ["IR113"]) for c in ("deconv-lint: ingore=IR401", "deconv-lint: disable=IR401")),
        *((c, []) for c in ("deconv-lint found nothing here", "reconvert: ignore", " note ")),
    ],
)
def test_misspelt_directive(comment: str, found: list[str], folder: Path) -> None:
    text = NETWORK.read_text().replace('<layer id="5"', f'<!--{comment}-->\n<layer id="5"')
    result = check_bytes(text.encode(), "m.xml", choose(), folder / "good.bin")
    assert [f.code for f in result.findings] == found


def test_mistakes_beyond_the_limit_have_lines(folder: Path) -> None:
    """If no graph is built, findings cannot refer to a place in it."""
    text = NETWORK.read_text().replace("element_type=", "element_typ=")
    result = check_bytes(text.encode(), "m.xml", choose(), limits=Limits(problems=2))
    assert sorted(f.code for f in result.findings) == ["IR111", "IR301", "IR301"]
    assert all(f.line for f in result.findings)


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


def broken(folder: Path, name: str) -> Path:
    """Write an IR with one wrong dim."""
    path = case_of("declared-dims-differ", "one dim").write(folder)
    path.with_suffix(".bin").rename(folder / f"{name}.bin")
    return path.rename(folder / f"{name}.xml")


class TestBaseline:
    def test_update_of_one_file_keeps_the_others(self, folder: Path) -> None:
        for name in ("a", "b"):
            broken(folder, name)
        assert run(folder, ".", "--baseline", "known.json", "--update-baseline").returncode == 0
        done = run(folder, "a.xml", "--baseline", "known.json", "--update-baseline")
        assert "1 more is in the baseline." in done.stdout
        assert run(folder, ".", "--baseline", "known.json").returncode == 0
        # A file that is fixed or deleted has no entry.
        (folder / "a.xml").write_bytes(NETWORK.read_bytes())
        (folder / "b.xml").unlink()
        run(folder, "a.xml", "--baseline", "known.json", "--update-baseline")
        assert json.loads((folder / "known.json").read_text())["findings"] == {}

    def test_update_keeps_entries_of_rules_that_are_not_run(self, folder: Path) -> None:
        broken(folder, "a")
        run(folder, "a.xml", "--baseline", "known.json", "--update-baseline")
        run(folder, "a.xml", "--ignore", "IR4", "--baseline", "known.json", "--update-baseline")
        assert run(folder, "a.xml", "--baseline", "known.json").returncode == 0

    def test_paths_begin_at_the_settings(self, folder: Path) -> None:
        (folder / "deconv-lint.toml").write_text('baseline = "lint/known.json"')
        for name in ("lint", "models"):
            (folder / name).mkdir()
        broken(folder / "models", "a")
        assert run(folder / "models", "a.xml", "--update-baseline").returncode == 0
        (key,) = json.loads((folder / "lint/known.json").read_text())["findings"]
        assert key.startswith("models/a.xml:IR401:")
        assert run(folder, "models").returncode == 0

    def test_another_file_is_not_overwritten(self, folder: Path) -> None:
        (folder / "notes.json").write_text("{}")
        done = run(folder, "good.xml", "--baseline", "notes.json", "--update-baseline")
        assert done.stderr == "error: notes.json: not a baseline of deconv-lint\n"
        assert (folder / "notes.json").read_text() == "{}"


def test_weights_stand_for_their_model(folder: Path) -> None:
    """pre-commit passes the .bin alone if a commit changes nothing else."""
    broken(folder, "bad")
    (folder / "firmware.bin").write_bytes(b"no weights")
    done = run(folder, "bad.bin", "bad.xml", "good.bin", "firmware.bin", "--exit-zero-on-no-files")
    assert re.search(r"Found 1 error in 1 of 2 files\.", done.stdout)
    assert run(folder, "firmware.bin", "--exit-zero-on-no-files").returncode == 0


@pytest.mark.parametrize("hook", ["deconv-lint", "deconv-lint-fix"])
def test_hook_is_called_for_weights(hook: str) -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    _, _, own = text.partition(f"- id: {hook}\n")
    own = own.partition("- id:")[0]
    files = re.search(r"^  files: (\S+)", own, re.MULTILINE)
    assert files is not None
    assert "types" not in own
    named = ["a.xml", "models/a.bin", "a.xml.txt", "bin", "abin"]
    assert [n for n in named if re.search(files[1], n)] == ["a.xml", "models/a.bin"]
    assert "--exit-zero-on-no-files" in own


def test_graphs_of_onednn_in_folders_are_found(folder: Path) -> None:
    graph = (ROOT / "samples/onednn/int8.json").read_bytes()
    (folder / "graph.json").write_bytes(graph)
    (folder / "least.json").write_text(
        '{"graph": [{"id": 0, "kind": "ReLU", "inputs": [{"id": 0}], "outputs": [{"id": 1}]}]}'
    )
    (folder / "package.json").write_text('{"name": "x", "version": "1.0.0"}')
    (folder / "plot.json").write_text('{"graph": [{"kind": "bar", "title": "x"}]}')
    (folder / "broken.json").write_text('{"graph"')
    (folder / "empty.json").write_text("")
    assert run(folder, ".", "--show-files").stdout == "good.xml\ngraph.json\nleast.json\n"


def test_execution_graph_is_named(folder: Path) -> None:
    """The file begins like the one that OpenVINO 2026.4 saved for samples/block."""
    path = folder / "exec_block.xml"
    layers = [
        f'<layer id="{i}" name="x{i}" type="{kind}"><data execOrder="{i}" '
        'execTimeMcs="not_executed" originalLayersNames="x" outputLayouts="abcd" '
        'outputPrecisions="f32" primitiveType="unknown_f32" runtimePrecision="f32" /></layer>'
        for i, kind in enumerate(("Input", "Reorder", "Const", "Deconvolution"))
    ]
    path.write_text(f'<net name="b" version="11"><layers>{"".join(layers)}</layers></net>')
    (finding,) = check_file(path, choose(severity="info")).findings
    assert finding.code == "IR115"
    with pytest.raises(IRError, match="OpenVINO execution graph"):
        load(path)


class TestColour:
    @staticmethod
    def shown(folder: Path, **environment: str) -> bytes:
        """Run deconv-lint on a terminal."""
        ours, theirs = pty.openpty()
        code = "from deconv_cli.lint.command import main; main()"
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | environment
        subprocess.run(
            [sys.executable, "-c", code, "bad.xml", "--ignore", "IR209"],
            cwd=folder,
            env=environment,
            stdout=theirs,
            stderr=theirs,
            check=False,
        )
        os.close(theirs)
        text = os.read(ours, 1 << 16)
        os.close(ours)
        return text

    def test_no_color(self, folder: Path) -> None:
        broken(folder, "bad")
        assert b"\x1b[" in self.shown(folder, NO_COLOR="")
        plain = self.shown(folder, NO_COLOR="1")
        assert b"IR401" in plain
        assert b"\x1b" not in plain


@pytest.mark.parametrize("name", ["/dev/stdout", "-"])
def test_output_to_standard_output(folder: Path, name: str) -> None:
    wanted = run(folder, "good.xml", "--format", "json").stdout
    assert run(folder, "good.xml", "--format", "json", "--output", name).stdout == wanted
    assert not (folder / "-").exists()


def test_output_to_a_device(folder: Path) -> None:
    done = run(folder, "good.xml", "--output", os.devnull)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class TestSettings:
    def test_show_settings_prints_the_settings_in_effect(self, folder: Path) -> None:
        (folder / "deconv-lint.toml").write_text('ignore = ["IR2"]\nseverities = {IR4 = "info"}')
        done = run(folder, ".", "--show-settings", "--ignore", "IR505", "--semantics", "openvino")
        shown = tomllib.loads(done.stdout)
        assert shown["ignore"] == ["IR2", "IR505"]
        assert shown["semantics"] == "openvino"
        assert shown["severities"] == {"IR4": "info"}
        assert f"# settings from {folder / 'deconv-lint.toml'}" in done.stdout
        (group,) = json.loads(run(folder, "--show-settings", "--format", "json").stdout)
        assert group["files"] == ["good.xml"]
        assert "IR201" not in group["rules"]
        assert "IR302" in group["rules"]

    def test_what_is_shown_is_read(self, folder: Path) -> None:
        shown = run(folder, "--show-settings").stdout
        (folder / "deconv-lint.toml").write_text(shown)
        again = run(folder, "--show-settings").stdout
        assert tomllib.loads(again) == tomllib.loads(shown)

    def test_schema(self, folder: Path) -> None:
        schema = json.loads(run(folder, "--settings-schema").stdout)
        assert schema == json.loads((ROOT / "docs/deconv-lint.schema.json").read_text())
        validator = jsonschema.Draft7Validator(schema)
        validator.check_schema(schema)
        page = (ROOT / "docs/linting.md").read_text()
        example = page.split("```toml\n")[1].split("```")[0]
        validator.validate(tomllib.loads(example))
        for wrong in (
            *({"selct": []}, {"select": "IR4"}, {"severity": "loud"}, {"deep": 1}),
            *({"severities": {"IR4": "loud"}}, {"per-file-ignores": {"*": "IR4"}}),
        ):
            assert not validator.is_valid(wrong), wrong


def test_help_uri(folder: Path) -> None:
    broken(folder, "bad")
    page = "https://example.org/rules.md"
    (folder / "deconv-lint.toml").write_text(f'docs-url = "{page}"')
    done = run(folder, "bad.xml", "--format", "sarif")
    rules = json.loads(done.stdout)["runs"][0]["tool"]["driver"]["rules"]
    shown = {rule["id"]: rule["helpUri"] for rule in rules}
    assert shown["IR401"] == f"{page}#ir401-declared-dims-differ"
    anchor = "### IR401 declared-dims-differ\n"
    assert anchor in (ROOT / "docs/rules.md").read_text()


@pytest.mark.parametrize(
    ("origin", "page"),
    [
        (
            {"url": "https://host/a/b.git", "vcs_info": {"vcs": "git", "commit_id": "0af"}},
            "https://host/a/b/blob/0af/docs/rules.md",
        ),
        ({"url": "file:///home/me/b", "vcs_info": {"vcs": "git", "commit_id": "0af"}}, None),
        ({"url": "https://host/b.whl", "archive_info": {}}, None),
        (None, None),
    ],
)
def test_page_of_the_installation(
    origin: dict[str, object] | None, page: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record has the form of the packaging specification (direct_url.json)."""

    class Distribution:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return origin and json.dumps(origin)

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Distribution())
    assert rules_page() == page


def test_page_has_every_setting(tmp_path: Path) -> None:
    """The settings that are read are those on the page, and its example is valid."""
    from deconv_ir.linter.config import Config, read_config

    page = (Path(__file__).parents[2] / "docs/linting.md").read_text()
    table = page.partition("| setting |")[2].partition("\n\n")[0]
    listed = {line.split("`")[1] for line in table.split("\n") if line.startswith("| `")}
    # `tables` are the settings of other packages.
    assert listed == {name.replace("_", "-") for name in Config._fields} - {"file", "tables"}
    example = page.split("```toml\n")[1].split("```")[0]
    (tmp_path / "deconv-lint.toml").write_text(example)
    assert read_config(str(tmp_path / "deconv-lint.toml")).baseline == "lint-baseline.json"
