"""The direction of imports: what stands right may import what stands left, never the other way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

# From left to right; rooms of one row do not know each other, unless they are one room.
ROWS = [
    {"version", "errors", "locks", "parts", "record", "room"},
    {"files", "findings", "limits", "dtypes", "geometry"},
    {"shapes"},
    {"casting", "kernels", "model"},
    {"ops"},
    {"foreign_arrays"},
    {"arrays", "xmlio", "infer", "naming"},
    {"chain", "cutting", "execute", "model_inputs", "opening"},
    {"api"},
    {"functional", "linter", "spec_examples"},
    {"__init__"},
]
RANK = {room: rank for rank, row in enumerate(ROWS) for room in row}
CLI = len(ROWS)

# Third-party packages that only some rooms may import.
ONLY = {"lxml": {"xmlio", "cli"}, "click": {"cli"}, "ml_dtypes": {"dtypes", "kernels"}}


def modules() -> list[Path]:
    return sorted([*(ROOT / "deconv_ir").rglob("*.py"), *(ROOT / "cli").rglob("*.py")])


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "cli" if parts[0] == "cli" else parts[1]


def imports(path: Path) -> list[str]:
    """Absolute names of what a module imports, wherever in it."""
    package = list(path.relative_to(ROOT).with_suffix("").parts)
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level] if node.level else []
            stem = [*base, *(node.module.split(".") if node.module else [])]
            names += [".".join([*stem, alias.name]) for alias in node.names]
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_direction(path: Path) -> None:
    room = room_of(path)
    rank = CLI if room == "cli" else RANK[room]
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "deconv_ir":
            other = rest.split(".")[0]
            target = other if other in RANK else "__init__"
            assert target == room or RANK[target] < rank, f"{path.name} imports {name}"
        if top in ("cli", "deconv_cli"):
            assert room == "cli", f"{path.name} imports {name}"
        if top in ONLY:
            assert room in ONLY[top], f"{path.name} imports {name}"


def test_every_room_has_its_place() -> None:
    assert {room_of(p) for p in modules()} <= set(RANK) | {"cli"}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_library_never_prints_or_exits(path: Path) -> None:
    if room_of(path) == "cli":
        return
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"print", "exit", "input"}


def test_starting_the_linter_imports_no_numpy() -> None:
    import subprocess
    import sys

    code = "import sys, deconv_ir; assert not {'numpy', 'scipy', 'click'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
