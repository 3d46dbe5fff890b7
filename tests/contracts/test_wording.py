"""A changed sentence changes no behaviour: codes, locations, fixes and exit codes stay.

All messages, hints and words for allowed values are replaced by other texts.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deconv_cli.shared.common import run_command
from linter.mutations import MUTATORS
from linter.network import NETWORK, complete, weights_bytes

from deconv_ir import Hint
from deconv_ir.findings import Finding
from deconv_ir.linter.catalogue import RULES
from deconv_ir.ops.base import Allowed

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests/fixtures"

Run = Callable[..., tuple[int, str, str]]


def shuffled(text: str) -> str:
    """Return another text; equal texts stay equal."""
    return "words " + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


@pytest.fixture
def shuffle(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Replace all wordings until the end of the test."""

    def replace() -> None:
        for hint in Hint:
            monkeypatch.setattr(hint, "library", shuffled(hint.library))
            monkeypatch.setattr(hint, "command", shuffled(hint.command))
        new = Finding.__new__
        monkeypatch.setattr(
            Finding,
            "__new__",
            lambda cls, message, *rest, **named: new(cls, shuffled(message), *rest, **named),
        )
        monkeypatch.setattr(Allowed, "__str__", lambda allowed: shuffled(allowed.said))

    return replace


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process; return exit code, standard output and error."""

    def invoke(name: str, *arguments: str) -> tuple[int, str, str]:
        import importlib

        monkeypatch.setattr("sys.argv", [f"deconv-{name}", *arguments])
        command = importlib.import_module(f"deconv_cli.{name}.command").command
        with pytest.raises(SystemExit) as done:
            run_command(command)
        captured = capfd.readouterr()
        return int(done.value.code or 0), captured.out, captured.err

    return invoke


def broken_models() -> Iterator[tuple[str, bytes, bytes | None]]:
    """Return name, text and weights: the fragment of each rule, and seeded mistakes."""
    for code in RULES.keys() - {"IR417"}:  # it takes longer than all others
        rule = RULES[code]
        if rule.family == "onednn":
            yield f"{code}.json", rule.fragment.encode(), None
        else:
            text = complete(rule.fragment).encode("utf-8", "surrogateescape")
            yield f"{code}.xml", text, weights_bytes(rule.weights)
    # Its dims contradict a boolean and an axis, and OpenVINO does not read ` true`.
    yield "wording.xml", Path(__file__).with_name("wording.xml").read_bytes(), struct.pack("<q", 1)
    choices = random.Random(7)
    path = FIXTURES / "ir/static_2d_fp16.xml"
    for number in range(12):
        wrong = choices.choice(MUTATORS)(choices, path.read_text()).text
        yield f"mutant-{number}.xml", wrong.encode(), path.with_suffix(".bin").read_bytes()


def write_models(folder: Path) -> list[str]:
    folder.mkdir()
    for name, text, weights in broken_models():
        (folder / name).write_bytes(text)
        if weights is not None:
            (folder / name).with_suffix(".bin").write_bytes(weights)
    return sorted(str(p) for p in folder.iterdir() if p.suffix != ".bin")


def without_words(report: str) -> list[dict[str, Any]]:
    """Return the findings of a report in JSON, without their sentences."""
    found: list[dict[str, Any]] = json.loads(report)["findings"]
    for finding in found:
        sentences = ("message", "expected", "hint")
        finding |= {name: finding[name] is not None for name in sentences}
    return found


def test_lint(tmp_path: Path, run: Run, shuffle: Callable[[], None]) -> None:
    seen = []
    for turn in ("plain", "shuffled"):
        folder = tmp_path / "models"
        files = write_models(folder)
        every = ("--no-cache", "--jobs", "1", "--severity", "info", "--deep", "--format", "json")
        first, report, _ = run("lint", *files, *every)
        findings = without_words(report)
        fixable = {finding["file"] for finding in findings if finding["fixable"]}
        code, _, _ = run("lint", *sorted(fixable), "--unsafe-fixes", "--fix", "--no-cache")
        fixed = {name: Path(name).read_bytes() for name in fixable}
        seen.append((first, findings, code, fixed))
        folder.rename(tmp_path / turn)
        shuffle()
    plain, other = seen
    assert len({finding["code"] for finding in plain[1]}) > 80
    assert sum(finding["fixable"] for finding in plain[1]) > 50
    assert plain == other


def test_a_baseline_knows_reworded_findings(
    tmp_path: Path, run: Run, shuffle: Callable[[], None]
) -> None:
    files = write_models(tmp_path / "models")
    options = (*files, "--no-cache", "--jobs", "1", "--baseline", str(tmp_path / "known.json"))
    code, _, _ = run("lint", *options, "--update-baseline")
    assert code == 0
    shuffle()
    code, out, _ = run("lint", *options, "--quiet")
    assert (code, out) == (0, "")


def fingerprints(form: str, report: str) -> list[str]:
    found = json.loads(report)
    if form == "gitlab":
        return [issue["fingerprint"] for issue in found]
    return [
        value
        for result in found["runs"][0]["results"]
        for value in result["partialFingerprints"].values()
    ]


@pytest.mark.parametrize("form", ["gitlab", "sarif"])
def test_services_know_reworded_and_moved_findings(
    form: str, tmp_path: Path, run: Run, shuffle: Callable[[], None]
) -> None:
    files = write_models(tmp_path / "models")
    options = (*files, "--no-cache", "--jobs", "1", "--format", form)
    plain = fingerprints(form, run("lint", *options)[1])
    assert len(plain) > 80
    assert len(set(plain)) == len(plain), "services count findings by them"
    shuffle()
    assert fingerprints(form, run("lint", *options)[1]) == plain
    model = next(Path(file) for file in files if file.endswith("IR401.xml"))
    before = fingerprints(form, run("lint", str(model), *options[len(files) :])[1])
    model.write_text(model.read_text().replace("<layers>", "\n\n<layers>", 1))
    assert fingerprints(form, run("lint", str(model), *options[len(files) :])[1]) == before


REFUSALS = {
    "no weights": ("{fixture}", "--weights", "{here}/none.bin"),
    "no such model": ("{here}/none.xml",),
    "an unknown tensor": ("{fixture}", "--until", "nothing"),
    "not enough memory": ("{fixture}", "--random-inputs", "0", "--memory-limit", "1KiB"),
    "an array of another type": ("{fixture}", "--input", "{here}/f64.npy"),
    "channels last": ("{fixture}", "--input", "{here}/last.npy"),
    "a wrong attribute": ("{here}/wrong.xml", "--random-inputs", "0"),
    "a wrong dim": ("{here}/dim.xml", "--random-inputs", "0", "--strict"),
    "an unknown type": ("{here}/type.xml", "--random-inputs", "0"),
    "an extra argument": ("{fixture}", "more.npy"),
    "a value that is none": ("{fixture}", "--profile", "more.xml"),
    "an unknown option": ("{fixture}", "--inptu", "x.npy"),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_refusals_of_run(
    case: tuple[str, ...], tmp_path: Path, run: Run, shuffle: Callable[[], None]
) -> None:
    text = NETWORK.read_text()
    (tmp_path / "wrong.xml").write_text(text.replace('strides="2, 2"', 'strides="2, x"', 1))
    (tmp_path / "dim.xml").write_text(text.replace("<dim>11</dim>", "<dim>12</dim>"))
    (tmp_path / "type.xml").write_text(text.replace("ReLU", "ReLo"))
    for name in ("wrong", "dim", "type"):
        (tmp_path / f"{name}.bin").write_bytes(weights_bytes("") or b"")
    np.save(tmp_path / "f64.npy", np.zeros((1, 4, 5, 6)))
    np.save(tmp_path / "last.npy", np.zeros((1, 5, 6, 4), np.float32))
    model = tmp_path / "model.xml"
    model.write_text(text)
    model.with_suffix(".bin").write_bytes(weights_bytes("") or b"")
    arguments = [part.format(fixture=model, here=tmp_path) for part in case]
    plain = run("run", *arguments, "--no-output")
    shuffle()
    other = run("run", *arguments, "--no-output")
    assert plain[0] == other[0] == 2
    assert [place_of(line) for line in plain[2].splitlines()] == [
        place_of(line) for line in other[2].splitlines()
    ]


def place_of(line: str) -> tuple[str, ...]:
    """Return kind, file and line, and layer of an error."""
    match = re.match(r"(error|warning): ((?:\S+\.xml(?::\d+)?)?)(?:: (layer '.*?\)))?", line)
    assert match is not None
    return match.groups("")


def test_spec(tmp_path: Path, run: Run, shuffle: Callable[[], None]) -> None:
    seen = []
    changes = (("447", "448"), ("447", "4,47"), ("strides", "stridse"), ("<dim>20", "<dim>21"))
    for _ in range(2):
        for number, (old, new) in enumerate((*changes, ("x", "x"))):
            for path in sorted((ROOT / "samples/documents").glob("*.xml")):
                text = path.read_text()
                (tmp_path / f"{path.stem}-{number}.md").write_text(
                    f"```xml\n{text.replace(old, new, 1)}```\n"
                )
        first, report, _ = run("spec", "check", str(tmp_path), "--format", "json")
        examples = [
            {k: v for k, v in example.items() if k != "reason"}
            for example in json.loads(report)["examples"]
        ]
        findings = without_words(report)
        code, _, _ = run("spec", "fix", str(tmp_path))
        seen.append((first, examples, findings, code, fixed_texts(tmp_path)))
        shuffle()
    assert any(finding["fixable"] for finding in seen[0][2])
    assert seen[0] == seen[1]


def fixed_texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.md")}
