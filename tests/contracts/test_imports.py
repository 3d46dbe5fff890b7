"""No import is hidden from import-linter, which reads import statements only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OTHERS = {
    "deconv_ir/__main__.py",  # the commands, which type checkers know by their folder's name
    "deconv_ir/compare/sides.py",  # openvino, onnx and onnxruntime
    "deconv_ir/kernels/runtime/extension.py",  # the compiled module of the package
    "deconv_ir/ops/numeric.py",  # NumPy
    "deconv_ir/tiling/remote.py",  # Dask
}
"""Files that import modules of other distributions, or that Python has no statement for."""


def dynamic_imports(source: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("import_module", "__import__"):
                yield node


def stays_in_package(call: ast.Call) -> bool:
    """Whether a call imports a module beside its own: one dot, and the package of the file."""
    first = call.args[0]
    if isinstance(first, ast.JoinedStr):
        first = first.values[0]
    written = first.value if isinstance(first, ast.Constant) else None
    package = call.args[1].id if len(call.args) == 2 and isinstance(call.args[1], ast.Name) else ""
    return (
        isinstance(written, str)
        and written.startswith(".")
        and not written.startswith("..")
        and package in ("__package__", "__name__")
    )


def test_dynamic_imports_stay_in_their_package() -> None:
    leaving = {
        str(path.relative_to(ROOT))
        for folder in ("deconv_ir", "cli")
        for path in (ROOT / folder).rglob("*.py")
        if not all(map(stays_in_package, dynamic_imports(path.read_text())))
    }
    assert leaving <= OTHERS


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ('importlib.import_module(f".rules.{name}", __package__)', True),
        ('import_module(".a", __name__)', True),
        ('importlib.import_module("deconv_ir.loading").load', False),
        ('importlib.import_module(f"deconv_ir.{name}")', False),
        ('importlib.import_module("..loading", __package__)', False),
        ('importlib.import_module(".loading", "deconv_ir")', False),
        ("importlib.import_module(name)", False),
        ('__import__("deconv_ir.loading")', False),
    ],
)
def test_dynamic_imports_of_other_packages_are_recognised(source: str, allowed: bool) -> None:
    assert [*map(stays_in_package, dynamic_imports(source))] == [allowed]


@pytest.mark.parametrize("path", sorted(OTHERS))
def test_no_other_file_hides_an_import_of_this_project(path: str) -> None:
    text = {
        node.value
        for call in dynamic_imports((ROOT / path).read_text())
        for node in ast.walk(call)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    hidden = {t for t in text if t.startswith("deconv_")}
    assert hidden == ({"deconv_cli.start"} if path == "deconv_ir/__main__.py" else set())
