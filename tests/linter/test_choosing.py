"""deconv-lint: options, settings, comments and a baseline select the findings to report."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from .conftest import Lint

FIXTURES = Path(__file__).parents[1] / "fixtures/ir"


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ([], {"IR401", "IR209"}),
        (["--select", "IR4"], {"IR401"}),
        (["--select", "shapes"], {"IR401"}),
        (["--select", "edge-dims-differ"], {"IR209"}),
        (["--ignore", "IR401"], {"IR209"}),
        (["--select", "IR4", "--ignore", "IR4", "--exit-zero"], set()),
        (["--select", "IR401", "--ignore", "IR4"], {"IR401"}),
        (["--select", "IR2", "--extend-select", "IR401"], {"IR401", "IR209"}),
        (["--select", "IR401,IR209"], {"IR401", "IR209"}),
        (["--severity", "error"], {"IR401", "IR209"}),
    ],
)
def test_choosing_rules(lint: Lint, bad: Path, options: list[str], codes: set[str]) -> None:
    done = lint(str(bad), "--format", "json", *options)
    assert {f["code"] for f in json.loads(done.out)["findings"]} == codes
    assert done.code == (1 if codes else 0)


def test_unknown_rule_names_the_nearest(lint: Lint, good: Path) -> None:
    done = lint(str(good), "--select", "declared-dim-differ")
    assert done.code == 2
    assert "did you mean 'declared-dims-differ'?" in done.err
    done = lint(str(good), "--select", "401")
    assert done.err == "error: there is no lint rule '401' (did you mean 'IR401'?)\n"
    done = lint(str(good), "--select", "IR999")
    assert done.err == "error: there is no lint rule 'IR999' (--list-rules shows all rules)\n"


def test_notes_are_shown_on_demand(lint: Lint) -> None:
    path = str(FIXTURES / "oshape_const_fp32.xml")
    assert lint(path).code == 0
    done = lint(path, "--severity", "info")
    assert done.code == 1
    assert "IR601 info" in done.out
    assert lint(path, "--select", "IR601").code == 1


def test_nearest_settings_win(lint: Lint, bad: Path, good: Path) -> None:
    Path("pyproject.toml").write_text('[tool.deconv-lint]\nignore = ["IR401", "IR209"]\n')
    assert lint(str(bad)).code == 0
    (bad.parent / "deconv-lint.toml").write_text('select = ["IR209"]\n')
    assert [f["code"] for f in json.loads(lint(str(bad), "--format", "json").out)["findings"]] == [
        "IR209"
    ]
    assert lint(str(bad), "--isolated", "--select", "IR401").code == 1
    assert lint(str(bad), "--config", "pyproject.toml").code == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("selct = []", "deconv-lint has no setting 'selct' (did you mean 'select'?)"),
        ("select = 'IR401'", "select must be a list of strings, found 'IR401'"),
        ("deep = 1", "deep must be true or false, found 1"),
        ("select = [", "the settings are not valid TOML"),
        ("select = ['IR999']", "there is no lint rule 'IR999'"),
        ("severities = {IR401 = 'bad'}", "severity of IR401 must be one of error, warning, info"),
        ("severity = 'loud'", "severity must be one of error, warning, info; found 'loud'"),
        ("per-file-ignores = {'*' = ['IR999']}", "there is no lint rule 'IR999'"),
    ],
)
def test_mistakes_in_settings(lint: Lint, good: Path, settings: str, message: str) -> None:
    Path("deconv-lint.toml").write_text(settings)
    done = lint(str(good))
    assert done.code == 2
    assert f"deconv-lint.toml: {message}" in done.err


def test_a_mistake_on_the_command_line_names_no_file(lint: Lint, good: Path) -> None:
    Path("deconv-lint.toml").write_text("select = ['IR4']\n")
    assert lint(str(good), "--ignore", "IR999").err.startswith("error: there is no lint rule")


def test_per_file_ignores_and_exclude(lint: Lint, bad: Path, good: Path) -> None:
    Path("deconv-lint.toml").write_text(
        'per-file-ignores = {"models/b*.xml" = ["IR401", "edge-dims-differ"]}\n'
    )
    assert lint("models").code == 0
    Path("deconv-lint.toml").write_text('exclude = ["models/bad.xml"]\n')
    assert lint("models").code == 0
    assert lint("models/bad.xml").code == 1, "a file that is named is checked"


def test_severities_can_be_changed(lint: Lint, bad: Path) -> None:
    Path("deconv-lint.toml").write_text('severities = {shapes = "info", IR209 = "warning"}\n')
    done = lint("models")
    assert "IR401" not in done.out
    assert "IR209 warning" in done.out


def test_comment_silences_a_layer(lint: Lint, bad: Path) -> None:
    text = bad.read_text()
    note = "<!-- deconv-lint: ignore={} -->\n\t\t"
    bad.write_text(text.replace('<layer id="5"', note.format("IR401") + '<layer id="5"'))
    done = lint(str(bad))
    assert "IR401" not in done.out
    assert "IR209" in done.out
    assert "1 more is suppressed by comments." in done.out
    bad.write_text(text.replace("<net", "<!-- deconv-lint: ignore-file=shapes,graph --><net"))
    assert lint(str(bad)).code == 0


def test_a_baseline_of_an_earlier_version_is_known(lint: Lint, bad: Path) -> None:
    """Version 0.2.0 and before identified a finding by its message."""
    keys = []
    for finding in json.loads(lint("models/bad.xml", "--format", "json").out)["findings"]:
        message = re.sub(r"line \d+", "line", finding["message"])
        digest = hashlib.sha256(f"{finding['layer']}\0{message}".encode()).hexdigest()[:16]
        keys.append(f"models/bad.xml:{finding['code']}:{digest}")
    content = {"version": 1, "findings": dict.fromkeys(keys, 1)}
    Path("known.json").write_text(json.dumps(content))
    assert len(keys) == 2
    assert lint("models/bad.xml", "--baseline", "known.json").code == 0


def test_baseline(lint: Lint, bad: Path) -> None:
    assert lint(str(bad), "--baseline", "known.json").code == 2
    done = lint(str(bad), "--baseline", "known.json", "--update-baseline")
    assert done.code == 0
    assert "2 more are in the baseline." in done.out
    text = bad.read_text()
    bad.write_text(text.replace("<layers>", "<layers>\n\n"))
    assert lint(str(bad), "--baseline", "known.json").code == 0, "lines may move"
    bad.write_text(text.replace('shape="1,4,5,6"', 'shape="1,4,5,7"'))
    assert lint(str(bad), "--baseline", "known.json").code == 1, "a new one fails"
