"""Check how the sources are written, where ruff, mypy and import-linter do not look.

    python tools/check_sources.py

Lists

- a class name, or the name of a struct in C, that stands for two things;
- a function of C that does not fit on a page;
- an import that is hidden from import-linter, which reads import statements only.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("deconv_ir", "cli")

MOST_LINES = 80

TWICE = {"Tile"}
"""The operation Tile-1, and a tile of a run in tiles: both names are given, by OpenVINO and the
library's interface."""

OTHERS = {
    "deconv_ir/__main__.py",  # the commands, which type checkers know by their folder's name
    "deconv_ir/compare/sides.py",  # openvino, onnx and onnxruntime
    "deconv_ir/kernels/runtime/extension.py",  # the compiled module of the package
    "deconv_ir/ops/numeric.py",  # NumPy
    "deconv_ir/tiling/remote.py",  # Dask
}
"""Files that import modules of other distributions, or that Python has no statement for."""

OWN = {"deconv_ir/__main__.py": {"deconv_cli.start"}}
"""Modules of this project that such a file imports."""

# A definition begins in the first column, and ends with a brace in the first column.
_STRUCT = re.compile(r"\bstruct (\w+) \{")
_FUNCTION = re.compile(r"^\w[^;={}]*\([^;{}]*\) \{\n(?:.*\n)*?\}$", re.MULTILINE)


def read_sources(root: Path = ROOT) -> dict[str, str]:
    """Return the text of each source file in Python and C, by its path."""
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for folder in FOLDERS
        for suffix in ("py", "c", "h")
        for path in sorted((root / folder).rglob(f"*.{suffix}"))
    }


def violations(sources: Mapping[str, str]) -> Iterator[str]:
    """Iterate over what is wrong, a line each."""
    classes: dict[str, list[str]] = defaultdict(list)
    structs: dict[str, list[str]] = defaultdict(list)
    for path, text in sources.items():
        if path.endswith(".py"):
            tree = ast.parse(text)
            for name in _classes(tree):
                classes[name].append(path)
            yield from _hidden_imports(path, tree)
            continue
        for name in _STRUCT.findall(text):
            structs[name].append(path)
        for line, lines in _functions(text):
            if lines > MOST_LINES:
                yield f"{path}:{line}: a function of {lines} lines, at most {MOST_LINES} fit"
    for kind, found in (("class", classes), ("struct", structs)):
        for name, paths in found.items():
            if len(paths) > 1 and name not in TWICE:
                yield f"{kind} {name} stands in {', '.join(paths)}"


def _classes(tree: ast.Module) -> Iterator[str]:
    """Iterate over the names of classes, private and inner ones too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")


def _functions(text: str) -> Iterator[tuple[int, int]]:
    """Iterate over the first line of each function of C, and its number of lines."""
    for match in _FUNCTION.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[0].count("\n") + 1


def _hidden_imports(path: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name not in ("import_module", "__import__") or _stays_in_package(node):
            continue
        own = {text for text in _texts(node) if text.startswith("deconv_")}
        if path not in OTHERS or own - OWN.get(path, set()):
            yield f"{path}:{node.lineno}: an import that import-linter does not see"


def _stays_in_package(call: ast.Call) -> bool:
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


def _texts(call: ast.Call) -> Iterator[str]:
    for node in ast.walk(call):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def main() -> int:
    """List what is wrong; return the exit code."""
    found = list(violations(read_sources()))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
