"""The cache takes nothing but its own entries: anything else is as if there were no entry."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deconv_ir.linter.cache import _HEAD, Cache, _checked, _hash
from deconv_ir.linter.engine import FileResult
from deconv_ir.linter.options import choose
from deconv_ir.linter.runner import FileCheck, check

from .network import NETWORK, WEIGHTS

OPTIONS = choose()


@pytest.fixture
def job(tmp_path: Path) -> FileCheck:
    """A model with a wrong dim, and a fresh cache."""
    text = NETWORK.read_text("utf-8").replace("<dim>11</dim>", "<dim>12</dim>", 1)
    (tmp_path / "m.xml").write_text(text, "utf-8")
    (tmp_path / "m.bin").write_bytes(WEIGHTS)
    return FileCheck(str(tmp_path / "m.xml"), OPTIONS, cache=str(tmp_path / "cache"))


def entry_of(job: FileCheck) -> Path:
    """Return the only entry of a cache."""
    (entry,) = Path(job.cache or "").rglob("*.json")
    return entry


def load(job: FileCheck) -> FileResult | None:
    """Return what the cache has for a job."""
    cache = Cache(job.cache or "")
    key = cache.key(Path(job.file).read_bytes(), OPTIONS, job.weights_path)
    return cache.load(key, job.file, job.weights_path)


def rewritten(job: FileCheck, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the contents of an entry, with the hash of someone who knows the format."""
    entry = entry_of(job)
    key = entry.parent.name + entry.stem
    content = json.loads(_checked(entry.read_bytes(), key))
    change(content)
    text = json.dumps(content).encode()
    entry.write_bytes(_HEAD % _hash(key, text) + text + b"}")


def test_an_entry_is_a_result(job: FileCheck) -> None:
    first = check(job)
    assert [finding.code for finding in first.findings] == ["IR401"]
    assert load(job) == check(job)
    entry = json.loads(entry_of(job).read_bytes())
    assert set(entry) == {"sha256", "entry"}


@pytest.mark.parametrize(
    "damaged",
    [
        lambda data: b"",
        lambda data: b"null",
        lambda data: b"[]",
        lambda data: b'{"lines": []}',
        lambda data: b"[" * 100_000,
        lambda data: data[:-1],
        lambda data: data + b" ",
        lambda data: data.replace(b"IR401", b"IR402", 1),
        lambda data: data.replace(b'"findings": [', b'"findings": [],"x":[', 1),
    ],
    ids=lambda damaged: "",
)
def test_damaged(damaged: Callable[[bytes], bytes], job: FileCheck) -> None:
    first = check(job)
    entry = entry_of(job)
    own = entry.read_bytes()
    entry.write_bytes(damaged(own))
    assert load(job) is None
    assert check(job).findings == first.findings
    assert entry.read_bytes() == own, "the next check replaces it"


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.update(lines=[]),
        lambda entry: entry.update(lines={"1": 2}),
        lambda entry: entry.update(findings=None),
        lambda entry: entry.update(layers="many"),
        lambda entry: entry.update(suppressed=-1),
        lambda entry: entry.update(hidden=[["fatal", 1]]),
        lambda entry: entry.update(passed_over=[[1, 2]]),
        lambda entry: entry.update(weights={"reads": [[-8, 8]], "hash": ""}),
        lambda entry: entry.update(weights={"reads": "many", "hash": ""}),
        lambda entry: entry.pop("weights"),
        lambda entry: entry["findings"][0].update(code="IR999"),
        lambda entry: entry["findings"][0].update(rule="other-name"),
        lambda entry: entry["findings"][0].update(line="7"),
        lambda entry: entry["findings"][0].update(message=None),
        lambda entry: entry["findings"][0].update(expected=[]),
        lambda entry: entry["findings"][0].update(more=1),
        lambda entry: entry["findings"][0].update(location={"layer": []}),
        lambda entry: entry["findings"][0].update(location={"head": 1}),
        lambda entry: entry["findings"][0].update(hint=["DID_YOU_MEAN"]),
        lambda entry: entry["findings"][0].update(hint=["NO_SUCH_HINT", 1]),
        lambda entry: entry["findings"][0].update(fix=[]),
    ],
    ids=lambda change: "",
)
def test_contents_of_other_types(
    change: Callable[[dict[str, Any]], object], job: FileCheck
) -> None:
    first = check(job)
    rewritten(job, change)
    assert load(job) is None
    assert check(job).findings == first.findings


def test_deep_nesting(job: FileCheck) -> None:
    check(job)
    entry = entry_of(job)
    key, text = entry.parent.name + entry.stem, b"[" * 200_000
    entry.write_bytes(_HEAD % _hash(key, text) + text + b"}")
    assert load(job) is None


def test_entry_of_another_file_or_version(job: FileCheck, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clean file's entry does not make this one clean, nor does one of another release."""
    check(job)
    wrong = entry_of(job)
    clean = job._replace(file=str(Path(job.file).with_name("clean.xml")))
    Path(clean.file).write_bytes(NETWORK.read_bytes())
    Path(clean.weights_path).write_bytes(WEIGHTS)
    assert check(clean).findings == []
    (entry,) = set(Path(job.cache or "").rglob("*.json")) - {wrong}
    wrong.write_bytes(entry.read_bytes())
    assert load(job) is None
    assert len(check(job).findings) == 1
    assert load(job) is not None
    monkeypatch.setattr("deconv_ir.linter.cache.code_stamp", lambda: "another release")
    assert load(job) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")
@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "looping link"])
def test_entry_that_is_not_a_file(kind: str, job: FileCheck) -> None:
    first = check(job)
    entry = entry_of(job)
    entry.unlink()
    if kind == "fifo":
        os.mkfifo(entry)
    elif kind == "device":
        entry.symlink_to("/dev/zero")
    elif kind == "folder":
        entry.mkdir()
    else:
        entry.symlink_to(entry.name)
    assert load(job) is None
    assert check(job).findings == first.findings


@pytest.mark.skipif(sys.platform == "win32", reason="files have no owner")
def test_entry_of_another_user(job: FileCheck, monkeypatch: pytest.MonkeyPatch) -> None:
    check(job)
    assert load(job) is not None
    monkeypatch.setattr(os, "geteuid", lambda: 1 << 20)
    assert load(job) is None


def test_large_results_are_not_stored(job: FileCheck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deconv_ir.linter.cache.MAX_ENTRY_BYTES", 200)
    check(job)
    assert list(Path(job.cache or "").rglob("*.json")) == []
