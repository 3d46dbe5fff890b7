"""The installed package has the files of the repository."""

from __future__ import annotations

import os
import runpy
import threading
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest
import setuptools
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_package_is_listed() -> None:
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "deconv_ir").rglob("__init__.py")
    }
    found |= {
        ".".join(["deconv_cli", *path.parent.relative_to(ROOT / "cli").parts])
        for path in (ROOT / "cli").rglob("__init__.py")
    }
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == found


def test_every_script_is_a_function() -> None:
    import importlib

    for entry in PROJECT["project"]["scripts"].values():
        module, _, function = entry.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_every_dependency_is_explained_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    section = readme.partition("## Dependencies")[2].partition("\n## ")[0]
    for requirement in PROJECT["project"]["dependencies"]:
        assert requirement.split(">")[0] in section, requirement


@pytest.fixture
def given_to_setup(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the arguments with which setup.py calls `setup`."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", lambda **arguments: given.update(arguments))
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(ROOT / "setup.py"))
    return given


def test_several_files_are_compiled_at_once(
    monkeypatch: pytest.MonkeyPatch, given_to_setup: dict[str, Any]
) -> None:
    both = threading.Barrier(2, timeout=60)

    def compile_one(sources: list[str], output_dir: str) -> list[str]:
        both.wait()
        return [f"{output_dir}/{source}.o" for source in sources]

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(build_ext, "build_extensions", lambda _: None)
    command = given_to_setup["cmdclass"]["build_ext"](setuptools.Distribution())
    command.compiler = types.SimpleNamespace(compile=compile_one)
    command.build_extensions()
    assert command.compiler.compile(["a", "b"], output_dir="t") == ["t/a.o", "t/b.o"]


def test_an_install_without_a_compiler_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given_to_setup: dict[str, Any],
) -> None:
    def fail(*_: object) -> None:
        raise CCompilerError("command 'cc' failed: no such file or directory")

    monkeypatch.setattr(build_ext, "build_extension", fail)
    (extension,) = given_to_setup["ext_modules"]
    given_to_setup["cmdclass"]["build_ext"](setuptools.Distribution()).build_extension(extension)
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "deconv-ir: no C compiler here could build the kernel: layers will be computed with "
        "NumPy, which is slower"
    )


def test_the_files_of_the_page_are_installed() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["deconv_ir"]
    folder = ROOT / "deconv_ir"
    installed = {path for pattern in patterns for path in folder.glob(pattern)}
    data = {p for p in folder.rglob("*") if p.suffix in (".js", ".css", ".html", ".typed")}
    assert data
    assert data <= installed
