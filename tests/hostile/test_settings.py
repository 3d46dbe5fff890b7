"""Settings and baselines of the linter: they come with models, from any author."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support import IR

from deconv_ir.linter import baseline, config
from hostile.children import one_error_line, run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "2")], names="y"))
    ir.save(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "device").symlink_to("/dev/zero")
    with (tmp_path / "huge").open("wb") as stream:  # a sparse file, which takes no disk space
        stream.truncate(1 << 40)
    return tmp_path


BAD_FILES = {
    "fifo": "not a regular file",
    "device": "not a regular file",
    "loop": "Too many levels",
    "huge": "more than",
    ".": "directory",
}


@pytest.mark.parametrize("option", ["--config", "--baseline"])
@pytest.mark.parametrize("name", BAD_FILES)
def test_invalid_files_of_settings_are_refused(name: str, option: str, folder: Path) -> None:
    code, _, error = run("lint", "model.xml", option, name, cwd=folder)
    assert code == 2
    assert BAD_FILES[name] in one_error_line(error)


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_baseline_that_the_settings_name(name: str, folder: Path) -> None:
    (folder / "deconv-lint.toml").write_text(f'baseline = "{name}"\n')
    code, _, error = run("lint", "model.xml", cwd=folder)
    assert code == 2
    assert BAD_FILES[name] in one_error_line(error)


@pytest.mark.parametrize("own", ["deconv-lint.toml", "pyproject.toml"])
@pytest.mark.parametrize("name", BAD_FILES)
def test_settings_beside_a_model_that_are_no_files(own: str, name: str, folder: Path) -> None:
    (folder / own).symlink_to(name)
    code, _, error = run("lint", "model.xml", cwd=folder)
    assert code == 2
    assert BAD_FILES[name] in one_error_line(error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tool = 3", ""),
        ("[tool]\ndeconv-lint = 3", "deconv-lint must be a table, found 3"),
        ("[tool.deconv-lint]\nselect = " + "[" * 100_000, "the settings are not valid TOML"),
        ("[tool.deconv-lint]\nselect = [['a']]", "select must be a list of strings"),
        ("[tool.deconv-lint]\nseverities = 3", "severities must be"),
        ("[tool.deconv-lint]\ndeep = 1", "deep must be true or false"),
        ("[tool.deconv-lint]\n\0", "the settings are not valid TOML"),
        ("[tool.deconv-lint]\n# \udcff", "the settings are not valid TOML"),
    ],
    ids=lambda v: v[:30],
)
def test_settings_of_another_form(text: str, words: str, folder: Path) -> None:
    (folder / "pyproject.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    code, _, error = run("lint", "model.xml", cwd=folder)
    assert words in (one_error_line(error) if words else error)
    assert code == (2 if words else 1)


@pytest.mark.parametrize(
    "text",
    [
        *("", "\0", "\udcff", "[" * 100_000, "[]", '{"findings": 3}'),
        *('{"findings": {"a": 1e999}}', '{"findings": {"a": [1]}}', '{"findings": {"a": "x"}}'),
    ],
    ids=lambda v: v[:30],
)
def test_baselines_of_another_form(text: str, folder: Path) -> None:
    (folder / "known").write_bytes(text.encode("utf-8", "surrogateescape"))
    code, _, error = run("lint", "model.xml", "--baseline", "known", cwd=folder)
    assert code == 2
    assert "not a baseline of deconv-lint" in one_error_line(error)


def test_bounds_are_far_beyond_what_anybody_writes() -> None:
    assert config.MAX_BYTES == 4 << 20
    assert baseline.MAX_BYTES == 64 << 20
