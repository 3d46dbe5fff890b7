"""Check that the folders of the compiled kernel know only the layers below their own.

    python tools/check_c_layers.py

Reads the `#include "..."` lines and the functions and data that files declare, define and use, and
lists

- an include of a higher layer, or of a neighbour in the same layer;
- a declaration that would hide such an arrow: in a source file, or in another folder than the
  definition;
- a circle of headers, or of source files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NATIVE = ROOT / "deconv_ir/kernels/_native"

# From the bottom to the top: folders, and files that lie in none.
LAYERS = (
    ("interface.h", "cost_constants.inc.h"),
    ("runtime",),
    ("simd",),
    ("python",),
    ("quantized",),
    ("convolution",),
    (
        "direct",
        "winograd",
        "products",
        "pointwise",
        "pooling",
        "normalization",
        "recurrent",
        "resample",
        "sampling",
        "selection",
    ),
    ("layer",),
    ("module.c",),
)

_HEIGHTS = {part: height for height, parts in enumerate(LAYERS) for part in parts}
_NOISE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# In the first column, what other files can use: a function, with its first character after the
# parameters, and data with an initial value.
_SHARED = r"^(?!static\b|typedef\b|extern\b|_Static_assert\b)"
_FUNCTION = re.compile(
    _SHARED + r"[A-Za-z_][\w \n*]*?[ *\n](\w+)\((?:[^(){};]|\([^(){};]*\))*\)\s*([{;])",
    re.MULTILINE,
)
_STATIC = re.compile(r"^static\b[^;{}=()]*?(\w+)\(", re.MULTILINE)
_DATA = re.compile(_SHARED + r"\w[\w *]*?[ *](\w+)(?:\[\w*\])* = ", re.MULTILINE)
_EXTERN = re.compile(r"^extern\b([^;]*);", re.MULTILINE)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")


@dataclass(frozen=True, slots=True)
class _File:
    includes: list[str]
    declared: set[str]
    defined: set[str]
    words: set[str]
    """All but the names of its static functions."""


def _part(path: str) -> str:
    """Return the folder of a file, or its name if it lies in none."""
    return path.partition("/")[0]


def _read(text: str) -> _File:
    code = _NOISE.sub("", text)
    functions = _FUNCTION.findall(code)
    defined = {name for name, end in functions if end == "{"}
    declared = {name for name, end in functions if end == ";"}
    for names in _EXTERN.findall(code):
        declared.update(re.findall(r"(\w+)(?:\[\w*\])*(?:,|$)", names))
    return _File(
        _INCLUDE.findall(text),
        declared - defined,
        defined.union(_DATA.findall(code)),
        set(_WORD.findall(code)).difference(_STATIC.findall(code)),
    )


def read_sources(folder: Path) -> dict[str, str]:
    """Return the text of each source file and header below a folder, by its path."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in (".c", ".h"))
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}


def violations(sources: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each arrow that goes upwards, sideways or in a circle.

    Parameters
    ----------
    sources : mapping
        The text of each file, by its path.
    """
    files = {path: _read(text) for path, text in sources.items()}
    sources_only = {path: file for path, file in files.items() if path.endswith(".c")}
    home = {name: path for path, file in sources_only.items() for name in file.defined}
    for path, file in files.items():
        part = _part(path)
        if part not in _HEIGHTS:
            yield f"{path}: {part} is in no layer (add it to LAYERS of tools/check_c_layers.py)"
            continue
        for included in file.includes:
            other = _part(included)
            if included not in files:
                yield f"{path}: includes {included}, which does not exist"
            elif other != part and _HEIGHTS.get(other, -1) >= _HEIGHTS[part]:
                way = "sideways" if _HEIGHTS[other] == _HEIGHTS[part] else "upwards"
                yield f"{path}: includes {included}, {way}"
        for name in sorted(file.declared):
            if path.endswith(".c"):
                yield f"{path}: declares {name}, which a header must declare"
            elif name in home and _part(home[name]) != part:
                yield f"{path}: declares {name}, which {home[name]} defines"
    yield from _circle({path: file.includes for path, file in files.items()})
    yield from _circle(
        {
            path: {home[name] for name in file.words & home.keys()} - {path}
            for path, file in sources_only.items()
        }
    )


def _circle(arrows: Mapping[str, Iterable[str]]) -> Iterator[str]:
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        yield "circle: " + " -> ".join(reversed(error.args[1]))


def main() -> int:
    """Print the violations; return 1 if there are any."""
    found = list(violations(read_sources(NATIVE)))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
