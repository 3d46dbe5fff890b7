"""The library's messages do not name command-line options, which belong to the commands."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parent.parent.parent / "deconv_ir"


@pytest.mark.parametrize(
    "path", sorted(LIBRARY.rglob("*.py")), ids=lambda p: str(p.relative_to(LIBRARY))
)
def test_messages_name_no_options(path: Path) -> None:
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
    }  # fmt: skip
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
    ]
    assert not [text for text in texts if re.search(r"(?<!\S)--[a-z]", text)]
