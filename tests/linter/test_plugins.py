"""Rules of another package: found as entry points, with settings, a fix and states; what breaks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from .network import NETWORK, WEIGHTS

PAGE = (Path(__file__).parents[2] / "docs/extending-rules.md").read_text()
RULES, ENTRY_POINT, SETTINGS = re.findall(r"```\w+\n(.*?)```", PAGE, re.S)


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Site:
    """A folder with an installed package, and a network."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "m.xml").write_bytes(NETWORK.read_bytes())
        (folder / "m.bin").write_bytes(WEIGHTS)

    def install(self, code: str, letters: str = "ACME", name: str = "acme") -> None:
        information = self.folder / "site" / f"{name}_rules-1.0.dist-info"
        information.mkdir(parents=True)
        (self.folder / "site" / f"{name}_rules.py").write_text(code)
        metadata = f"Metadata-Version: 2.1\nName: {name}-rules\nVersion: 1.0\n"
        (information / "METADATA").write_text(metadata)
        points = f"[deconv_ir.lint_rules]\n{letters} = {name}_rules\n"
        (information / "entry_points.txt").write_text(points)

    def lint(self, *arguments: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "deconv_ir", "lint", *arguments],
            check=False,
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder / "site"), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
        )
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = Site(tmp_path_factory.mktemp("acme"))
    made.install(RULES)
    (made.folder / "limit.toml").write_text(SETTINGS.replace("2", "1"))
    return made


def codes(done: Done) -> list[str]:
    return [finding["code"] for finding in json.loads(done.out)["findings"]]


def test_a_package_adds_a_rule_with_a_setting(acme: Site) -> None:
    assert 'ACME = "acme_rules"' in ENTRY_POINT
    assert codes(acme.lint("m.xml", "--format", "json")) == []
    done = acme.lint("m.xml", "--config", "limit.toml", "--format", "json")
    assert codes(done) == ["ACME101"]
    assert "stride 2 is larger than 1" in done.out
    shown = acme.lint("m.xml", "--config", "limit.toml", "--show-settings")
    assert 'acme = { "largest-stride" = 1 }' in shown.out
    schema = json.loads(acme.lint("--settings-schema").out)
    assert schema["properties"]["acme"]["properties"]["largest-stride"]["type"] == "integer"


def test_its_results_are_cached_by_their_settings(acme: Site, tmp_path: Path) -> None:
    cache = ["--cache-dir", str(tmp_path), "--format", "json"]
    for _ in range(2):
        assert codes(acme.lint("m.xml", *cache)) == []
        assert codes(acme.lint("m.xml", "--config", "limit.toml", *cache)) == ["ACME101"]


def test_its_fix_is_made(acme: Site) -> None:
    options = ("m.xml", "--config", "limit.toml", "--diff", "--unsafe-fixes")
    assert '+\t\t\t<data strides="1,1"' in acme.lint(*options).out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), []),
        (("--select", "ACME"), []),
        (("--select", "acme"), []),
        (("--select", "ALL"), []),
        (("--preview",), ["ACME102"]),
        (("--select", "any-network"), ["ACME102"]),
        (("--preview", "--select", "ACME", "--ignore", "ACME102"), []),
        (("--select", "acme103"), ["ACME103"]),
    ],
)
def test_states(acme: Site, options: tuple[str, ...], expected: list[str]) -> None:
    """A rule in preview runs if asked for; a deprecated one only if it is named, with a warning."""
    done = acme.lint("m.xml", "--format", "json", *options)
    assert codes(done) == expected
    warning = "warning: rule ACME103 old-network is deprecated; use ACME102\n"
    assert done.err == (warning if "ACME103" in expected else "")


def test_it_is_listed_and_explained(acme: Site) -> None:
    listed = acme.lint("--list-rules").out
    assert "\nacme\n  ACME101 + large-stride" in listed
    assert "A network is checked. (preview)" in listed
    rows = json.loads(acme.lint("--list-rules", "--format", "json").out)
    states = {row["code"]: row["state"] for row in rows if row["family"] == "acme"}
    assert list(states.values()) == ["stable", "preview", "deprecated"]
    explained = acme.lint("--explain", "large-stride").out
    for text in (
        "ACME101 large-stride",
        "A stride is larger than the accelerator takes.",
        '<data strides="8,8"/>',
        "largest-stride = 4  # Limit of ACME101",
        "Documentation: https://acme.example/rules#ACME101",
    ):
        assert text in explained
    assert (
        "Deprecated: runs only if it is named; use ACME102."
        in acme.lint("--explain", "ACME103").out
    )


def test_its_page_is_linked(acme: Site) -> None:
    done = acme.lint("m.xml", "--config", "limit.toml", "--format", "sarif")
    (rule,) = json.loads(done.out)["runs"][0]["tool"]["driver"]["rules"]
    assert rule["helpUri"] == "https://acme.example/rules#ACME101"


HEAD = "from deconv_ir.lint_rules import WARNING, rule\n"


def declared(code: str, name: str, text: str = '"""Text."""') -> str:
    function = f"def a(context):\n    {text}\n    yield from ()\n"
    return f'{HEAD}@rule("{code}", "{name}", WARNING)\n{function}'


BROKEN = [
    ("ACME", "import missing_module", "ModuleNotFoundError: No module named 'missing_module'"),
    ("ACME", "1/0", "ZeroDivisionError: division by zero"),
    ("ACME", "", "the module declares no rule"),
    ("IR", declared("IR999", "a-rule"), "'IR' cannot be the letters of a package's codes"),
    ("SHAPES", declared("SHAPES1", "a-rule"), "'SHAPES' cannot be the letters"),
    ("acme", declared("acme1", "a-rule"), "'acme' cannot be the letters"),
    (
        "ACME",
        declared("IR401", "a-rule"),
        "there is already a lint rule IR401, declared-dims-differ",
    ),
    ("ACME", declared("ACNE1", "a-rule"), "rule ACNE1 must have a code of ACME and a number"),
    ("ACME", declared("ACME1", "no-size-fits"), "rule ACME1 has the name of IR417, no-size-fits"),
    ("ACME", declared("ACME1", "Rule"), "rule ACME1 is named 'Rule'"),
    ("ACME", declared("ACME1", "a-rule", "pass"), "rule ACME1 has no docstring"),
]


@pytest.mark.parametrize(("letters", "code", "message"), BROKEN, ids=[m for *_, m in BROKEN])
def test_a_broken_package_is_one_line(site: Site, letters: str, code: str, message: str) -> None:
    site.install(code, letters)
    for arguments in (("m.xml",), ("--list-rules",)):
        done = site.lint(*arguments)
        assert (done.code, done.out) == (2, "")
        head = f"error: lint rules {letters} of acme-rules 1.0 cannot be loaded: "
        assert done.err.startswith(head)
        assert message in done.err
        assert done.err.count("\n") == 1


def test_two_packages_with_the_same_letters(site: Site) -> None:
    site.install(declared("ACME1", "a-rule"))
    site.install(declared("ACME2", "b-rule"), name="bolt")
    done = site.lint("m.xml")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: two packages have lint rules ACME: acme-rules 1.0 and bolt-rules 1.0; "
        "uninstall one of them\n"
    )


def test_a_rule_that_fails_is_one_line(site: Site) -> None:
    site.install(declared("ACME1", "a-rule", '"""Text."""; context.missing'))
    done = site.lint("m.xml")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert "lint rule ACME1 of another package failed: AttributeError" in done.err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("[acme]\nlargest-strid = 1\n", "acme has no setting 'largest-strid'"),
        ("[acme]\nlargest-stride = true\n", "acme: largest-stride must be a whole number"),
        ("acme = 3\n", "acme must be a table, found 3"),
        ("[acne]\n", "deconv-lint has no setting 'acne'"),
    ],
)
def test_wrong_settings(acme: Site, tmp_path: Path, settings: str, message: str) -> None:
    (tmp_path / "wrong.toml").write_text(settings)
    done = acme.lint("m.xml", "--config", str(tmp_path / "wrong.toml"))
    assert (done.code, done.out) == (2, "")
    assert message in done.err
