"""Paths whose bytes are not UTF-8: deconv-lint in every format, and deconv-show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deconv_cli.shared.common import to_json
from deconv_cli.shared.reporters import FORMATS
from hostile.children import python

from .network import NETWORK, WEIGHTS

NAME = os.fsdecode(b"caf\xe9.xml")
SHOWN = r"caf\udce9.xml"

pytestmark = pytest.mark.skipif(
    sys.platform in ("darwin", "win32"), reason="the file system only has names in Unicode"
)


def run(
    folder: Path, command: str, *arguments: str, given: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command where output is strict UTF-8, as in most terminals."""
    code = f"from deconv_cli.{command}.command import main; main()"
    done = python(
        code,
        *arguments,
        input=given,
        cwd=folder,
        env=os.environ
        | {"XDG_CACHE_HOME": str(folder / ".cache"), "PYTHONIOENCODING": "utf-8:strict"},
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode(errors="replace")
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model with a wrong dim, whose .bin is cut short: a message names the .bin."""
    text = NETWORK.read_text("utf-8").replace("<dim>11</dim>", "<dim>12</dim>", 1)
    (tmp_path / NAME).write_text(text, "utf-8")
    (tmp_path / NAME).with_suffix(".bin").write_bytes(WEIGHTS[:800])
    return tmp_path


@pytest.mark.parametrize("form", FORMATS)
def test_lint(form: str, folder: Path) -> None:
    done = run(folder, "lint", "--format", form)
    assert done.returncode == 1
    text = done.stdout.decode("utf-8", "strict")
    shown = {
        "sarif": "caf%E9.xml",  # the bytes of the name: RFC 3986, section 2.5
        **dict.fromkeys(("json", "jsonl", "rdjson", "gitlab"), SHOWN.replace("\\", "\\\\")),
        "markdown": SHOWN.replace("\\", "&#92;"),
    }.get(form, SHOWN)
    assert shown in text
    for document in text.splitlines() if form == "jsonl" else [text] * (text[:1] in "[{"):
        # Half of a surrogate pair cannot be encoded, which strict parsers check.
        json.dumps(json.loads(document), ensure_ascii=False).encode("utf-8", "strict")
    cached = run(folder, "lint", "--format", form, "--output", "report")
    assert (cached.returncode, cached.stdout) == (1, b"")
    written = (folder / "report").read_text("utf-8")
    whole = text[:1] in "[{" and form != "jsonl"
    assert json.loads(written) == json.loads(text) if whole else shown in written


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("place", ["absolute", "standard input"])
def test_lint_from_another_folder(form: str, place: str, folder: Path) -> None:
    """The report is written, and --exit-zero decides the exit code."""
    (folder / "here").mkdir()
    named = (str(folder / NAME),) if place == "absolute" else ("-", "--stdin-filename", NAME)
    done = run(
        folder / "here",
        "lint",
        *named,
        *("--format", form, "--exit-zero"),
        given=(folder / NAME).read_bytes(),
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "IR401" in done.stdout.decode("utf-8", "strict")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--show-files",), 0),
        (("--show-settings", "--format", "json"), 0),
        (("--diff",), 1),
        (("--fix",), 1),
        (("--baseline", os.fsdecode(b"b\xe9.json"), "--update-baseline"), 0),
        ((NAME, "--html", os.fsdecode(b"page\xe9.html")), 1),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_other_outputs_of_lint(arguments: tuple[str, ...], code: int, folder: Path) -> None:
    assert run(folder, "lint", *arguments).returncode == code
    listed = run(folder, "lint", "--show-files").stdout
    assert listed == os.fsencode(NAME) + b"\n", "as ls prints it, for xargs"


@pytest.mark.parametrize("form", ["html", "svg", "png"])
def test_show(form: str, folder: Path) -> None:
    done = run(folder, "show", NAME, "--format", form)
    page = folder / os.fsdecode(b"caf\xe9." + form.encode())
    assert (done.returncode, done.stdout.split(b": ")[0]) == (0, os.fsencode(page))
    if form == "html":
        assert SHOWN in page.read_text("utf-8")


def test_escapes_of_json() -> None:
    """A pair of surrogates is one character, and a backslash in a text is no escape."""
    content = ["\U0001f600", r"\udce9", "\\\udce9", "\U0001f600\udce9"]
    assert json.loads(to_json(content)) == [
        *("\U0001f600", r"\udce9", "\\" + r"\udce9", "\U0001f600" + r"\udce9"),
    ]
