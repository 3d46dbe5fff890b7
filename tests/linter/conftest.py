"""Helpers shared by the tests of the linter: the cases, and checks of an IR given as text."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from deconv_cli.lint.command import command
from deconv_cli.shared.common import run_command

from deconv_ir.findings import Finding
from deconv_ir.linter.engine import FileResult, check_file
from deconv_ir.linter.options import CheckOptions, choose

from .network import NETWORK, WEIGHTS, complete, weights_bytes

CASES = Path(__file__).parent / "cases"
EVERYTHING = choose(select=["ALL"], severity="info", deep=True)
"""All rules, those of severity info and those that read all weights too."""
MOST = EVERYTHING._replace(rules=EVERYTHING.rules - {"IR801"})
"""All rules but the one that the network violates, whose kernel is 3 and stride 2."""

_EXPECTED = re.compile(r"<!-- expect: ([A-Z0-9 ]+) -->")
_SECTION = re.compile(
    r"^\[([\w -]+) (fails|passes): (.+)\]\n(?:bin: (.+)\n)?((?:(?!\[).*\n)*)", re.MULTILINE
)


class Case(NamedTuple):
    """A section of a file in cases/."""

    rules: tuple[str, ...]
    fails: bool
    title: str
    bin: str
    fragment: str

    def __str__(self) -> str:
        return f"{self.rules[0]}: {self.title}"

    def write(self, folder: Path) -> Path:
        """Write the whole file and its .bin; return the path of the .xml."""
        path = folder / "model.xml"
        path.write_text(complete(self.fragment), "utf-8")
        weights = weights_bytes(self.bin)
        if weights is not None:
            path.with_suffix(".bin").write_bytes(weights)
        return path


def read_cases() -> list[Case]:
    """Read all sections of all files in cases/."""
    found = []
    for path in sorted(CASES.glob("*.txt")):
        text = path.read_text("utf-8")
        sections = list(_SECTION.finditer(text))
        assert "".join(section[0] for section in sections) == text, f"{path.name} has other lines"
        for rules, verdict, title, contents, fragment in map(re.Match.groups, sections):
            names = tuple(rules.split())
            found.append(Case(names, verdict == "fails", title, contents or "", fragment))
    return found


ALL_CASES = read_cases()


def case_of(rule: str, title: str) -> Case:
    """Return one case."""
    (case,) = (c for c in ALL_CASES if rule in c.rules and c.title == title)
    return case


def expected_in(text: str) -> set[tuple[int, str]]:
    """Return line and code of each finding that the comments in a case expect."""
    return {
        (number, code)
        for number, line in enumerate(text.split("\n"), 1)
        for match in _EXPECTED.finditer(line)
        for code in match[1].split()
    }


def found_in(findings: list[Finding]) -> set[tuple[int | None, str]]:
    return {(f.line, f.code) for f in findings}


def check_text(
    xml: str | bytes, folder: Path, weights: bytes | None = None, options: CheckOptions = EVERYTHING
) -> FileResult:
    """Check an IR that is given by its text, and the bytes of its .bin."""
    path = folder / "model.xml"
    path.write_bytes(xml if isinstance(xml, bytes) else xml.encode())
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)
    return check_file(path, options)


@pytest.fixture
def block() -> str:
    """A clean IR: Parameter, Const, ConvolutionBackpropData, Const, Add, ReLU, Result."""
    return NETWORK.read_text("utf-8")


@pytest.fixture
def block_weights() -> bytes:
    return WEIGHTS


class Done(NamedTuple):
    code: int
    out: str
    err: str


Lint = Callable[..., Done]


@pytest.fixture
def lint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Lint:
    """Run deconv-lint in an empty folder, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))

    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["deconv-lint", *arguments])
        with pytest.raises(SystemExit) as done:
            run_command(command)
        streams = capsys.readouterr()
        assert isinstance(done.value.code, int)
        return Done(done.value.code, streams.out, streams.err)

    return run


@pytest.fixture
def bad(tmp_path: Path, block: str, block_weights: bytes) -> Path:
    """An IR with two mistakes, both in declared dims."""
    path = tmp_path / "models/bad.xml"
    path.parent.mkdir()
    path.write_text(with_wrong_dim(block))
    path.with_suffix(".bin").write_bytes(block_weights)
    return path


@pytest.fixture
def good(tmp_path: Path, block: str, block_weights: bytes) -> Path:
    path = tmp_path / "models/good.xml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(block)
    path.with_suffix(".bin").write_bytes(block_weights)
    return path


def with_wrong_dim(text: str) -> str:
    """Declare 10 rows instead of 9 at both ends of the last edge, and 12 columns at one end."""
    at = text.index('names="y"')
    tail = text[at:].replace("<dim>9</dim>", "<dim>10</dim>", 2)
    result = tail.index('type="Result"')
    return text[:at] + tail[:result] + tail[result:].replace("<dim>11</dim>", "<dim>12</dim>")


def line_of(path: Path, part: str, after: str) -> int:
    text = path.read_text()
    return text[: text.index(part, text.index(after))].count("\n") + 1
