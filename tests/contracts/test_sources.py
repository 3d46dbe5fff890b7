"""Functions of the C sources fit on a page, and a name stands for one struct."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

NATIVE = Path(__file__).parent.parent.parent / "deconv_ir" / "kernels" / "_native"
MOST_LINES = 80

# A definition begins in the first column, and ends with a brace in the first column.
STRUCT = re.compile(r"\bstruct (\w+) \{")
FUNCTION = re.compile(r"^\w[^;={}]*\([^;{}]*\) \{\n(?:.*\n)*?\}$", re.MULTILINE)


def functions(text: str) -> dict[int, int]:
    """Return the number of lines of each function, by its first line."""
    return {
        text.count("\n", 0, match.start()) + 1: match[0].count("\n") + 1
        for match in FUNCTION.finditer(text)
    }


def test_functions_are_found() -> None:
    text = "int f(int a) {\n    if (a) {\n    }\n}\n\nvoid NAME(g)(int a,\n  int b) {\n}\n"
    assert functions(text) == {1: 4, 6: 3}


def test_functions_fit_on_a_page() -> None:
    found = {
        f"{path.relative_to(NATIVE)}:{line}": lines
        for path in sorted(NATIVE.rglob("*.[ch]"))
        for line, lines in functions(path.read_text()).items()
    }
    assert len(found) > 400
    assert {place: lines for place, lines in found.items() if lines > MOST_LINES} == {}


def test_a_name_stands_for_one_struct() -> None:
    found = Counter(
        name for path in NATIVE.rglob("*.[ch]") for name in STRUCT.findall(path.read_text())
    )
    assert len(found) > 80
    assert [name for name, count in found.items() if count > 1] == []
