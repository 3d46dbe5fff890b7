"""A class name stands once in the packages, so that it means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import deconv_cli

import deconv_ir

# An operation has the name that documents give it.
TWICE = {"Tile": "the operation Tile-1, and a tile of a run in tiles"}


def places(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return the files of each class name, private or not."""
    found = defaultdict(list)
    for file, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(file)
    return found


def test_private_and_inner_classes_are_found() -> None:
    sources = {"a.py": "class Box:\n    class Row: ...", "b.py": "def f():\n    class _Row: ..."}
    assert places(sources) == {"Box": ["a.py"], "Row": ["a.py", "b.py"]}


def test_a_class_name_stands_once() -> None:
    sources = {
        str(path.relative_to(root.parent)): path.read_text()
        for root in (Path(package.__path__[0]).resolve() for package in (deconv_ir, deconv_cli))
        for path in root.rglob("*.py")
    }
    assert len(sources) > 300
    twice = {name: files for name, files in places(sources).items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in TWICE} == {}
