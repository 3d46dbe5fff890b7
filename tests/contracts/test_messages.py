"""The library's messages do not name command-line options, which belong to the commands."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from deconv_ir import Hint

LIBRARY = Path(__file__).parent.parent.parent / "deconv_ir"


def texts(path: Path) -> list[str]:
    """Return the strings of a module that are not docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
    }  # fmt: skip
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
    ]


def test_messages_name_no_options() -> None:
    found = [
        (str(path.relative_to(LIBRARY)), text)
        for path in sorted(LIBRARY.rglob("*.py"))
        if path.name != "hints.py"
        for text in texts(path)
        if re.search(r"(?<!\S)--[a-z]", text)
    ]
    found += [("hints.py", hint.library) for hint in Hint if "--" in hint.library]
    assert not found
