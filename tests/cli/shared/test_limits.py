"""--limit and --list-limits change the bounds on input files from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from deconv_cli.shared.options import LIMITS, OF_A_DOCUMENT, OF_AN_IR
from hostile.children import run
from support import IR

from deconv_ir.limits import DEFAULT_LIMITS, Limits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ir = IR()
    dims = {"outputs": ["1,2,3,4"]}
    x = ir.layer("Parameter", [], {"shape": "1,2,3,4", "element_type": "f32"}, **dims)
    ir.result(ir.layer("ReLU", [x], names="y", **dims))
    ir.save(tmp_path)
    layer = '<layer type="ReLU"><output><port><dim>1</dim></port></output></layer>'
    (tmp_path / "doc.md").write_text(f"# ReLU\n\n{layer}\n")
    return tmp_path


def test_every_limit_has_its_meaning_and_its_commands() -> None:
    assert tuple(LIMITS) == Limits._fields == OF_AN_IR + OF_A_DOCUMENT


RUN = ("run", "model.xml", "--random-inputs", "0", "--output", "y.npy", "--force")
LINT = ("lint", "model.xml", "--no-cache")
LINT_STDIN = ("lint", "-")
FIX = ("lint", "model.xml", "--fix")
SPEC = ("spec", "check", "doc.md")
SPEC_FIX = ("spec", "fix", "doc.md")
SPEC_STDIN = ("spec", "check", "-")


@pytest.mark.parametrize(
    ("command", "limit", "words"),
    [
        *(
            (command, *row)
            for command in (RUN, LINT)
            for row in (
                ("xml_bytes=100", "bytes, more than the limit of 100"),
                ("xml_bytes=0.1KB", "bytes, more than the limit of 100"),
                ("tags=9", "tags, more than the limit of 9"),
                ("layers=2", "more layers than the limit of 2"),
                ("rank=3", "4 dims, more than the limit of 3"),
            )
        ),
        (LINT_STDIN, "xml_bytes=100", "bytes, more than the limit of 100"),
        (FIX, "layers=2", "more layers than the limit of 2"),
        (SPEC, "document_bytes=20", "bytes, more than the limit of 20"),
        (SPEC_FIX, "document_bytes=20", "bytes, more than the limit of 20"),
        (SPEC_STDIN, "document_bytes=20", "<stdin>: larger than the limit of 20 bytes"),
    ],
    ids=lambda v: v if isinstance(v, str) else " ".join(v[:2]),
)
def test_a_limit_that_is_lowered(
    command: tuple[str, ...], limit: str, words: str, folder: Path
) -> None:
    with (folder / ("doc.md" if command[0] == "spec" else "model.xml")).open("rb") as given:
        code, out, error = run(*command, "--limit", limit, cwd=folder, stdin=given)
        assert words in out + error
        assert code == (1 if command[0] == "lint" else 2)
        assert "Traceback" not in error
        given.seek(0)
        code, out, error = run(*command, cwd=folder, stdin=given)
    assert words not in out + error
    assert not (folder / "y.npy").exists() or command == RUN


def test_a_limit_that_is_raised(folder: Path) -> None:
    edges = "<edge/>" * (DEFAULT_LIMITS.problems + 1)
    (folder / "model.xml").write_text(f'<net version="11"><layers/><edges>{edges}</edges></net>')
    code, out, _ = run(*LINT, cwd=folder)
    assert code == 1
    assert "there are 10000 mistakes up to here" in out
    _, out, _ = run(*LINT, "--limit", "problems=1000000", cwd=folder)
    assert "mistakes up to here" not in out


def test_the_last_of_several_counts(folder: Path) -> None:
    code, _, error = run(*RUN, "--limit", "rank=3", "--limit", "rank=4", "-q", cwd=folder)
    assert (code, error) == (0, "")


def test_the_cache_heeds_limits(folder: Path) -> None:
    cached = (*LINT[:2], "--select", "too-large", "--cache-dir", "cache")
    assert run(*cached, cwd=folder)[0] == 0
    code, out, _ = run(*cached, "--limit", "layers=2", cwd=folder)
    assert code == 1
    assert "more layers than the limit of 2" in out
    assert run(*cached, cwd=folder)[0] == 0


@pytest.mark.parametrize(
    "text",
    [
        *("", "rank", "rank=0", "rank=-1", "rank=1.5", "rank=4KB", "rank=" + "9" * 20),
        *("document_bytes=1", "xml_bytes=much", "xml_bytes=nan", "Rank=3", "rank=\u0663"),
    ],
)
def test_invalid_limits_are_refused(text: str, folder: Path) -> None:
    code, _, error = run(*RUN, "--limit", text, cwd=folder)
    assert code == 2
    assert "invalid value for '--limit'" in error


@pytest.mark.parametrize(
    ("command", "names"), [("run", OF_AN_IR), ("lint", OF_AN_IR), ("spec check", OF_A_DOCUMENT)]
)
def test_limits_are_listed(command: str, names: tuple[str, ...], folder: Path) -> None:
    code, out, _ = run(*command.split(), "--list-limits", cwd=folder)
    assert code == 0
    for line, name in zip(out.splitlines(), names, strict=True):
        assert line.split()[0] == f"{name}={getattr(DEFAULT_LIMITS, name)}"
        assert line.endswith(LIMITS[name])
