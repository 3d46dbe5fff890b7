"""What is installed is what is in the repository."""

from __future__ import annotations

import tomllib
from pathlib import Path

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
