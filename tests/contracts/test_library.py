"""The library computes and raises errors; only the commands print, prompt and exit.

The direction of imports is a contract of import-linter in pyproject.toml, which `make check` runs.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_library_never_prints_asks_or_exits() -> None:
    called = {
        (node.func.id, str(path.relative_to(ROOT)))
        for path in (ROOT / "deconv_ir").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called
    assert not [(name, path) for name, path in called if name in ("print", "exit", "input")]


def test_starting_the_linter_imports_no_numpy() -> None:
    code = "import sys, deconv_ir; assert not {'numpy', 'scipy', 'click'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
